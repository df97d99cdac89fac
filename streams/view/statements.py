"""Many rows in one statement, as each database takes them fastest."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import orjson
from sqlalchemy import Connection, Engine, Table, Text, bindparam, cast, column, func, select
from sqlalchemy.dialects import postgresql, sqlite

from headrace.streams.view.database import SQLITE
from headrace.streams.view.rows import Row
from headrace.streams.view.tables import metadata

DELETED_AT_ONCE = 500
NUL = "\x00"
REPLACEMENT = "\ufffd"


class Statements(Protocol):
    """How rows get into the tables."""

    def append(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        """Adds rows; one whose identity is there already, or comes twice, changes nothing."""
        ...

    def upsert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        """Adds or replaces rows by their primary keys, which differ."""
        ...


def statements_of(engine: Engine) -> Statements:
    """The statements of a database."""
    return SqliteStatements(engine) if engine.dialect.name == SQLITE else PostgresqlStatements()


def delete_keys(connection: Connection, table: Table, keys: Iterable[str]) -> None:
    """Removes the rows with these values in the first column of the primary key."""
    first = next(iter(table.primary_key.columns))
    statement = table.delete().where(first.in_(bindparam("keys", expanding=True)))
    every = list(keys)
    for at in range(0, len(every), DELETED_AT_ONCE):
        connection.execute(statement, {"keys": every[at : at + DELETED_AT_ONCE]})


def _replaced(table: Table, insert: Any) -> dict[str, Any]:
    return {c.name: insert.excluded[c.name] for c in table.columns if not c.primary_key}


class SqliteStatements:
    """`executemany` of the driver itself: SQLAlchemy's handling of each row would cost as much as SQLite's."""

    def __init__(self, engine: Engine) -> None:
        self._append: dict[str, str] = {}
        self._upsert: dict[str, str] = {}
        for table in metadata.tables.values():
            insert = sqlite.insert(table)
            keys = list(table.primary_key.columns)
            ignoring = insert.on_conflict_do_nothing()
            replacing = insert.on_conflict_do_update(index_elements=keys, set_=_replaced(table, insert))
            self._append[table.name] = str(ignoring.compile(dialect=engine.dialect))
            self._upsert[table.name] = str(replacing.compile(dialect=engine.dialect))

    def append(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        connection.exec_driver_sql(self._append[table.name], list(rows))

    def upsert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        connection.exec_driver_sql(self._upsert[table.name], list(rows))


class PostgresqlStatements:
    """One JSON text with all rows, which PostgreSQL turns into rows.

    pg8000 is Python: a statement a row costs it more than half a millisecond, one large parameter next to nothing.
    """

    def __init__(self) -> None:
        self._append: dict[str, Any] = {}
        self._upsert: dict[str, Any] = {}
        self._names: dict[str, list[str]] = {}
        for table in metadata.tables.values():
            insert = postgresql.insert(table).from_select([c.name for c in table.columns], _rows_of_json(table))
            keys = list(table.primary_key.columns)
            self._append[table.name] = insert.on_conflict_do_nothing()
            self._upsert[table.name] = insert.on_conflict_do_update(index_elements=keys, set_=_replaced(table, insert))
            self._names[table.name] = [str(c.name) for c in table.columns]  # orjson takes no subclass of str

    def append(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        connection.execute(self._append[table.name], {"rows": self._json(table, rows)})

    def upsert(self, connection: Connection, table: Table, rows: Sequence[Row]) -> None:
        connection.execute(self._upsert[table.name], {"rows": self._json(table, rows)})

    def _json(self, table: Table, rows: Sequence[Row]) -> str:
        names = self._names[table.name]
        text = orjson.dumps([dict(zip(names, row, strict=True)) for row in rows])
        if b"\\u0000" in text:  # PostgreSQL's text holds every character but this one
            text = orjson.dumps([dict(zip(names, map(_without_nul, row), strict=True)) for row in rows])
        return text.decode()


def _rows_of_json(table: Table) -> Any:
    columns = [column(c.name, Text() if isinstance(c.type, Text) else c.type) for c in table.columns]
    source = func.json_to_recordset(cast(bindparam("rows", type_=Text()), postgresql.JSON))
    rows = source.table_valued(*columns, name="given").render_derived(with_types=True)
    return select(*(rows.c[c.name] for c in columns))


def _without_nul(value: Any) -> Any:
    return value.replace(NUL, REPLACEMENT) if isinstance(value, str) and NUL in value else value
