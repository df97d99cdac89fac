"""Rows that are old are removed: rollouts that ended long ago, with all that belongs to them, in small transactions.

A rollout goes with its rows or stays with them. Its spans go first and its own row last, so that a removal that was
interrupted goes on where it stood; one that has not ended stays whatever its age. What belongs to no rollout (it came
after the rollout had gone, or its rollout was never known) goes by its own age.
"""

import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy import Connection, Engine, Table, delete, func, select, tuple_

from headrace.streams.errors import InvalidValueError
from headrace.streams.settings import Settings
from headrace.streams.view.database import SQLITE, telling
from headrace.streams.view.tables import attempts, horizon, offsets, rewards, rollouts, spans, trajectories, workers

LOOK_SECONDS = 600.0  # ages are days
DAY_SECONDS = 86_400
NOTHING_SECONDS = 1.0  # until it is known what time it is in the log
ROLLOUTS_AT_ONCE = 200
ROWS_AT_ONCE = 2000  # of a table and a transaction: some 100 ms, so that no writer waits long
OF_ROLLOUT = (spans, rewards, trajectories)  # in the order in which they go
Removed = dict[str, int]
"""Rows by table; a step that removes none is over."""


def check_age(settings: Settings, age: timedelta) -> timedelta:
    """The age, if rows may go when they are as old.

    Raises:
        InvalidValueError: records of a rollout may come that long after its end, and would stand there alone.
    """
    if age < settings.retention:
        days = settings.retention.total_seconds() / DAY_SECONDS
        raise InvalidValueError(
            f"rows of rollouts that ended less than {days:g} days ago stay: rewards and revisions may still come for "
            "them, and the topics still have them (feedback_window + max_open + 1 d); give a longer time"
        )
    return age


class Pruner:
    """Removes what is older than an age, a step at a time. For one thread.

    Time is the log's, as far as the view has read it, and never later than this machine's: a clock that is wrong
    removes nothing. Times are microseconds since the epoch.

    Args:
        age: what ended so long ago goes; None leaves it at what was not whole when the tables were made.
    """

    def __init__(self, engine: Engine, settings: Settings, age: timedelta | None) -> None:
        self._engine = engine
        self._age = None if age is None else _us(age)
        self._max_open = _us(settings.max_open)
        self._whole = _us(settings.retention - settings.max_open)  # what ended since began within the retention
        self._next_look = 0.0
        self._steps: list[Callable[[Connection], Removed]] = []

    @property
    def pending(self) -> bool:
        """Whether there is a step to take."""
        return bool(self._steps)

    def look(self, monotonic: float, wall: int) -> None:
        """Finds out what is old now, once in a while, and unless what was old before is not gone yet.

        Raises:
            DatabaseUnavailableError: no answer.
        """
        if self._steps or monotonic < self._next_look:
            return
        self._next_look = monotonic + NOTHING_SECONDS
        with telling(self._engine), self._engine.begin() as connection:
            newest = connection.execute(select(func.max(workers.c.log_at))).scalar()  # they beat, and are few
            if newest is None:
                return
            now = min(newest, wall)
            limit = self._limit(connection, now)
            partitions = connection.execute(select(offsets.c.partition).distinct()).scalars().all()
        self._next_look = monotonic + LOOK_SECONDS
        if limit <= 0:
            return
        self._steps = [
            partial(_old_rollouts, limit=limit),
            *(partial(_old_trajectories, partition=p, limit=limit) for p in partitions),
            *(Alone(table, p, limit, self._max_open) for table in (spans, rewards) for p in partitions),
            partial(_old_workers, limit=limit),
        ]

    def _limit(self, connection: Connection, now: int) -> int:
        since: int | None = connection.execute(select(horizon.c.whole_since)).scalar()
        if since is None:
            since = now - self._whole
            connection.execute(horizon.update().values(whole_since=since))
        return max(since, 0 if self._age is None else now - self._age)

    def step(self) -> Removed:
        """One transaction, and what it removed. Raises as `look`."""
        if not self._steps:
            return {}
        with telling(self._engine), self._engine.begin() as connection:
            removed = self._steps[0](connection)
        if not removed:
            del self._steps[0]
        return removed


def prune(pruner: Pruner, wall: int, sleep: Callable[[float], None] = time.sleep) -> Removed:
    """Removes all that is old; what was removed. Writers have half of the time for themselves.

    Raises:
        DatabaseUnavailableError: no answer; what is gone by then is gone.
    """
    pruner.look(0.0, wall)
    total: Removed = {}
    while pruner.pending:
        began = time.monotonic()
        removed = pruner.step()
        for table, count in removed.items():
            total[table] = total.get(table, 0) + count
        if removed:
            sleep(time.monotonic() - began)
    return total


def _old_rollouts(connection: Connection, limit: int) -> Removed:
    old = (
        select(rollouts.c.rollout_id)
        .where(rollouts.c.enqueued_at < limit, rollouts.c.ended_at < limit, rollouts.c.log_at < limit)
        .order_by(rollouts.c.enqueued_at)
        .limit(ROLLOUTS_AT_ONCE)
    )
    if connection.dialect.name != SQLITE:  # another may write there meanwhile; a transaction of SQLite is alone
        old = old.with_for_update(skip_locked=True)
    ids = connection.execute(old).scalars().all()
    if not ids:
        return {}
    removed: Removed = {}
    for table in OF_ROLLOUT:
        keys = list(table.primary_key.columns)
        some = select(*keys).where(table.c.rollout_id.in_(ids)).limit(ROWS_AT_ONCE)
        removed[table.name] = connection.execute(delete(table).where(tuple_(*keys).in_(some))).rowcount
        if removed[table.name] == ROWS_AT_ONCE:  # there are more: the rollouts stay until those are gone
            return removed
    for table in (attempts, rollouts):
        removed[table.name] = connection.execute(delete(table).where(table.c.rollout_id.in_(ids))).rowcount
    return removed


def _old_trajectories(connection: Connection, partition: int, limit: int) -> Removed:
    """Those that are left: a trajectory is no older than the end of its rollout."""
    rows = _stretch(connection, trajectories, partition, -1, limit, ROWS_AT_ONCE)
    if not rows:
        return {}
    c = trajectories.c
    gone = delete(trajectories).where(c.log_partition == partition, c.log_offset <= rows[-1].log_offset)
    return {trajectories.name: connection.execute(gone).rowcount}


class Alone:
    """Goes through the old rows of a partition in the log's order, and removes those without a rollout."""

    def __init__(self, table: Table, partition: int, limit: int, max_open: int) -> None:
        self._table = table
        self._partition = partition
        self._limit = limit
        self._max_open = max_open
        self._place = -1
        self._newest: int | None = None

    def __call__(self, connection: Connection) -> Removed:
        table = self._table
        while rows := _stretch(connection, table, self._partition, self._place, self._limit, ROLLOUTS_AT_ONCE):
            ids = {row.rollout_id for row in rows}
            there = select(rollouts.c.rollout_id).where(rollouts.c.rollout_id.in_(ids))
            known = set(connection.execute(there).scalars())
            alone = [row for row in rows if row.rollout_id not in known]
            if alone and alone[-1].log_at >= self._read_to(connection):
                return {}
            self._place = rows[-1].log_offset
            if alone:
                places = [row.log_offset for row in alone]
                gone = delete(table).where(table.c.log_partition == self._partition, table.c.log_offset.in_(places))
                return {table.name: connection.execute(gone).rowcount}
        return {}

    def _read_to(self, connection: Connection) -> int:
        """A row that is older has its rollout's row beside it, or will never have one.

        That of its rollout is written by the end of the longest time for which one may be open.
        """
        if self._newest is None:
            newest = select(func.max(rollouts.c.log_at)).where(rollouts.c.log_partition == self._partition)
            self._newest = int(connection.execute(newest).scalar() or 0)
        return self._newest - self._max_open


def _stretch(connection: Connection, table: Table, partition: int, after: int, before: int, most: int) -> list[Any]:
    """The next rows of a partition, in the log's order, up to the first that was appended at a time or later."""
    c = table.c
    wanted = select(c.log_offset, c.rollout_id, c.log_at).where(c.log_partition == partition, c.log_offset > after)
    rows: list[Any] = []
    for row in connection.execute(wanted.order_by(c.log_offset).limit(most)):
        if row.log_at >= before:
            break
        rows.append(row)
    return rows


def _old_workers(connection: Connection, limit: int) -> Removed:
    count = connection.execute(delete(workers).where(workers.c.log_at < limit)).rowcount
    return {workers.name: count} if count else {}


def _us(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1e6)
