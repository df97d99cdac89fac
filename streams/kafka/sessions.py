"""A reader's life in sessions: one that is lost is followed by a new one with new clients, until it is stopped."""

import logging
import threading
from collections.abc import Callable

from headrace.streams.errors import HeadraceError

log = logging.getLogger(__name__)

PAUSE_SECONDS = 1.0  # between a lost session and the next


def run_sessions(
    name: str,
    session: Callable[[Callable[[], None]], None],
    stopping: threading.Event,
    ready: Callable[[], None],
    lost: Callable[[], None],
    *,
    at_start: tuple[type[HeadraceError], ...] = (),
) -> None:
    """Runs sessions until `stopping` is set.

    Args:
        name: of the reader, for the log.
        session: one session, from its clients' making to their end; it calls what it is given at each assignment.
        stopping: ends the session too, which looks at it between two batches.
        ready: called once, after the first assignment.
        lost: called for each session that ended in an error.
        at_start: retriable errors that are raised all the same before the first assignment.

    Raises:
        HeadraceError: of a session, if it is not retriable, or one of `at_start`.
    """
    told = False

    def assigned() -> None:
        nonlocal told
        if not told:
            told = True
            ready()

    while not stopping.is_set():
        try:
            session(assigned)
        except HeadraceError as error:
            if not error.retriable or (not told and isinstance(error, at_start)):
                raise
            log.warning("%s: %s; going on with new clients", name, error)
            lost()
            stopping.wait(PAUSE_SECONDS)
