"""Lost sessions are followed by new ones; what cannot be mended is raised."""

import threading
from collections.abc import Callable

import pytest

from headrace.streams.errors import BrokerUnavailableError, HeadraceError
from headrace.streams.kafka import sessions
from headrace.streams.kafka.sessions import run_sessions
from headrace.streams.kafka.transactional.errors import AssignmentError, SessionLostError

Step = HeadraceError | None


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "PAUSE_SECONDS", 0.0)


class Reader:
    """Sessions that end as they are told: in an error before or after the assignment, or by a stop (None)."""

    def __init__(self, *ends: tuple[bool, Step]) -> None:
        self.ends = list(ends)
        self.stopping = threading.Event()
        self.ready = 0
        self.lost = 0

    def session(self, assigned: Callable[[], None]) -> None:
        is_assigned, error = self.ends.pop(0)
        if is_assigned:
            assigned()
        if error is not None:
            raise error
        self.stopping.set()

    def _ready(self) -> None:
        self.ready += 1

    def _lost(self) -> None:
        self.lost += 1

    def run(self, *at_start: type[HeadraceError]) -> None:
        run_sessions("reader", self.session, self.stopping, self._ready, self._lost, at_start=at_start)


def test_lost_sessions_are_followed_by_new_ones_and_ready_is_told_once():
    reader = Reader((False, SessionLostError("gone")), (True, BrokerUnavailableError("away")), (True, None))
    reader.run()
    assert (reader.ready, reader.lost, reader.ends) == (1, 2, [])


def test_what_is_not_retriable_is_raised():
    reader = Reader((True, AssignmentError("odd")), (True, None))
    with pytest.raises(AssignmentError):
        reader.run()
    assert reader.lost == 0


def test_an_error_of_the_start_is_raised_there_and_waited_for_later():
    reader = Reader((True, BrokerUnavailableError("away")), (True, None))
    reader.run(BrokerUnavailableError)
    assert reader.lost == 1
    with pytest.raises(BrokerUnavailableError):
        Reader((False, BrokerUnavailableError("away"))).run(BrokerUnavailableError)
