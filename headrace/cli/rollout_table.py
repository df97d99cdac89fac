"""Rollouts for people: a table, and one that changes while they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queue import SimpleQueue

    from headrace.schemas.records import RolloutState

STATUSES = ("queuing", "preparing", "running", "succeeded", "failed", "requeuing", "cancelled")
WATCH_SECONDS = 0.5
WATCHED = 15
"""Rollouts that the live table shows, the last that changed."""


def rollout_table(states: list[RolloutState]) -> Any:
    """A row a rollout."""
    from rich.table import Table

    from headrace.streams.kafka.clock import wall_us

    now = wall_us()
    table = Table("rollout", "status", "mode", "run", "group", "attempts", "enqueued", "ended (UTC)", "error")
    for s in states:
        error = next((a.error for a in reversed(s.attempts) if a.error), None)
        table.add_row(
            s.rollout_id,
            s.status,
            s.mode or "",
            s.run_id or "",
            f"{s.group_id} {s.sample_index + 1}/{s.group_size}" if s.group_id else "",
            str(len(s.attempts)),
            moment(s.enqueued_at, now),
            moment(s.ended_at, now),
            f"{error.type.rpartition('.')[2]}: {error.message}"[:80] if error else "",
        )
    return table


def moment(at: int | None, now: int) -> str:
    """A time for people, with its date where it is not of today; microseconds since the epoch, UTC."""
    from datetime import UTC, datetime

    if not at:
        return ""
    then = datetime.fromtimestamp(at / 1e6, UTC)
    of_today = then.date() == datetime.fromtimestamp(now / 1e6, UTC).date()
    return then.strftime("%H:%M:%S.%f" if of_today else "%Y-%m-%d %H:%M:%S.%f")[:-3]


def watch_table(changes: SimpleQueue[RolloutState]) -> None:
    """Shows the rollouts that changed last, until it is interrupted."""
    import time
    from collections import Counter

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    states: dict[str, RolloutState] = {}
    with Live(refresh_per_second=4) as live:
        while True:
            while not changes.empty():
                state = changes.get()
                states.pop(state.rollout_id, None)  # so that the last that changed stands last
                states[state.rollout_id] = state
            counts = Counter(s.status for s in states.values())
            line = "  ".join(f"{name} {counts[name]}" for name in STATUSES if counts[name])
            live.update(Group(Text(line or "no rollouts yet"), rollout_table(list(states.values())[-WATCHED:])))
            time.sleep(WATCH_SECONDS)
