"""The SQL database: SQLite in a file, or PostgreSQL through pg8000, by URL."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import orjson
from sqlalchemy import Engine, create_engine, event, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from headrace.streams.view.errors import DatabaseUnavailableError, RefusedRowsError, ViewError

DEFAULT_DATABASE = "sqlite:///headrace-view.db"
POSTGRESQL = "postgresql+pg8000"
SQLITE = "sqlite"
BUSY_MS = 30_000  # another writer of the file is waited for
CACHE_KIB = 128 * 1024  # the spans' index by identity is written all over; SQLite's own 2 MiB would go to the disk
PAGE_BYTES = 16 * 1024  # several spans on a page: half the CPU of SQLite's own 4 KiB, and a quarter less space
CHECKPOINT_PAGES = 2000  # 32 MB: a batch of spans is 10 MB, and a checkpoint waits for the disk
ANSWER_SECONDS = 60  # for a connection to PostgreSQL, and for each answer of it

# Classes of SQLSTATE (PostgreSQL, appendix A).
VALUE_CLASSES = frozenset({"22", "23", "54"})  # data, constraint, program limit (a key too long for an index)
PASSING_CLASSES = frozenset({"08", "40", "53", "55", "57", "58"})  # connection, rollback, resources, locks, operator


def open_database(url: str, *, read_only: bool = False) -> Engine:
    """An engine for one writer, or for readers that change nothing and hold up no writer.

    Raises:
        ViewError: the URL names no database that can be used; to read: there is none yet.
    """
    parsed = _checked(url)
    if parsed.get_backend_name() == SQLITE:
        if read_only and parsed.database and not Path(parsed.database).exists():
            raise ViewError(
                f"there is no view at {parsed.database}; `headrace processor view --database {url}` makes one"
            )
        engine = create_engine(parsed)
        event.listen(engine, "connect", _set_up_reader if read_only else _set_up_writer)
        event.listen(engine, "begin", _begin_read if read_only else _begin_write)
        return engine
    engine = create_engine(parsed, connect_args={"timeout": ANSWER_SECONDS}, pool_pre_ping=True)
    return engine.execution_options(postgresql_readonly=True) if read_only else engine


def _checked(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ViewError(f"{url!r} is no database URL; write sqlite:///FILE or postgresql://USER@HOST/NAME") from error
    name = parsed.get_backend_name()
    if name not in (SQLITE, "postgresql"):
        raise ViewError(f"{parsed.render_as_string()}: the view is kept in sqlite or postgresql, not in {name}")
    return parsed.set(drivername=POSTGRESQL) if name == "postgresql" else parsed


def _set_up_writer(connection: Any, record: object) -> None:
    _set_up(connection)
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    # A crash of the process loses nothing, one of the machine the newest transactions, with their offsets.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    connection.execute("PRAGMA temp_store=MEMORY")


def _set_up_reader(connection: Any, record: object) -> None:
    _set_up(connection)
    connection.execute("PRAGMA query_only=ON")


def _set_up(connection: Any) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says, DDL included
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    connection.execute("PRAGMA case_sensitive_like=ON")  # as PostgreSQL's LIKE


def _begin_write(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin_read(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN")


@contextmanager
def telling(engine: Engine) -> Generator[None]:
    """Raises what the database driver raises as an error of the view.

    Raises:
        RefusedRowsError: values that the database does not take.
        DatabaseUnavailableError: no answer, or a transaction that another one stopped.
        ViewError: it is no database of the view, or not for this user.
    """
    where = engine.url.render_as_string()
    try:
        yield
    except (OverflowError, orjson.JSONEncodeError) as error:  # an integer of more than 64 bits
        raise RefusedRowsError(str(error)) from error
    except OSError as error:  # pg8000 lets some of those of its socket through
        raise DatabaseUnavailableError(f"{where} does not answer: {error}") from error
    except DBAPIError as error:
        text = _text(error)
        state = _sql_state(error)
        if _refuses_values(error, state):
            raise RefusedRowsError(text) from error
        if state is None and ("no such table" in text or "not a database" in text):
            state = "42"
        if state is None or state[:2] in PASSING_CLASSES:
            raise DatabaseUnavailableError(f"{where} does not answer: {text}") from error
        raise ViewError(
            f"{where}: {text}; `headrace processor view` makes the tables, with --rebuild anew from the topics"
        ) from error


def _refuses_values(error: DBAPIError, state: str | None) -> bool:
    if state is not None:
        return state[:2] in VALUE_CLASSES
    import sqlite3

    return isinstance(error.orig, (sqlite3.DataError, sqlite3.IntegrityError))


def _answer(error: DBAPIError) -> dict[str, str]:
    """What PostgreSQL has answered: pg8000 gives the fields as a dict, "C" is the SQLSTATE, "M" the message."""
    fields: object = error.orig.args[0] if error.orig is not None and error.orig.args else None
    return cast(dict[str, str], fields) if isinstance(fields, dict) else {}


def _sql_state(error: DBAPIError) -> str | None:
    return _answer(error).get("C")


def _text(error: DBAPIError) -> str:
    return _answer(error).get("M") or str(error.orig)


def has_tables(engine: Engine, *names: str) -> bool:
    """Whether the database has tables of these names."""
    with telling(engine):
        there = set(inspect(engine).get_table_names())
    return there.issuperset(names)
