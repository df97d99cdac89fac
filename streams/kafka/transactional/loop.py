"""The loop around the sessions: a lost one is followed by a new one, a fenced process ends."""

import threading
from collections.abc import Callable

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.sessions import run_sessions
from headrace.streams.kafka.transactional.processor import Processor
from headrace.streams.kafka.transactional.session import Session
from headrace.streams.settings import Settings


class TransactionalLoop:
    """Reads co-partitioned topics as a group, and commits outputs and offsets in one transaction.

    An error of the broker or of the group drops all state; a new producer and consumer restore it. Exactly-once holds
    through kill -9 at any moment (KIP-98, KIP-447).
    """

    def __init__(self, settings: Settings, processor: Processor, worker_id: str) -> None:
        """`worker_id` is stable over restarts: two processes with one id fence each other."""
        self._settings = settings
        self._processor = processor
        self._worker_id = worker_id
        self._stopping = threading.Event()

    @property
    def name(self) -> str:
        """The processor's."""
        return self._processor.name

    @property
    def counters(self) -> dict[str, int]:
        """The processor's."""
        return self._processor.counters

    def stop(self) -> None:
        """Ends `run` after the transaction under way; callable from any thread."""
        self._stopping.set()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Runs until `stop`; calls `ready` once, after the first assignment is restored.

        Raises:
            FencedError: another process has taken this worker's id.
            AssignmentError: the group's topics are not assigned together.
            BrokerUnavailableError: there was no broker at the start; later ones are waited for.
        """
        run_sessions(
            self.name,
            self._run_session,
            self._stopping,
            ready,
            lambda: self._processor.count("sessions_lost"),
            at_start=(BrokerUnavailableError,),
        )

    def _run_session(self, assigned: Callable[[], None]) -> None:
        session = Session(self._settings, self._processor, self._worker_id, assigned, self._stopping.is_set)
        try:
            while not self._stopping.is_set():
                session.turn()
            session.write()
        finally:
            session.close()
