"""The assembler's memory of partitions, made from the assembled topic: a million closed rollouts in seconds."""

from collections.abc import Callable, Sequence
from typing import cast

from headrace.schemas.packing import unpack_offsets
from headrace.schemas.records import Assembled
from headrace.streams.assembly.closed import CLOSED
from headrace.streams.assembly.external import ORIGIN
from headrace.streams.assembly.memory import PartitionMemory, restored
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.sources import SourceReader
from headrace.streams.ends import Attempt
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.messages import ASSEMBLED_ORIGIN, ASSEMBLED_STATE, Headers, Message
from headrace.streams.kafka.transactional import LogEntry
from headrace.streams.kafka.transactional.intake import Intake, RefusedError
from headrace.streams.settings import Settings

ASSEMBLED = "assembled"
OPEN, WAITING = "open", "waiting"
CLOSED_HEADERS = [(ASSEMBLED_STATE, CLOSED.encode())]
EXTERNAL_HEADERS = [*CLOSED_HEADERS, (ASSEMBLED_ORIGIN, ORIGIN.encode())]
NO_OFFSET = 1 << 62
Refuse = Callable[[LogEntry, str, str], None]


def state_of(latest: Attempt | None) -> str:
    """The state of a rollout that is freed while it is open."""
    return WAITING if latest is not None and latest.end is not None else OPEN


class Restorer:
    """Reads memories. Of a closed rollout only key and header are looked at."""

    def __init__(self, settings: Settings, log: LogReader, sources: SourceReader) -> None:
        self._settings = settings
        self._log = log
        self._sources = sources

    def restore(self, partitions: Sequence[int], refuse: Refuse) -> dict[int, PartitionMemory]:
        """The memories of partitions, to the read_uncommitted end as of now.

        Args:
            refuse: is told of each record that cannot be used, and why.
        """
        memories = {p: PartitionMemory(p) for p in partitions}
        unfinished: dict[str, tuple[Assembled, int]] = {}
        intake = Intake(self._settings, (ASSEMBLED,), self._log.count(ASSEMBLED))
        for message in self._log.whole(ASSEMBLED, partitions):
            try:
                self._take(memories[message.partition() or 0], message, intake, unfinished)
            except RefusedError as refusal:
                refuse(LogEntry.of(ASSEMBLED, message), refusal.reason, str(refusal))
        self._open(memories, unfinished)
        return memories

    @staticmethod
    def _take(
        memory: PartitionMemory, message: Message, intake: Intake, unfinished: dict[str, tuple[Assembled, int]]
    ) -> None:
        offset = message.offset() or 0
        rollout_id = intake.text_of_key(ASSEMBLED, message)
        if message.value() is None:  # removed long after its close: nothing of it comes any more
            memory.closed.discard(rollout_id)
            memory.segments.forget(rollout_id)
            unfinished.pop(rollout_id, None)
            return
        headers = cast(Headers | None, message.headers())
        if headers == EXTERNAL_HEADERS:
            memory.segments.closed(rollout_id)
        elif headers != CLOSED_HEADERS:
            assembled = cast(Assembled, intake.record(ASSEMBLED, message))
            if assembled.state != CLOSED:
                _check(assembled, message)
                unfinished[rollout_id] = (assembled, offset)
                return
        memory.closed.add(rollout_id, offset)
        unfinished.pop(rollout_id, None)

    def _open(self, memories: dict[int, PartitionMemory], unfinished: dict[str, tuple[Assembled, int]]) -> None:
        found = self._sources.find((assembled.source for assembled, _ in unfinished.values()), ("attempts",))
        for rollout_id, (assembled, offset) in unfinished.items():
            memory = memories[assembled.source.partition]
            records = RolloutRecords(rollout_id, memory.number)
            self._sources.add(records, assembled.source, found, ("attempts",))
            facts = records.judge.facts
            rollout = memory.open[rollout_id] = restored(assembled, records, offset)
            memory.segments.opened(rollout_id)
            if facts is not None and facts.origin == ORIGIN:
                memory.external[rollout_id] = rollout


def _check(assembled: Assembled, message: Message) -> None:
    """The places that it names are read next."""
    source = assembled.source
    offsets = [o for packed in (source.attempts, source.spans, source.rewards) for o in unpack_offsets(packed)]
    if source.partition != message.partition() or not all(0 <= offset < NO_OFFSET for offset in offsets):
        raise RefusedError("malformed", "its source names places that are none of its partition")
