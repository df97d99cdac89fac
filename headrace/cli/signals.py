"""How commands that run until they are told hear of it."""

import logging
import signal
import threading
from types import FrameType

log = logging.getLogger(__name__)


def stop_on_signal() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()

    def handler(number: int, frame: FrameType | None) -> None:
        log.info("stopping")
        stop.set()

    signal.signal(signal.SIGTERM, handler)
    signal.signal(signal.SIGINT, handler)
    return stop
