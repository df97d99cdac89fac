"""Dead letters: what they keep, how they fit their topic, and what has become of them. Pure."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.claim_check import is_claim_check
from headrace.streams.kafka import dead_letters
from headrace.streams.kafka.dead_letters import DeadLetterMaker, Place, is_marker, maker, parse
from headrace.streams.kafka.dead_letters.ledger import fold, marker_of, replay_of
from headrace.streams.kafka.messages import OutMessage, size_of
from headrace.streams.settings import Settings

TOPIC = "p.spans.v1"


class FakeMessage:
    """A message as confluent_kafka gives it."""

    def __init__(self, topic: str, value: bytes | None, headers: Any, offset: int = 5, key: bytes | None = b"\xff"):
        self._values = (topic, value, headers, offset, key)

    def topic(self) -> str:
        return self._values[0]

    def partition(self) -> int:
        return 2 if self._values[0] == TOPIC else 0

    def offset(self) -> int:
        return self._values[3]

    def key(self) -> bytes | None:
        return self._values[4]

    def value(self) -> bytes | None:
        return self._values[1]

    def headers(self) -> Any:
        return self._values[2]

    def timestamp(self) -> tuple[int, int]:
        return (2, 1234)

    def error(self) -> None:
        return None


def read(out: OutMessage, offset: int = 0) -> FakeMessage:
    """A message as it comes back from the log."""
    headers = [(name, v.encode() if isinstance(v, str) else v) for name, v in out.headers]
    return FakeMessage(out.topic, out.value, headers, offset, out.key)


@pytest.mark.parametrize("value", [b"garbage", b"", None])
def test_a_dead_letter_keeps_everything(value: bytes | None) -> None:
    original = FakeMessage(TOPIC, value, [("traceparent", b"00"), ("empty", None), ("headrace.reason", b"mine")])
    out = dead_letters.make(original, "malformed", "why it is", "assembler")
    assert (out.topic, out.key, out.value) == (f"{TOPIC}.dlq", b"\xff", value)
    letter = parse(read(out, 9))
    assert letter == replace(
        letter,
        topic=f"{TOPIC}.dlq",
        partition=0,
        offset=9,
        at=1_234_000,
        reason="malformed",
        detail="why it is",
        reader="assembler",
        source_topic=TOPIC,
        source_partition=2,
        source_offset=5,
        value=value,
        size=len(value or b""),
        headers=original.headers(),
    )


@pytest.mark.parametrize(
    ("reason", "stage"), [("malformed", "VALUE_CONVERTER"), ("wrong_key", "KEY_CONVERTER"), ("not_finite", "TASK_PUT")]
)
def test_headers_are_those_of_kafka_connect(reason: str, stage: str) -> None:
    out = dead_letters.make(FakeMessage(TOPIC, b"x", None), reason, "why \ud800" + "y" * 5000, "runner")
    headers = dict(read(out).headers())
    assert headers["__connect.errors.topic"] == TOPIC.encode()
    assert headers["__connect.errors.partition"] == b"2"
    assert headers["__connect.errors.offset"] == b"5"
    assert headers["__connect.errors.connector.name"] == b"runner"
    assert headers["__connect.errors.stage"] == stage.encode()
    assert headers["__connect.errors.exception.class.name"] == b"headrace.streams.codec.errors.DecodeError"
    assert headers["__connect.errors.exception.message"].startswith(b"why \\ud800yyy")
    assert len(headers["__connect.errors.exception.message"]) < 2100


def test_a_dead_letter_of_somebody_else_is_read_too() -> None:
    letter = parse(FakeMessage(f"{TOPIC}.dlq", b"x", None))
    assert (letter.reason, letter.source_topic, letter.source_offset) == ("", "", -1)
    connect = [("__connect.errors.topic", TOPIC.encode()), ("__connect.errors.offset", b"\xff")]
    letter = parse(FakeMessage(f"{TOPIC}.dlq", b"x", connect))
    assert (letter.source_topic, letter.source_offset) == (TOPIC, -1)
    assert len(fold([FakeMessage(f"{TOPIC}.dlq", b"x", None, n) for n in range(2)])) == 2


def test_what_is_too_large_goes_by_claim_check_or_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maker, "cluster_id", lambda settings: "cluster")
    settings = Settings(max_message_bytes=4096, claim_check=str(tmp_path / "claims"))
    large = FakeMessage(TOPIC, b"x" * 200_000, [("traceparent", b"00")])
    out = DeadLetterMaker(settings, "runner")(large, "malformed", "why")
    letter = parse(read(out))
    assert is_claim_check(out.value)
    assert (letter.size, letter.headers, letter.left_out) == (200_000, large.headers(), None)
    just = FakeMessage(TOPIC, b"x" * 60_000, [])
    assert DeadLetterMaker(settings, "runner")(just, "malformed", "why").value == just.value()

    nowhere = settings.model_copy(update={"claim_check": "off"})
    for message in (
        large,
        FakeMessage(TOPIC, b"x", [], key=b"k" * 100_000),
        FakeMessage(TOPIC, b"x", [("h", b"v" * 99_999)]),
    ):
        out = DeadLetterMaker(nowhere, "runner")(message, "malformed", "why")
        assert size_of(out) < 4096
        letter = parse(read(out))
        assert (letter.place, letter.value) == (Place(TOPIC, 2, 5), None)
        assert "SHA-256" in (letter.left_out or "")


def letter_of(offset: int, headers: Any = None) -> FakeMessage:
    return FakeMessage(TOPIC, b"garbage", headers, offset)


def dead(message: FakeMessage, at: int, reader: str = "lifecycle") -> FakeMessage:
    return read(dead_letters.make(message, "malformed", "why", reader), at)


def test_of_one_place_the_first_letter_counts() -> None:
    (one, two) = fold([dead(letter_of(5), 0), dead(letter_of(5), 1, "assembler"), dead(letter_of(6), 2)])
    assert (one.letter.reader, one.letter.offset, one.repeats) == ("lifecycle", 0, 1)
    assert (two.letter.place, two.state, two.replays) == (Place(TOPIC, 2, 6), "dead", 0)


def test_a_chain_of_replays_is_kept_and_counted() -> None:
    log = [dead(letter_of(5, [("traceparent", b"00")]), 0)]
    places = [Place(TOPIC, 2, 5)]
    for replay, offset in ((1, 20), (2, 30), (3, 40)):
        state = fold(log)[-1]
        assert (state.state, state.replays) == ("dead", replay - 1)
        again = replay_of(state, b"garbage")
        assert (again.topic, again.partition, again.key, again.value) == (TOPIC, 2, b"\xff", b"garbage")
        assert again.headers == [
            ("traceparent", b"00"),
            *(("headrace.replay.of", str(place)) for place in places),
            ("headrace.replay.count", str(replay)),
        ]
        marker = read(marker_of(state, offset), len(log))
        assert is_marker(marker)
        assert dict(marker.headers())["headrace.replayed.offset"] == str(offset).encode()
        log += [marker, dead(FakeMessage(TOPIC, again.value, read(again).headers(), offset), len(log) + 1)]
        places.append(Place(TOPIC, 2, offset))
    states = fold(log)
    assert [(s.state, s.replays) for s in states] == [("replayed", 3)] * 3 + [("dead", 3)]
    assert states[-1].letter.replays == tuple(places[:-1])
    assert states[-1].letter.first == places[0]


def test_a_record_that_looks_like_a_marker_is_a_letter() -> None:
    hostile = letter_of(5, [("headrace.replayed", b"1"), ("__connect.errors.topic", b"other")])
    (state,) = fold([dead(hostile, 0)])
    assert (state.state, state.letter.place) == ("dead", Place(TOPIC, 2, 5))


@pytest.mark.parametrize("text", ["", "a/b/c", "topic/1", "/1/2", "t/-1/2", "t/1/²"])
def test_what_is_no_place(text: str) -> None:
    assert Place.parsed(text) is None


def test_a_place_is_read_as_it_is_written() -> None:
    assert Place.parsed(str(Place("a/b", 1, 2))) == Place("a/b", 1, 2)
