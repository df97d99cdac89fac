"""Records read again by the offsets that a `source` names."""

from collections.abc import Iterable, Mapping
from typing import cast

from headrace.schemas.packing import unpack_offsets
from headrace.schemas.records import AttemptEvent, Reward, Source, Span
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.rereading import Found, Rereader
from headrace.streams.settings import Settings

TOPICS = ("attempts", "spans", "rewards")


class SourceReader:
    """Makes RolloutRecords from sources; many in one pass over the log."""

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._topics = {topic: settings.topic(topic) for topic in TOPICS}
        self._codec = Codec(settings)
        self._rereader = Rereader(settings, client_id)

    def find(self, sources: Iterable[Source], topics: Iterable[str] = TOPICS) -> Found:
        """The messages that sources name, of some topics."""
        wanted: dict[tuple[str, int], set[int]] = {}
        for source in sources:
            for topic in topics:
                offsets = unpack_offsets(getattr(source, topic))
                if offsets:
                    wanted.setdefault((self._topics[topic], source.partition), set()).update(offsets)
        return self._rereader.read(wanted)

    def messages(self, wanted: Mapping[tuple[str, int], Iterable[int]]) -> Found:
        """The messages at offsets, by (full topic name, partition)."""
        return self._rereader.read(wanted)

    def add(self, records: RolloutRecords, source: Source, found: Found, topics: Iterable[str] = TOPICS) -> int:
        """Adds a source's records in the log's order; how many are missing."""
        missing = 0
        for topic in topics:
            for offset in unpack_offsets(getattr(source, topic)):
                message = found.get((self._topics[topic], source.partition, offset))
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
