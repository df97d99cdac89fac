"""How long after a kill, or after waking from a stop, a part works again, by the log. Pure; see docs/chaos.md."""

import math
from collections.abc import Callable, Iterable, Sequence

from tests.chaos.entries import Disturbance, Entry, Log

ANNOUNCED = ("gateway", "sync", "view")
"""Parts whose first sign of life is an announcement in workers."""


def recoveries(log: Log, disturbances: Sequence[Disturbance], what: str) -> dict[str, list[float]]:
    """Seconds of each part's recoveries.

    A disturbance whose part was hit again before it had recovered gives no figure, nor does one without any progress
    after it.

    Args:
        what: `kill`, counted from the kill; or `stop`, counted from the waking.
    """
    found: dict[str, list[float]] = {}
    for index, disturbance in enumerate(disturbances):
        if disturbance.what != what:
            continue
        since = disturbance.since if what == "kill" else disturbance.until
        at = first_progress(log, disturbance)
        if at is None:
            continue
        if any(d.name == disturbance.name and since <= d.since <= at for d in disturbances[index + 1 :]):
            continue
        found.setdefault(disturbance.part, []).append((at - since) / 1000)
    return found


def percentiles(seconds: Iterable[float]) -> dict[str, float]:
    """p50 and p99 by nearest rank, and how many there are."""
    ordered = sorted(seconds)
    return {f"p{p}": round(_rank(ordered, p), 2) for p in (50, 99)} | {"n": len(ordered)}


def first_progress(log: Log, disturbance: Disturbance) -> int | None:
    """When the part got on with its work for the first time, milliseconds since the epoch.

    What is known to be of the process itself counts from its restart or waking: what the killed one had sent may reach
    the log after its death. Of processors it is asked when the work goes on, wherever.
    """
    part, name, since = disturbance.part, disturbance.name, disturbance.until
    if part == "runner":
        return _first(log.attempts, since, lambda e: e["worker_id"] == name and e["lost_reason"] != "lease")
    if part == "trainer":
        return _first(log.training, since, lambda e: e["window"] is not None)
    if part == "broker":
        return _first(log.attempts, since, lambda e: True)
    if part == "engine":
        return _first(log.workers, since, lambda e: e.key == name and (e["loaded_version"] or 0) > 0)
    if part in ANNOUNCED:
        return _first(log.workers, since, lambda e: e.key == name and e["status"] != "gone")
    if disturbance.what == "kill":
        since = disturbance.since
    return _all_partitions(log.rollouts if part == "lifecycle" else log.assembled, since)


def _first(entries: Iterable[Entry], since: int, counts: Callable[[Entry], bool]) -> int | None:
    return min((e.at for e in entries if e.at >= since and e.value is not None and counts(e)), default=None)


def _all_partitions(entries: Sequence[Entry], since: int) -> int | None:
    """When the last of the partitions that go on at all has got its first record."""
    first: dict[int, int] = {}
    for entry in entries:
        if entry.at >= since:
            first[entry.partition] = min(entry.at, first.get(entry.partition, entry.at))
    return max(first.values(), default=None)


def _rank(ordered: list[float], percent: int) -> float:
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
