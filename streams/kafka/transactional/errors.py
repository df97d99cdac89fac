"""What goes wrong with a transactional loop, and what is done about it."""

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from headrace.streams.errors import HeadraceError

FENCED_CODES = frozenset(
    {
        KafkaError._FENCED,  # pyright: ignore[reportPrivateUsage]
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)


class AssignmentError(HeadraceError):
    """The group's assignor does not give a member the same partition numbers of all topics."""


class SessionLostError(HeadraceError):
    """Producer and consumer are of no more use: state is dropped and restored with new ones."""

    retriable = True


def cause(error: KafkaException) -> Any:
    """The KafkaError of an exception."""
    return error.args[0]


def is_fenced(error: KafkaException) -> bool:
    """Whether the brokers take this producer for a former one of its transactional.id."""
    return cause(error).code() in FENCED_CODES
