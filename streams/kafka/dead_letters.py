"""What a reader cannot read goes to `<topic>.dlq`: the original key, bytes and headers, and why.

Header names are those of Kafka Connect (KIP-298); `headrace.reason` is the one word that counters use too.
"""

from dataclasses import dataclass
from typing import cast

from headrace.streams.codec import DecodeError
from headrace.streams.kafka.messages import Headers, Message, OutMessage
from headrace.streams.topics import dead_letter_topic

REASON = "headrace.reason"
READER = "headrace.reader"
TOPIC = "__connect.errors.topic"
PARTITION = "__connect.errors.partition"
OFFSET = "__connect.errors.offset"
EXCEPTION = "__connect.errors.exception.class.name"
EXCEPTION_MESSAGE = "__connect.errors.exception.message"


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter as it stands in its topic.

    Attributes:
        at: when it was written, microseconds since the epoch.
        reason: one word, as in `DecodeError.reason` and the processors' own reasons.
    """

    topic: str
    partition: int
    offset: int
    at: int
    reason: str
    detail: str
    reader: str
    source_topic: str
    source_partition: int
    source_offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def make(message: Message, reason: str, detail: str, reader: str) -> OutMessage:
    """The dead letter of a message."""
    topic = message.topic() or ""
    headers: Headers = [
        *(cast(Headers, message.headers()) or []),
        (REASON, reason),
        (READER, reader),
        (TOPIC, topic),
        (PARTITION, str(message.partition())),
        (OFFSET, str(message.offset())),
        (EXCEPTION, DecodeError.__name__),
        (EXCEPTION_MESSAGE, detail),
    ]
    return OutMessage(dead_letter_topic(topic), message.key(), message.value(), headers)


def parse(message: Message) -> DeadLetter:
    """The dead letter that a message of a dead-letter topic holds."""
    headers = cast(Headers, message.headers() or [])
    last = {name: (value.decode("utf-8", "replace") if isinstance(value, bytes) else value) for name, value in headers}

    def number(name: str) -> int:
        text = last.get(name) or ""
        return int(text) if text.lstrip("-").isdigit() else -1

    return DeadLetter(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        at=message.timestamp()[1] * 1000,
        reason=last.get(REASON) or "",
        detail=last.get(EXCEPTION_MESSAGE) or "",
        reader=last.get(READER) or "",
        source_topic=last.get(TOPIC) or "",
        source_partition=number(PARTITION),
        source_offset=number(OFFSET),
        key=message.key(),
        value=message.value(),
        headers=headers,
    )
