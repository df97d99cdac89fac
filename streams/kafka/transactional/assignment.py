"""A partition number of co-partitioned topics is assigned as a whole."""

from collections.abc import Iterable

from headrace.streams.kafka.transactional.errors import AssignmentError
from headrace.streams.kafka.transactional.processor import TopicPartitionKey


def aligned(partitions: Iterable[TopicPartitionKey], topics: Iterable[str]) -> set[int]:
    """The partition numbers of an assignment.

    Raises:
        AssignmentError: a number came of some topics only.
    """
    of_topic: dict[str, set[int]] = {topic: set() for topic in topics}
    for topic, partition in partitions:
        of_topic[topic].add(partition)
    numbers = {partition for have in of_topic.values() for partition in have}
    odd = {topic: sorted(numbers - have) for topic, have in of_topic.items() if have != numbers}
    if odd:
        raise AssignmentError(
            f"the assignment is not aligned (missing: {odd}); the topics need equal partition counts "
            "(`headrace topics check`), and the group the range assignor"
        )
    return numbers
