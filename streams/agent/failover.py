"""Calls through `llm.client()` go to a gateway that answers, though that of the rollout's URL may have died since."""

import itertools
from collections.abc import Callable, Sequence
from urllib.parse import SplitResult, urlsplit

Gateways = Callable[[], tuple[Sequence[str], Sequence[str]]]
"""URLs of the gateways that answer now, and of all that rollouts were ever sent to."""

_gateways: Gateways | None = None
_turn = itertools.count()


def use_gateways(gateways: Gateways | None) -> None:
    """Says where gateways are; None: every call goes where its URL says."""
    global _gateways
    _gateways = gateways


def redirected(url: str) -> SplitResult | None:
    """The URL of a live gateway for a call at a URL; None if it is right where it is.

    A gateway keeps nothing of a rollout: every one answers every call.
    """
    if _gateways is None:
        return None
    live, known = _gateways()
    origin = _origin(url)
    if not live or origin in map(_origin, live) or origin not in map(_origin, known):
        return None
    return urlsplit(live[next(_turn) % len(live)])


def _origin(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    return parts.hostname, parts.port
