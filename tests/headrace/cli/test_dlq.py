"""`headrace dlq` on a real broker."""

import base64
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from headrace.schemas.records import Reward
from headrace.streams.errors import FencedError
from headrace.streams.kafka import dead_letters
from headrace.streams.kafka.admin import TopicError, create_dead_letters
from headrace.streams.kafka.clients import make_admin, make_producer
from headrace.streams.kafka.dead_letters.replay import MOST_LETTERS, replay
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka

KILLED = """
import os, signal, sys
from headrace.cli import main
from headrace.streams.kafka.transactional.transactions import Transactions
def dies(self, what, call, before=Transactions._retrying):
    if what == "commit":
        assert self._producer.flush(10) == 0
        os.kill(os.getpid(), signal.SIGKILL)
    before(self, what, call)
Transactions._retrying = dies
sys.argv = ["headrace", "dlq", "replay", "--all"]
main()
"""
"""A replay that is killed when all is written and nothing committed."""


class Spans:
    """The spans topic and its dead letters."""

    def __init__(self, settings: Settings, topic: str = "") -> None:
        self.settings = settings
        self.topic = topic or settings.topic("spans")
        self._producer = make_producer(settings, "test")

    def write(self, value: bytes | None, key: bytes = b"key-\xff", **more: Any) -> None:
        self._producer.produce(self.topic, value, key, partition=1, **more)
        assert self._producer.flush(30) == 0

    def there(self) -> list[Message]:
        return list(read_topic(self.settings, self.topic, [1], client_id="test"))

    def bury(self, first: int = 0, reason: str = "unknown_framing", reader: str = "assembler") -> None:
        """Writes the letters of all records from an offset on."""
        for message in self.there():
            if (message.offset() or 0) >= first:
                letter = dead_letters.make(message, reason, "what is wrong", reader)
                self._producer.produce(letter.topic, letter.value, letter.key, headers=letter.headers)  # type: ignore[arg-type]
        assert self._producer.flush(30) == 0


class Command:
    """`headrace dlq` in this process."""

    def __init__(self, asking: Any) -> None:
        self._asking = asking

    def __call__(self, *arguments: str) -> Any:
        return self._asking("dlq", *arguments)

    def json(self, *arguments: str) -> list[Any]:
        """The objects that a successful run prints."""
        return self._asking.json("dlq", *arguments, "--json")


@pytest.fixture
def dlq(asking: Any) -> Command:
    return Command(asking)


@pytest.fixture
def spans(settings: Settings) -> Spans:
    return Spans(settings)


def test_list_show_and_count(dlq: Command, settings: Settings, spans: Spans) -> None:
    topic = spans.topic
    spans.write(b"garbage", headers=[("traceparent", b"00-1")])
    spans.bury()
    reward = MessageMaker(settings)(Reward(rollout_id="r", reward_id="i", primary=True, value=1, source="agent", at=0))
    spans.write(reward.value, b"r")
    spans.bury(1, "wrong_record")
    spans.bury(1, "wrong_record", "another")

    first, second = dlq.json("list")
    assert first == {
        "topic": f"{topic}.dlq",
        "partition": 0,
        "offset": 0,
        "at": first["at"],
        "reason": "unknown_framing",
        "source_topic": topic,
        "source_partition": 1,
        "source_offset": 0,
        "bytes": 7,
        "id": f"{topic}/1/0",
        "reader": "assembler",
        "state": "dead",
        "replays": 0,
        "replay_of": [],
    }
    assert first["at"] > 1_600_000_000_000_000
    assert (second["reason"], second["reader"]) == ("wrong_record", "assembler")
    assert dlq.json("list", "--reason", "wrong_record") == [second]
    assert dlq.json("list", "--topic", "rewards") == []
    assert "unknown_framing" in dlq("list").stdout
    counts = {"unknown_framing": 1, "wrong_record": 1}
    assert dlq.json("count") == [{"topic": f"{topic}.dlq", "letters": 2, "dead": 2, "replayed": 0, "reasons": counts}]
    assert "wrong_record 1" in dlq("count").stdout

    (shown,) = dlq.json("show", f"{topic}.dlq", "0", "0")
    assert base64.b64decode(shown["value_base64"]) == b"garbage"
    assert shown["record"] is None
    assert shown["undecoded"].startswith("unknown_framing")
    assert ["traceparent", "00-1"] in shown["headers"]
    (shown,) = dlq.json("show", "spans", "0", "1")
    assert shown["record"]["type"] == "Reward"
    by_id = {row["id"]: row for row in dlq.json("list")}
    for id_, row in by_id.items():
        (shown,) = dlq.json("show", id_)
        assert {name: shown[name] for name in row} == row
    assert dlq("show", f"{topic}/0/99").exit_code == 1
    for arguments in (("spans", "0", "3"), ("spans", "7", "0"), ("nothing", "0", "0")):
        assert dlq("show", *arguments).exit_code == 1


def test_letters_of_a_collectors_topic_are_listed_and_replayed_by_its_name(dlq: Command, settings: Settings) -> None:
    topic = f"{settings.prefix}_otlp_spans"
    admin = make_admin(settings)
    admin.create_topics([NewTopic(topic, 2)])[topic].result()
    create_dead_letters(settings, topic)
    collector = Spans(settings, topic)
    collector.write(b"no otlp")
    collector.bury(reason="not_otlp")
    (letter,) = dlq.json("list", "--topic", topic)
    assert (letter["id"], letter["reason"]) == (f"{topic}/1/0", "not_otlp")
    assert len(dlq.json("replay", "--id", letter["id"])) == 1
    assert [m.value() for m in collector.there()] == [b"no otlp"] * 2
    assert "no_such_topic.dlq" in str(dlq("list", "--topic", "no_such_topic").exception)


@pytest.mark.parametrize("command", ["list", "count", "replay --all", "replay --all --dry-run"])
def test_a_pipeline_that_is_not_there_is_said(asking: Any, command: str) -> None:
    done = asking("dlq", *command.split(), "--prefix", "nowhere")
    assert isinstance(done.exception, TopicError)
    assert "nowhere.tasks.v1" in str(done.exception)


def test_replay_puts_the_record_back_as_it_was_at_most_three_times(dlq: Command, spans: Spans) -> None:
    spans.write(b"garbage", headers=[("traceparent", b"00-1"), ("none", None)])
    spans.write(None, headers=[("traceparent", b"00-2")])
    spans.bury()
    one, other = f"{spans.topic}/1/0", f"{spans.topic}/1/1"

    assert dlq("replay").exit_code == 2
    (dry,) = dlq.json("replay", "--id", "spans/1/0", "--dry-run")
    assert (dry["id"], dry["replays"], dry["replayed_offset"], dry["state"]) == (one, 1, None, "dead")
    assert len(spans.there()) == 2

    (done,) = dlq.json("replay", "--id", "spans/1/0")
    assert (done["id"], done["replays"], done["replayed_offset"], done["state"]) == (one, 1, 2, "replayed")
    again = spans.there()[2]
    assert (again.key(), again.value(), again.offset()) == (b"key-\xff", b"garbage", 2)
    assert again.headers() == [
        ("traceparent", b"00-1"),
        ("none", None),
        ("headrace.replay.of", one.encode()),
        ("headrace.replay.count", b"1"),
    ]
    assert [row["state"] for row in dlq.json("list")] == ["replayed", "dead"]
    assert "replayed 1x" in dlq("list").stdout

    (done,) = dlq.json("replay", "--all")  # the other; what was replayed is passed over
    assert done["id"] == other
    assert spans.there()[3].value() is None
    assert dlq.json("replay", "--all") == []
    dlq.json("replay", "--id", one)

    spans.bury(again.offset() or 0)  # the replays of the one fail again
    letters = {row["id"]: row for row in dlq.json("list")}
    assert letters[f"{spans.topic}/1/2"]["replay_of"] == [one]
    assert letters[f"{spans.topic}/1/2"]["replays"] == 2
    last = f"{spans.topic}/1/{max(m.offset() or 0 for m in spans.there() if m.value() == b'garbage')}"
    (done,) = dlq.json("replay", "--id", last)
    assert done["replays"] == 3
    before = len(spans.there())
    for letter in (one, last):
        refused = dlq("replay", "--id", letter)
        assert refused.exit_code == 1
        assert one in refused.stderr
        assert "3 times" in refused.stderr
    assert len(spans.there()) == before
    unknown = dlq("replay", "--id", "spans/1/999")
    assert (unknown.exit_code, "spans.v1/1/999" in unknown.stderr) == (1, True)


def test_a_replay_that_is_killed_or_overtaken_writes_each_letter_once(
    dlq: Command, settings: Settings, spans: Spans
) -> None:
    count = MOST_LETTERS + 20
    for n in range(count):
        spans.write(b"garbage %d" % n)
    spans.bury()

    killed = subprocess.run([sys.executable, "-c", KILLED], timeout=60, check=False)
    assert killed.returncode == -9
    assert len(spans.there()) == count

    overtaken = replay(settings, spans.topic, lambda state: not state.replayed)
    assert next(overtaken).offset is not None
    assert len(list(replay(settings, spans.topic, lambda state: not state.replayed))) == 20
    with pytest.raises(FencedError, match="another replay"):
        list(overtaken)

    copies = Counter(message.value() for message in spans.there())
    assert len(copies) == count
    assert set(copies.values()) == {2}
    assert dlq.json("replay", "--topic", "spans") == []
