"""The loop around the sessions: a lost one is followed by a new one, which reads on where the database stands."""

import threading
import time
from collections.abc import Callable

from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.sessions import run_sessions
from headrace.streams.settings import Settings
from headrace.streams.view.pruning import Pruner
from headrace.streams.view.session import NAME, ViewSession
from headrace.streams.view.writer import ViewWriter

PRUNE_SECONDS = 0.1  # of a turn, which is a quarter of a second where nothing comes


class ViewLoop:
    """Reads the pipeline's topics as a group and keeps the database's rows.

    Attributes:
        counters: records read by topic, dead letters by reason, transactions, rows pruned by table.
    """

    name = NAME

    def __init__(self, settings: Settings, writer: ViewWriter, pruner: Pruner, worker_id: str) -> None:
        self.counters: dict[str, int] = {}
        self._settings = settings
        self._writer = writer
        self._pruner = pruner
        self._worker_id = worker_id
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Ends `run` after the batch under way; callable from any thread."""
        self._stopping.set()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Runs until `stop`; calls `ready` once, after the first assignment.

        Raises:
            ViewError: the database cannot be used as it is.
            BrokerUnavailableError, DatabaseUnavailableError: no answer at the start; later ones are waited for.
        """
        run_sessions(
            NAME,
            self._run_session,
            self._stopping,
            ready,
            lambda: self._count("sessions_lost", 1),
            at_start=(HeadraceError,),
        )

    def _run_session(self, assigned: Callable[[], None]) -> None:
        session = ViewSession(self._settings, self._writer, self._worker_id, self._count, assigned)
        try:
            while not self._stopping.is_set():
                session.turn()
                self._prune()
        finally:
            session.close()

    def _prune(self) -> None:
        """Some of what is old; reading goes on in between."""
        began = time.monotonic()
        self._pruner.look(began, wall_us())
        while self._pruner.pending and time.monotonic() - began < PRUNE_SECONDS:
            for table, count in self._pruner.step().items():
                self._count(f"pruned_{table}", count)

    def _count(self, name: str, more: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + more
