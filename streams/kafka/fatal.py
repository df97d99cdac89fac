"""Errors after which a consumer reads nothing more."""

from typing import Any

from confluent_kafka import KafkaError

FATAL = KafkaError._FATAL  # pyright: ignore[reportPrivateUsage]
# librdkafka hands a fatal error out by poll as one of its own code, which does not count as fatal, and names the
# broker's error in its text only.
WRAPPED = (KafkaError.UNRELEASED_INSTANCE_ID, KafkaError.FENCED_INSTANCE_ID)


def is_fatal(error: Any) -> bool:
    """Whether the consumer that polled this KafkaError has to be replaced."""
    return bool(error.fatal()) or error.code() == FATAL


def code_of(error: Any) -> int:
    """The broker's code of a KafkaError, unwrapped from a fatal one where its text names one that we act on."""
    code = int(error.code())
    if code == FATAL:
        return next((c for c in WRAPPED if KafkaError(c).str() in error.str()), code)
    return code
