"""Records read again by the offsets that a `source` names."""

from collections.abc import Iterable, Mapping
from typing import cast

from headrace.schemas.packing import unpack_offsets
from headrace.schemas.records import AttemptEvent, Reward, Source, Span
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.log_reader import LogReader, Partition, Place
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.transactional import LogEntry
from headrace.streams.settings import Settings

TOPICS = ("attempts", "spans", "rewards")
Found = Mapping[Place, Message]


class SourceReader:
    """Makes RolloutRecords from sources; many in one pass over the log."""

    def __init__(self, settings: Settings, log: LogReader) -> None:
        self._codec = Codec(settings)
        self._log = log

    def find(self, sources: Iterable[Source], topics: Iterable[str] = TOPICS) -> Found:
        """The messages that sources name, of some topics."""
        wanted: dict[Partition, set[int]] = {}
        for source in sources:
            for topic in topics:
                offsets = unpack_offsets(getattr(source, topic))
                if offsets:
                    wanted.setdefault((topic, source.partition), set()).update(offsets)
        return self._log.at(wanted)

    def entries(self, topic: str, partition: int, offsets: Iterable[int]) -> list[LogEntry]:
        """The log entries at offsets, for dead letters."""
        found = self._log.at({(topic, partition): offsets})
        return [LogEntry(*place, message.timestamp()[1] * 1000, message) for place, message in sorted(found.items())]

    def add(self, records: RolloutRecords, source: Source, found: Found, topics: Iterable[str] = TOPICS) -> int:
        """Adds a source's records in the log's order; how many are missing."""
        missing = 0
        for topic in topics:
            for offset in unpack_offsets(getattr(source, topic)):
                message = found.get((topic, source.partition, offset))
                if message is None:
                    missing += 1
                    continue
                try:
                    record = self._codec.decode(message.value())
                except DecodeError:  # it was read once: its schema can no longer be had
                    missing += 1
                    continue
                at = message.timestamp()[1]
                if topic == "attempts":
                    records.add_event(cast(AttemptEvent, record), offset, at)
                elif topic == "spans":
                    records.add_span(cast(Span, record), offset, at)
                else:
                    records.add_reward(cast(Reward, record), offset, at)
        return missing
