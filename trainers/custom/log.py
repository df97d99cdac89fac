"""The journal on the training topic: one writer a run, and each entry in one transaction with what it stands for."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence

from headrace.schemas.records import JournalEntry, Record, RunManifest, Task
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import BrokerUnavailableError, UnavailableError
from headrace.streams.kafka.dead_letters.writer import FollowerLetters
from headrace.streams.kafka.reading import read_topic
from headrace.streams.kafka.transactional.errors import SessionLostError
from headrace.streams.settings import Settings
from headrace.trainers.custom.journal import Journal
from headrace.trainers.history import PASSED_OVER
from headrace.trainers.publish import Publisher

log = logging.getLogger(__name__)

REJOIN_SECONDS = 1.0
TASKS_AT_ONCE = 2_000  # a transaction of so many small tasks takes a fraction of its time-out
BYTES_AT_ONCE = 8 * 1024 * 1024


class JournalLog:
    """Reads and writes the journal of one run; making it fences whoever wrote before. All methods may block.

    Attributes:
        manifest: of the run; None if it has not begun.
        journal: what the run has done.
        began_ms: append time of the run's first record, milliseconds since the epoch.
    """

    def __init__(self, settings: Settings, run_id: str, stopping: threading.Event) -> None:
        self._settings = settings
        self._run_id = run_id
        self._stopping = stopping
        self._codec = Codec(settings)
        self._letters = FollowerLetters(settings, f"trainer-{run_id}")
        self._publisher: Publisher | None = None
        self.manifest: RunManifest | None = None
        self.journal = Journal(run_id)
        self.began_ms: int | None = None
        self._join()

    def begin(self, manifest: RunManifest) -> None:
        """Writes the run's manifest, once."""
        self._insisting([manifest], lambda: self.manifest is not None)
        self._read()

    def commit(self, entry: JournalEntry, records: Sequence[Record]) -> JournalEntry:
        """Writes an entry and its records; the entry of its place, which may be another one of this run's.

        Raises:
            FencedError: another process has taken over the run.
            SessionLostError, UnavailableError: it is told to stop, and the brokers or a store are away.
        """
        *firsts, last = _portions(records)
        for portion in firsts:  # without their entry they are written again; lifecycle knows tasks that come twice
            self._insisting(portion, lambda: False)
        self._insisting([*last, entry], lambda: entry.place in self.journal)
        return self.journal.add(entry)

    def close(self) -> None:
        """Lets the producer go; an open transaction is aborted."""
        if self._publisher is not None:
            self._publisher.close()

    def _insisting(self, records: Sequence[Record], written: Callable[[], bool]) -> None:
        """One transaction, again for as long as the brokers are away; what the log has then is not written again."""
        while True:
            try:
                if self._publisher is None:
                    self._join()
                    if written():
                        return
                assert self._publisher is not None
                self._publisher.publish(records)
                return
            except (SessionLostError, BrokerUnavailableError, UnavailableError) as error:
                if self._stopping.is_set():
                    raise
                log.warning("%s; trying again", error)
                self.close()
                self._publisher = None
                self._stopping.wait(REJOIN_SECONDS)

    def _join(self) -> None:
        self._publisher = Publisher(self._settings, self._run_id, self._stopping.is_set)
        self._read()

    def _read(self) -> None:
        for record, at_ms in self._records():
            if self.began_ms is None:
                self.began_ms = at_ms
            if isinstance(record, RunManifest):
                self.manifest = self.manifest or record
            elif isinstance(record, JournalEntry):
                self.journal.add(record)

    def _records(self) -> Iterator[tuple[Record, int]]:
        topic = self._settings.topic("training")
        for message in read_topic(self._settings, topic, [0], client_id=f"trainer-{self._run_id}-journal"):
            if message.key() != self._run_id.encode():
                continue
            try:
                yield self._codec.decode(message.value()), message.timestamp()[1]
            except DecodeError as error:
                if error.reason not in PASSED_OVER:
                    raise
                self._letters.write(message, error.reason, str(error))


def _portions(records: Sequence[Record]) -> list[list[Record]]:
    """Records in their order, cut where one transaction would become too large; at least one portion, maybe empty."""
    portions: list[list[Record]] = [[]]
    size = 0
    for record in records:
        size += len(record.input) if isinstance(record, Task) else 0
        if portions[-1] and (len(portions[-1]) >= TASKS_AT_ONCE or size > BYTES_AT_ONCE):
            portions.append([])
            size = len(record.input) if isinstance(record, Task) else 0
        portions[-1].append(record)
    return portions
