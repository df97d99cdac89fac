"""Kafka's default partitioner (murmur2 of the key), for readers that check it and for the segments of an id."""

SEED = 0x9747B28C
M = 0x5BD1E995
MASK = 0xFFFFFFFF
SEGMENT_MARK = "~"
MAX_ID_LENGTH = 512
"""Characters of a rollout, attempt, group or session id that is given from outside."""


def murmur2(data: bytes) -> int:
    """The 32-bit hash of Kafka's Java clients (`org.apache.kafka.common.utils.Utils.murmur2`), unsigned."""
    length = len(data)
    h = SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = (int.from_bytes(data[i : i + 4], "little") * M) & MASK
        k = ((k ^ (k >> 24)) * M) & MASK
        h = ((h * M) & MASK) ^ k
    rest = data[whole:]
    if rest:
        h = ((h ^ int.from_bytes(rest, "little")) * M) & MASK
    h = ((h ^ (h >> 13)) * M) & MASK
    return h ^ (h >> 15)


def partition_of(rollout_id: str, partitions: int) -> int:
    """The partition of a rollout: that of its id up to the first `~`, so that all segments of an id stand together."""
    return (murmur2(rollout_id.partition(SEGMENT_MARK)[0].encode()) & 0x7FFFFFFF) % partitions
