"""Databases for the view: SQLite in a file, and PostgreSQL in a cluster that lives as long as the session."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, text

from headrace.streams.view import tables
from headrace.streams.view.database import open_database
from headrace.streams.view.migrate import upgrade

PROGRAMS = "/usr/lib/postgresql"
AS_USER = ["runuser", "-u", "postgres", "--"]


def _programs() -> Path:
    found = sorted(Path(PROGRAMS).glob("*/bin/initdb"))
    if not found:
        pytest.skip(f"PostgreSQL is not installed ({PROGRAMS}/*/bin/initdb is missing): apt-get install postgresql")
    return found[-1].parent


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a throw-away cluster's database `postgres`, on 127.0.0.1."""
    programs = _programs()
    prefix = []
    if os.geteuid() == 0:  # initdb refuses root
        if shutil.which("runuser") is None:
            pytest.skip("initdb refuses root, and there is no runuser to start PostgreSQL as another user")
        prefix = AS_USER
    folder = Path(tempfile.mkdtemp(prefix="headrace-pg-"))
    if prefix:
        shutil.chown(folder, "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"

    def call(program: str, *arguments: str) -> None:
        subprocess.run([*prefix, str(programs / program), *arguments], check=True, capture_output=True, cwd=folder)

    try:
        call("initdb", "-D", str(data), "-U", "headrace", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        call("pg_ctl", "-D", str(data), "-w", "-o", options, "-l", str(folder / "log"), "start")
        try:
            yield f"postgresql://headrace@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgresql_database(postgresql: str) -> str:
    """The URL of an empty database."""
    name = f"view_{os.urandom(4).hex()}"
    engine = open_database(postgresql).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return postgresql.rsplit("/", 1)[0] + f"/{name}"


@pytest.fixture
def sqlite_database(tmp_path: Path) -> str:
    """The URL of a file that is not there yet."""
    return f"sqlite:///{tmp_path / 'view.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database, of each kind in turn."""
    return request.getfixturevalue(f"{request.param}_database")


@pytest.fixture
def open_view() -> Iterator[Callable[[str], Engine]]:
    """Opens a database with the view's tables; all are closed with the test."""
    engines: list[Engine] = []

    def opened(url: str) -> Engine:
        engine = open_database(url)
        engines.append(engine)
        upgrade(engine)
        return engine

    yield opened
    for engine in engines:
        engine.dispose()


@pytest.fixture
def rows_of() -> Callable[..., dict[str, list[tuple[Any, ...]]]]:
    """All rows by table, in one order; without the offsets and without tables that are named."""

    def rows(engine: Engine, *without: str) -> dict[str, list[tuple[Any, ...]]]:
        found: dict[str, list[tuple[Any, ...]]] = {}
        with engine.connect() as connection:
            for table in tables.metadata.sorted_tables:
                if table in (tables.offsets, tables.horizon) or table.name in without:
                    continue
                every = connection.execute(select(table)).all()
                found[table.name] = sorted((tuple(row) for row in every), key=repr)
        return found

    return rows
