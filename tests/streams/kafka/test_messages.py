"""Records as messages: topic, key, headers, size; a value that is too large goes by claim-check."""

from pathlib import Path
from typing import Any

import pytest

from headrace.schemas import records as r
from headrace.schemas.claim_check import decode, is_claim_check
from headrace.streams.codec import Codec
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.messages import ANY_PARTITION, MessageMaker, OutMessage, size_of
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


def make(folder: Path, **changes: Any) -> MessageMaker:
    maker = MessageMaker(SETTINGS.model_copy(update={"claim_check": str(folder), **changes}))
    maker._cluster = "cluster"  # no broker is asked here
    return maker


def test_a_record_above_the_limit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    off = make(tmp_path, claim_check="off")
    off(r.Task(rollout_id="ro", input="x" * 1700, enqueued_at=0))
    too_large = r.Task(rollout_id="ro", input="x" * 2000, enqueued_at=0)
    with pytest.raises(RecordTooLargeError, match=r"Task of 2\d\d\d bytes \(ro\).*max_message_bytes \(2000\)"):
        off(too_large)
    with pytest.raises(RecordTooLargeError, match="max_claim_bytes"):
        make(tmp_path, max_claim_bytes=2000)(too_large)
    with pytest.raises(RecordTooLargeError, match="key and headers"):
        make(tmp_path)(r.Task(rollout_id="r" * 2000, input="1", enqueued_at=0))
    assert list(tmp_path.iterdir()) == []


def test_a_record_above_the_limit_goes_by_claim_check(tmp_path: Path) -> None:
    maker = make(tmp_path / "claims")
    state = r.RolloutState(rollout_id="ro", status="failed", metadata={"a": "x" * 3000}, enqueued_at=0)
    message = maker(state, [("traceparent", "x")])
    assert message.headers == [("status", "failed"), ("traceparent", "x")]
    assert message.value is not None
    assert is_claim_check(message.value)
    claim = decode(message.value)
    folder = (tmp_path / "claims").as_uri()
    assert claim.uri == f"{folder}/cluster/{SETTINGS.topic('rollouts')}/{claim.sha256[:2]}/{claim.sha256}"
    settings = SETTINGS.model_copy(update={"claim_check": folder})
    assert Codec(settings).decode(message.value) == state
    assert MessageMaker(SETTINGS).fits(message)


@pytest.mark.parametrize("more", [0, 1])
def test_the_limit_counts_key_headers_and_framing(more: int) -> None:
    headers: Any = [("name", b"value")]
    message = OutMessage("t", b"key", b"", headers)
    message.value = b"x" * (2000 - size_of(message) + more)
    assert MAKE.fits(message) is (more == 0)
