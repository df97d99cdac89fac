"""murmur2 as Kafka's Java clients have it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.partitioner import murmur2, partition_of
from headrace.streams.settings import Settings


@pytest.mark.parametrize(
    ("data", "hashed"),
    # From org.apache.kafka.common.utils.UtilsTest.testMurmur2.
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_javas_own_examples(data: bytes, hashed: int) -> None:
    assert murmur2(data) == hashed & 0xFFFFFFFF


@given(st.text(alphabet=st.characters(exclude_characters="~", exclude_categories=["Cs"])), st.integers(1, 64))
def test_all_segments_of_an_id_stand_together(rollout_id: str, partitions: int) -> None:
    assert 0 <= partition_of(rollout_id, partitions) < partitions
    assert partition_of(f"{rollout_id}~2", partitions) == partition_of(rollout_id, partitions)


@pytest.mark.kafka
def test_librdkafka_agrees(settings: Settings) -> None:
    producer = make_producer(settings, "test")
    found: dict[str, int] = {}
    keys = [f"ro-{n}" for n in range(50)] + ["α β", "x" * 300, "a"]
    for key in keys:
        producer.produce(
            settings.topic("tasks"),
            b"v",
            key.encode(),
            on_delivery=lambda error, m: found.update({m.key().decode(): m.partition()}),
        )
    producer.flush()
    assert found == {key: partition_of(key, settings.partitions) for key in keys}
