"""Records as messages: topic, key, headers, size; and dead letters of them."""

from dataclasses import replace
from typing import Any

import pytest

from headrace.schemas import records as r
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka import dead_letters
from headrace.streams.kafka.messages import ANY_PARTITION, MessageMaker
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.settings import Settings

SETTINGS = Settings(max_message_bytes=2000, partitions=7)
MAKE = MessageMaker(SETTINGS)
TASK = r.Task(rollout_id="ro", input="1", enqueued_at=0)


@pytest.mark.parametrize(
    ("record", "topic", "key", "headers"),
    [
        (TASK, "tasks", b"ro", []),
        (r.RolloutState(rollout_id="ro", status="failed", enqueued_at=0), "rollouts", b"ro", [("status", "failed")]),
        (r.AttemptEvent(rollout_id="ro", type="lost", at=0), "attempts", b"ro", [("type", "lost")]),
        (r.Trajectory(rollout_id="ro", status="failed", assembled_at=0), "triplets", b"ro", []),
        (r.Trajectory(rollout_id="ro", group_id="g", status="failed", assembled_at=0), "triplets", b"g", []),
        (r.RunManifest(run_id="run", algorithm="a", policy="p", created_at=0), "training", b"run", []),
    ],
    ids=lambda v: getattr(v, "SCHEMA", None),
)
def test_topic_key_and_headers(record: Any, topic: str, key: bytes, headers: list[Any]) -> None:
    message = MAKE(record)
    assert (message.topic, message.key, message.headers) == (SETTINGS.topic(topic), key, headers)
    assert message.partition == ANY_PARTITION
    assert MAKE(record, [("traceparent", "x")]).headers == [*headers, ("traceparent", "x")]


@pytest.mark.kafka
def test_segments_go_to_the_partition_of_their_id(settings: Settings) -> None:
    # The cluster's count decides, whatever this process's settings say.
    make = MessageMaker(settings.model_copy(update={"partitions": settings.partitions + 4}))
    reward = r.Reward(rollout_id="ro~3", reward_id="i", primary=True, value=0, source="s", at=0)
    assert make(reward).partition == partition_of("ro", settings.partitions)
    assert make.tombstone("RolloutState", "ro~2").partition == partition_of("ro", settings.partitions)


def test_a_record_above_the_limit_is_refused_before_it_is_sent() -> None:
    MAKE(r.Task(rollout_id="ro", input="x" * 1900, enqueued_at=0))
    with pytest.raises(RecordTooLargeError, match=r"Task of 2\d\d\d bytes \(ro\).*max_message_bytes \(2000\)"):
        MAKE(r.Task(rollout_id="ro", input="x" * 2000, enqueued_at=0))


class FakeMessage:
    """A message as confluent_kafka gives it."""

    def __init__(self, topic: str, value: bytes | None, headers: Any, offset: int = 5) -> None:
        self._values = (topic, value, headers, offset)

    def topic(self) -> str:
        return self._values[0]

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return self._values[3]

    def key(self) -> bytes:
        return b"\xff"

    def value(self) -> bytes | None:
        return self._values[1]

    def headers(self) -> Any:
        return self._values[2]

    def timestamp(self) -> tuple[int, int]:
        return (2, 1234)

    def error(self) -> None:
        return None


@pytest.mark.parametrize("value", [b"garbage", b"", None])
def test_a_dead_letter_keeps_everything(value: bytes | None) -> None:
    original = FakeMessage("p.spans.v1", value, [("traceparent", b"00"), ("empty", None)])
    out = dead_letters.make(original, "malformed", "why it is", "assembler")
    assert (out.topic, out.key, out.value) == ("p.spans.v1.dlq", b"\xff", value)
    assert out.headers[:2] == [("traceparent", b"00"), ("empty", None)]
    headers = [(name, v.encode() if isinstance(v, str) else v) for name, v in out.headers]
    letter = dead_letters.parse(FakeMessage(out.topic, out.value, headers, offset=9))
    assert letter == replace(
        letter,
        topic="p.spans.v1.dlq",
        partition=2,
        offset=9,
        at=1_234_000,
        reason="malformed",
        detail="why it is",
        reader="assembler",
        source_topic="p.spans.v1",
        source_partition=2,
        source_offset=5,
        value=value,
    )


def test_a_dead_letter_of_somebody_else_is_read_too() -> None:
    letter = dead_letters.parse(FakeMessage("p.spans.v1.dlq", b"x", None))
    assert (letter.reason, letter.source_topic, letter.source_offset) == ("", "", -1)
