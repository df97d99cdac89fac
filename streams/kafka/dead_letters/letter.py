"""The dead letter of a record: its key, bytes and headers as they came, and headers that say why.

Names and coding of the headers are Kafka Connect's (KIP-298), which Confluent's tools show too: text, numbers as well.
Connect's `task.id`, `class.name` and `exception.stacktrace` are left out: they say nothing of a record. A replay's
headers are Headrace's own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, cast

from headrace.schemas.claim_check import decode as decode_claim
from headrace.schemas.claim_check import is_claim_check
from headrace.streams.codec import DecodeError
from headrace.streams.kafka.messages import Headers, Message, OutMessage
from headrace.streams.topics import dead_letter_topic

REASON = "headrace.reason"
TOPIC = "__connect.errors.topic"
PARTITION = "__connect.errors.partition"
OFFSET = "__connect.errors.offset"
READER = "__connect.errors.connector.name"
STAGE = "__connect.errors.stage"
EXCEPTION = "__connect.errors.exception.class.name"
EXCEPTION_MESSAGE = "__connect.errors.exception.message"
LEFT_OUT = "headrace.left.out"
"""What of the record does not fit a dead letter; only where no claim-check store takes it."""

REPLAY_OF = "headrace.replay.of"
"""On a record that was replayed: the letter that it was, once for each replay, the first one first."""
REPLAY_COUNT = "headrace.replay.count"
REPLAYED = "headrace.replayed"
"""On a marker in the dead-letter topic: which replay of the first letter this is."""
REPLAYED_OFFSET = "headrace.replayed.offset"

DETAIL_CHARACTERS = 2000
KEY_REASONS = frozenset({"null_key", "undecodable_key", "wrong_key", "wrong_partition"})
VALUE_REASONS = frozenset(
    {"empty", "unknown_framing", "unknown_schema", "wrong_record", "malformed", "trailing_bytes"}
    | {"claim_missing", "claim_corrupt", "claim_foreign", "claim_too_large"}
)


class Place(NamedTuple):
    """The identity of a dead letter: where the record stood. The first letter of a place counts."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def parsed(cls, text: str) -> "Place | None":
        """The place that `str` of it names; None for any other text."""
        parts = text.rsplit("/", 2)
        if len(parts) != 3 or not (parts[0] and parts[1].isdecimal() and parts[2].isdecimal()):
            return None
        return cls(parts[0], int(parts[1]), int(parts[2]))


@dataclass(frozen=True)
class DeadLetter:
    """A dead letter as it stands in its topic.

    Attributes:
        at: when it was written, microseconds since the epoch.
        reason: one word, as in `DecodeError.reason` and the processors' own reasons.
        key, value, headers: the original ones; `value` may be a claim check.
        size: of the original value, in bytes.
        context: the headers that were added to them.
        replays: the letters that this record was before, the first one first.
        replay_count: how often the first of them was replayed until then.
        left_out: what of the record is not here, if anything.
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
    size: int
    headers: Headers
    context: Headers
    replays: tuple[Place, ...] = ()
    replay_count: int = 0
    left_out: str | None = None

    @property
    def place(self) -> Place:
        """Its identity: where its record stood, or where it stands itself if that never stood in a topic."""
        if not self.source_topic or self.source_partition < 0:
            return Place(self.topic, self.partition, self.offset)
        return Place(self.source_topic, self.source_partition, self.source_offset)

    @property
    def first(self) -> Place:
        """The letter that the chain of its replays began with."""
        return self.replays[0] if self.replays else self.place


def stage_of(reason: str) -> str:
    """Kafka Connect's name of the stage at which a record was refused."""
    if reason in KEY_REASONS:
        return "KEY_CONVERTER"
    return "VALUE_CONVERTER" if reason in VALUE_REASONS else "TASK_PUT"


def make(message: Message, reason: str, detail: str, reader: str) -> OutMessage:
    """The dead letter of a message, whatever its size."""
    headers = [*(cast(Headers, message.headers()) or []), *context_of(message, reason, detail, reader)]
    return OutMessage(dead_letter_topic(message.topic() or ""), message.key(), message.value(), headers)


def context_of(message: Message, reason: str, detail: str, reader: str) -> Headers:
    """The headers that a dead letter has besides the original ones; the first is REASON."""
    return [
        (REASON, reason),
        (TOPIC, message.topic() or ""),
        (PARTITION, str(message.partition())),
        (OFFSET, str(message.offset())),
        (READER, reader),
        (STAGE, stage_of(reason)),
        (EXCEPTION, f"{DecodeError.__module__}.{DecodeError.__qualname__}"),
        (EXCEPTION_MESSAGE, detail[:DETAIL_CHARACTERS].encode("utf-8", "backslashreplace")),
    ]


def parse(message: Message) -> DeadLetter:
    """The dead letter that a message of a dead-letter topic holds."""
    everything = cast(Headers, message.headers() or [])
    starts = [i for i, (name, _) in enumerate(everything) if name == REASON]
    start = starts[-1] if starts else len(everything)
    headers, context = everything[:start], everything[start:]
    last = {name: text_of(value) or "" for name, value in (context or everything)}
    places = (Place.parsed(text_of(value) or "") for name, value in headers if name == REPLAY_OF)
    return DeadLetter(
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        at=message.timestamp()[1] * 1000,
        reason=last.get(REASON, ""),
        detail=last.get(EXCEPTION_MESSAGE, ""),
        reader=last.get(READER, ""),
        source_topic=last.get(TOPIC, ""),
        source_partition=number_of(last.get(PARTITION)),
        source_offset=number_of(last.get(OFFSET)),
        key=message.key(),
        value=message.value(),
        size=_size(message.value()),
        headers=headers,
        context=context,
        replays=tuple(place for place in places if place is not None),
        replay_count=max((number_of(text_of(v)) for n, v in headers if n == REPLAY_COUNT), default=0),
        left_out=last.get(LEFT_OUT),
    )


def is_marker(message: Message) -> bool:
    """Whether a message of a dead-letter topic says that a letter was replayed, and is none itself."""
    names = {name for name, _ in cast(Headers, message.headers() or [])}
    return REPLAYED in names and REASON not in names


def text_of(value: str | bytes | None) -> str | None:
    """A header's value as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def number_of(text: str | None) -> int:
    """A header's number; -1 where it has none."""
    return int(text) if text is not None and text.isdecimal() and len(text) < 20 else -1


def without(headers: Headers, names: Iterable[str]) -> Headers:
    """Headers but for some."""
    gone = set(names)
    return [(name, value) for name, value in headers if name not in gone]


def _size(value: bytes | None) -> int:
    if value is not None and is_claim_check(value):
        try:
            return decode_claim(value).bytes
        except (ValueError, IndexError):  # only the header is a claim check's
            return len(value)
    return len(value or b"")
