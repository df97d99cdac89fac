"""What is asked of the view, as SQL."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, Table, and_, false, func, or_, select

from headrace.schemas.records import RolloutState
from headrace.streams.view.database import has_tables, open_database, telling
from headrace.streams.view.errors import ViewError
from headrace.streams.view.fields import fields_of, rollout_of
from headrace.streams.view.selection import Condition, Selection
from headrace.streams.view.source import CHANGED_AT, Fields
from headrace.streams.view.tables import attempts, rewards, rollouts, spans, trajectories

IDS_AT_ONCE = 500


class SqlSource:
    """Answers from the view; as new as `headrace processor view` has read."""

    def __init__(self, url: str) -> None:
        """Raises ViewError where there is no view."""
        self._engine: Engine = open_database(url, read_only=True)
        if not has_tables(self._engine, rollouts.name):
            raise ViewError(f"{url} has no view; `headrace processor view --database {url}` makes one")

    def close(self) -> None:
        self._engine.dispose()

    def rollouts(self, selection: Selection) -> list[RolloutState]:
        statement = select_in_sql(select(rollouts), selection, _rollout_column)
        with telling(self._engine), self._engine.connect() as connection:
            rows = connection.execute(statement).mappings().all()
            by_rollout: dict[str, list[Any]] = defaultdict(list)
            ids = [row["rollout_id"] for row in rows]
            for at in range(0, len(ids), IDS_AT_ONCE):
                some = attempts.c.rollout_id.in_(ids[at : at + IDS_AT_ONCE])
                ordered = select(attempts).where(some).order_by(attempts.c.rollout_id, attempts.c.position)
                for row in connection.execute(ordered).mappings():
                    by_rollout[row["rollout_id"]].append(row)
        return [rollout_of(row, by_rollout[row["rollout_id"]]) for row in rows]

    def rollout(self, rollout_id: str) -> RolloutState | None:
        with telling(self._engine), self._engine.connect() as connection:
            row = connection.execute(select(rollouts).where(rollouts.c.rollout_id == rollout_id)).mappings().first()
            of_it = select(attempts).where(attempts.c.rollout_id == rollout_id).order_by(attempts.c.position)
            its_attempts = connection.execute(of_it).mappings().all()
        return None if row is None else rollout_of(row, its_attempts)

    def spans(self, rollout_id: str) -> list[Fields]:
        return self._of_rollout(spans, rollout_id)

    def rewards(self, rollout_id: str) -> list[Fields]:
        return self._of_rollout(rewards, rollout_id)

    def trajectory(self, rollout_id: str, group_id: str | None) -> Fields | None:
        found = self._of_rollout(trajectories, rollout_id)
        return max(found, key=lambda t: t["revision"], default=None)

    def _of_rollout(self, table: Table, rollout_id: str) -> list[Fields]:
        names = [c.name for c in table.columns]
        statement = select(table).where(table.c.rollout_id == rollout_id)
        with telling(self._engine), self._engine.connect() as connection:
            rows = connection.execute(statement.order_by(table.c.log_partition, table.c.log_offset)).all()
        return [fields_of(names, row) for row in rows]


def _rollout_column(name: str) -> ColumnElement[Any]:
    if name == CHANGED_AT:
        return func.coalesce(rollouts.c.ended_at, rollouts.c.enqueued_at)
    return rollouts.c[name]


Column = Callable[[str], ColumnElement[Any]]
"""The column, or the expression, of a field."""


def select_in_sql(statement: Select[Any], selection: Selection, column: Column) -> Select[Any]:
    """The statement with what a selection asks for."""
    tests = [_test(column(c.field), c) for c in selection.conditions]
    if tests:
        statement = statement.where(and_(*tests) if selection.logic == "and" else or_(*tests))
    by = column(selection.sort_by)
    order = [c.desc() if selection.descending else c.asc() for c in (by, *map(column, selection.ties))]
    statement = statement.order_by(by.is_(None), *order)
    if selection.limit is not None:
        statement = statement.limit(selection.limit)
    return statement.offset(selection.offset) if selection.offset else statement


def _test(column: ColumnElement[Any], condition: Condition) -> ColumnElement[bool]:
    if condition.test == "in":
        return column.in_(condition.value) if condition.value else false()
    if condition.test == "contains":
        return column.contains(condition.value, autoescape=True)
    return column >= condition.value
