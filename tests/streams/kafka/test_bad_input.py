"""Everything that may stand in a topic and should not, before good records: those come through, and of each of the
others there is a dead letter with its reason, the same whoever reads it."""

import json
import math
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from headrace.schemas import catalogue
from headrace.schemas import records as r
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import create_topics, partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.clock import LogClock, wall_us
from headrace.streams.kafka.dead_letters import Place, parse
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.settings import Settings, load_settings
from headrace.streams.topics import TOPICS, Topic

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LIMIT = 1_000_000
YEAR = 365 * 24 * 3600 * 1_000_000
DUPLICATES = 10_000
BAD = "bad"
SPAN: dict[str, Any] = {
    "source": "gateway",
    "trace_id": "a" * 32,
    "name": "chat",
    "attributes": '{"gen_ai.operation.name": "chat"}',
}
REWARD: dict[str, Any] = {"primary": True, "source": "agent"}
RECORDS: dict[str, Any] = {
    "tasks": r.Task(rollout_id=BAD, input="1", enqueued_at=0),
    "attempts": r.AttemptEvent(rollout_id=BAD, attempt_id="bad-1", type="heartbeat", at=0),
    "rollouts": r.RolloutState(rollout_id=BAD, status="running", enqueued_at=0),
    "spans": r.Span(rollout_id=BAD, span_id="b" * 16, start=1, end=2, **SPAN),
    "rewards": r.Reward(rollout_id=BAD, reward_id="i", value=1.0, at=0, **REWARD),
    "assembled": r.Assembled(rollout_id=BAD, state="open", source=r.Source(partition=0), at=0),
    "triplets": r.Trajectory(rollout_id=BAD, status="failed", assembled_at=0),
    "resources": r.ResourcesUpdate(resources_id=BAD, name="n", version=1, resources={}, created_at=0),
    "training": r.RunManifest(run_id=BAD, algorithm="a", policy="p", created_at=0),
    "workers": r.WorkerState(
        worker_id=BAD, kind="engine", host="h", pid=1, status="idle", version="1", started_at=0, last_heartbeat_at=0
    ),
}


@dataclass(frozen=True)
class Sample:
    """A topic, and a good record of it that is spoilt."""

    topic: Topic
    value: bytes
    partitions: int

    @property
    def partition(self) -> int:
        return self.of(BAD)

    def of(self, key: str) -> int:
        return partition_of(key, self.partitions)


Sent = tuple[bytes | None, bytes | None, int]
"""Key, value, partition."""


def value_of(change: Callable[[bytes], bytes | None]) -> Callable[[Sample], Sent]:
    return lambda s: (BAD.encode(), change(s.value), s.partition)


def in_schema(change: Callable[[dict[str, Any]], object]) -> Callable[[Sample], Sent]:
    """The record under the fingerprint of a schema that nobody here knows."""

    def spoil(sample: Sample) -> Sent:
        schema = catalogue.current()[RECORDS[sample.topic.name].SCHEMA].json
        change(schema)
        fingerprint = catalogue.computed_fingerprint(json.dumps(schema))
        return BAD.encode(), b"\xc3\x01" + fingerprint + sample.value[10:], sample.partition

    return spoil


def of_another_topic(sample: Sample) -> Sent:
    other = RECORDS["tasks" if sample.topic.name == "rewards" else "rewards"]
    return BAD.encode(), Codec(Settings()).encode(other), sample.partition


CASES: dict[str, tuple[str, Callable[[Sample], Sent]]] = {
    "garbage": ("unknown_framing", value_of(lambda v: b"\x07garbage")),
    "text": ("unknown_framing", value_of(lambda v: b'{"rollout_id": "bad"}')),
    "cut short": ("malformed", value_of(lambda v: v[:-1])),
    "bytes behind it": ("trailing_bytes", value_of(lambda v: v + b"x")),
    "unknown fingerprint": ("unknown_schema", value_of(lambda v: v[:2] + b"unknown!" + v[10:])),
    "unknown schema id": ("unknown_schema", value_of(lambda v: b"\0\0\0\1\0" + v[10:])),
    "newer, field added": (
        "unknown_schema",
        in_schema(lambda s: s["fields"].append({"name": "invented", "type": "long", "default": 0})),
    ),
    "newer, field removed": ("unknown_schema", in_schema(lambda s: s["fields"].pop(0))),
    "another topic's record": ("wrong_record", of_another_topic),
    "a string that is no UTF-8": ("malformed", value_of(lambda v: v.replace(b"bad", b"\xff\xfe\xfd", 1))),
    "no bytes": ("empty", value_of(lambda v: b"")),
    "null value": ("empty", value_of(lambda v: None)),
    "null key": ("null_key", lambda s: (None, s.value, s.partition)),
    "key of another record": ("wrong_key", lambda s: (b"other", s.value, s.of("other"))),
    "key that is no UTF-8": ("undecodable_key", lambda s: (b"\xff\xfe", s.value, 0)),
    "wrong partition": ("wrong_partition", lambda s: (BAD.encode(), s.value, (s.partition + 1) % s.partitions)),
    "larger than its topic": ("unknown_framing", value_of(lambda v: b"x" * (2 * LIMIT))),
    "50 MB": ("unknown_framing", value_of(lambda v: b"x" * 50_000_000)),
}
FOLLOWED = {name for name, topic in TOPICS.items() if topic.followed}


def reason_of(case: str, topic: Topic) -> str | None:
    """The reason of a case in a topic; None where it is right there, or cannot come there."""
    reason, _ = CASES[case]
    if topic.compact and case in ("null value", "null key"):
        return None  # a tombstone; what the brokers refuse
    if case == "wrong partition" and not topic.co_partitioned:
        return None
    if case == "50 MB" and topic.name != "spans":
        return None  # once is enough
    if topic.followed and case in ("null key", "key that is no UTF-8"):
        return "wrong_key"
    return reason


def good(settings: Settings) -> list[r.Record]:
    """One rollout from its task to its end, by clocks that are a year off."""
    common: dict[str, Any] = {"rollout_id": "good", "attempt_id": "good-1", "attempt": 1, "at": wall_us() + YEAR}
    facts = r.TaskFacts(offset=0, input='"x"', mode="val")
    return [
        r.Task(rollout_id="good", input='"x"', mode="val", enqueued_at=wall_us() - YEAR),
        r.AttemptEvent(type="started", task=facts, **common),
        r.Span(rollout_id="good", attempt_id="good-1", span_id="c" * 16, start=1, end=YEAR * 1000, **SPAN),
        r.Reward(rollout_id="good", attempt_id="good-1", reward_id="i", value=0.5, at=-YEAR, **REWARD),
        r.AttemptEvent(type="succeeded", final=True, complete=True, **common),
        r.ResourcesUpdate(resources_id="good", name="n", version=1, resources={}, created_at=YEAR),
        r.RunManifest(run_id="good", algorithm="a", policy="p", created_at=-YEAR),
        r.WorkerState(
            worker_id="good", kind="k", host="h", pid=1, status="idle", version="1", started_at=0, last_heartbeat_at=0
        ),
    ]


Expected = dict[str, dict[Place, str]]


def write_all(settings: Settings, duplicates: int = 1) -> Expected:
    """Writes bad and good records; the reasons of the bad ones by topic and place."""
    foreign = settings.model_copy(update={"max_message_bytes": 60_000_000})  # a writer with limits of its own
    producer = make_producer(foreign, "test", linger_ms=50)
    message = MessageMaker(settings)
    reasons: Expected = {name: {} for name in TOPICS}
    refused: list[str] = []

    def send(topic: str, sent: Sent, reason: str | None, **more: Any) -> None:
        def report(error: Any, message: Any) -> None:
            if error is not None:
                refused.append(f"{topic}: {error.name()}")
            elif reason is not None:
                reasons[topic][Place(message.topic(), message.partition(), message.offset())] = reason

        key, value, partition = sent
        producer.produce(settings.topic(topic), value, key, partition, on_delivery=report, **more)

    def write(record: r.Record, reason: str | None = None) -> None:
        out = message(record)
        name = next(t.name for t in TOPICS.values() if record.SCHEMA in t.records)
        send(name, (out.key, out.value, out.partition), reason, headers=out.headers or None)

    for name, topic in TOPICS.items():
        record = RECORDS[name]
        sample = Sample(topic, Codec(settings).encode(record), len(partition_ids(settings, settings.topic(name))))
        for case, (_, spoil) in CASES.items():
            if (reason := reason_of(case, topic)) is not None or case == "null value":
                send(name, spoil(sample), reason)
        assert producer.flush(60) == 0
        if topic.compact:  # the brokers refuse all that is in a batch with one
            send(name, CASES["null key"][1](sample), None)
            assert producer.flush(60) == 0
    assert Counter(refused) == {f"{n}: INVALID_RECORD": 1 for n, t in TOPICS.items() if t.compact}
    for value in (math.nan, math.inf, -math.inf):
        write(r.Reward(rollout_id=BAD, reward_id=f"i{value}", value=value, at=0, **REWARD), "not_finite")
    records = good(settings)
    for record in records:
        repeated = isinstance(record, (r.Task, r.Span, r.Reward)) or record is records[1]
        for _ in range(duplicates if repeated else 1):
            write(record)
            producer.poll(0)
    assert producer.flush(60) == 0
    return reasons


@pytest.fixture(scope="module")
def written(kafka: Any) -> tuple[Settings, Expected]:
    """Topics with all of it, for readers of different topics."""
    settings = load_settings(
        bootstrap=kafka.bootstrap, prefix=f"bad{uuid.uuid4().hex[:6]}", partitions=3, max_message_bytes=LIMIT
    )
    create_topics(settings)
    return settings, write_all(settings)


@pytest.fixture
def processors() -> Iterator[Callable[[Settings], list[Any]]]:
    """Starts lifecycle and assembler on threads; gives their processors."""
    from headrace.streams.assembly.loop import AssemblyProcessor
    from headrace.streams.lifecycle.loop import LifecycleProcessor

    started: list[tuple[TransactionalLoop, threading.Thread]] = []

    def start(settings: Settings) -> list[Any]:
        running = [LifecycleProcessor(settings, "w"), AssemblyProcessor(settings, "w")]
        for processor in running:
            loop = TransactionalLoop(settings, processor, "w")
            started.append((loop, threading.Thread(target=loop.run)))
            started[-1][1].start()
        return running

    yield start
    for loop, _ in started:
        loop.stop()
    for _, thread in started:
        thread.join()


def letters(log: Any, topic: str) -> dict[Place, set[str]]:
    """The reasons of each place; several where readers do not agree."""
    found: dict[Place, set[str]] = {}
    for message in log.messages(topic, dead=True):
        letter = parse(message)
        found.setdefault(letter.place, set()).add(letter.reason)
    return found


def all_of(expected: dict[Place, str]) -> dict[Place, set[str]]:
    return {place: {reason} for place, reason in expected.items()}


@pytest.mark.timeout(300)
def test_bad_input_before_good(
    make_settings: Callable[..., Settings], log_of: Any, wait_for: Any, processors: Callable[[Settings], list[Any]]
) -> None:
    settings = make_settings(max_message_bytes=LIMIT)
    log = log_of(settings)
    expected = write_all(settings, DUPLICATES)
    lifecycle, assembler = processors(settings)
    wait_for(lambda: b"succeeded" in statuses(log), 120)
    (trajectory,) = wait_for(lambda: [t for t in good_of(log, "triplets") if t.rollout_id == "good"], 120)
    assert (trajectory.final_reward, trajectory.diagnostics.calls) == (0.5, 1)
    (state,) = [s for s in good_of(log, "rollouts") if s.rollout_id == "good"][-1:]
    assert (state.status, len(state.attempts)) == ("succeeded", 1)
    assert assembler.counters["duplicate_spans"] >= DUPLICATES - 1
    for topic in ("tasks", "attempts", "rollouts", "spans", "rewards", "assembled"):
        wait_for(lambda topic=topic: len(letters(log, topic)) >= len(expected[topic]), 30)
        assert letters(log, topic) == all_of(expected[topic]), topic
    assert lifecycle.counters["dead_unknown_framing"] > 0


def statuses(log: Any) -> set[bytes]:
    """The states of the good rollout."""
    return {
        value
        for m in log.messages("rollouts")
        if m.key() == b"good"
        for name, value in m.headers() or []
        if name == "status"
    }


def good_of(log: Any, topic: str) -> list[Any]:
    """The records that can be read."""
    from headrace.streams.codec import DecodeError

    found: list[Any] = []
    for message in log.messages(topic):
        try:
            record = log.decode(message)
        except DecodeError:
            continue
        if message.key() == b"good":
            found.append(record)
    return found


def test_followers_write_one_letter_each_place(written: tuple[Settings, Expected], log_of: Any) -> None:
    settings, expected = written
    log = log_of(settings)
    for topic in sorted(FOLLOWED):
        for _ in range(2):  # the second finds the letters of the first
            handled: list[Any] = []
            follower = TopicFollower(settings, topic, partial(_append_key, handled), client_id="f")
            follower.start()
            follower.close()
            assert handled == [b"good"], topic
        assert len(log.messages(topic, dead=True)) == len(expected[topic])
        assert letters(log, topic) == all_of(expected[topic]), topic


def test_readers_without_a_transaction_agree(written: tuple[Settings, Expected], log_of: Any) -> None:
    """The runner's two readers and a trainer's."""
    from headrace.streams.runner.decoding import TaskDecoder
    from headrace.streams.runner.replay import attempts_intake, happened_of
    from headrace.trainers.reader import Reader
    from headrace.trainers.window import Windows, WindowSettings

    settings, expected = written
    log = log_of(settings)
    decode = TaskDecoder(settings)
    fetched = {place_of(m): decode(m) for m in log.messages("tasks")}
    reasons = {place: reason_in(one.dead) for place, one in fetched.items() if one.dead is not None}
    assert reasons == expected["tasks"]
    assert {one.task.rollout_id for one in fetched.values() if one.task is not None} == {"good"}

    intake = attempts_intake(settings)
    heard = {place_of(m): happened_of(intake, m) for m in log.messages("attempts")}
    assert {place for place, event in heard.items() if event is None} == set(expected["attempts"])

    bad = r.Trajectory(
        rollout_id="nan", group_id="g", mode="train", policy="p", status="failed", final_reward=math.nan, assembled_at=0
    )
    log.write(bad, r.Trajectory(rollout_id="good", group_id="g", mode="val", status="failed", assembled_at=0))
    windows = Windows(WindowSettings(run_id="run", policy="p"))
    reader = Reader(settings, "run", windows, LogClock())
    try:
        while sum(p.next for p in windows.position()) < len(log.messages("triplets")):
            reader.read()
    finally:
        reader.close()
    found = {parse_out(letter): reason_in(letter) for letter in reader.dead_letters}
    assert found == expected["triplets"]
    dropped = {d.reason: len(d.samples) for d in windows.decisions().dropped}
    assert dropped == {"unreadable": len(found), "reward_not_finite": 1, "mode": 1}


def _append_key(keys: list[Any], record: r.Record, message: Any) -> None:
    keys.append(message.key())


def place_of(message: Any) -> Place:
    return Place(message.topic(), message.partition(), message.offset())


def parse_out(letter: Any) -> Place:
    headers = dict(letter.headers)
    return Place(
        headers["__connect.errors.topic"],
        int(headers["__connect.errors.partition"]),
        int(headers["__connect.errors.offset"]),
    )


def reason_in(letter: Any) -> str:
    return dict(letter.headers)["headrace.reason"]
