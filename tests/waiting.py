"""Waiting for a condition instead of sleeping."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_SECONDS = 90.0
LOOK_SECONDS = 0.1
T = TypeVar("T")


def until(
    condition: Callable[[], T], seconds: float = PATIENCE_SECONDS, *, what: str = "", look: float = LOOK_SECONDS
) -> T:
    """Calls a function until what it returns is true, and returns that."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what or "waited in vain"
        time.sleep(look)
    return found


async def eventually(
    condition: Callable[[], T], seconds: float = PATIENCE_SECONDS, *, what: str = "", look: float = 0.02
) -> T:
    """`until` for conditions that coroutines of this thread bring about."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what or "waited in vain"
        await asyncio.sleep(look)
    return found
