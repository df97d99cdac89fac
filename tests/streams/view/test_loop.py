"""The view on a real broker: killed and started again it has the rows of one that nobody disturbed."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.settings import Settings
from headrace.streams.view import tables
from headrace.streams.view.batch import TOPICS
from headrace.streams.view.database import open_database
from headrace.streams.view.loop import ViewLoop
from headrace.streams.view.migrate import upgrade
from headrace.streams.view.pruning import Pruner
from headrace.streams.view.writer import ViewWriter

from . import records as make

pytestmark = pytest.mark.kafka
ROLLOUTS = 20
SPANS = 15


def write_everything(log: Any, first: int = 0) -> None:
    """Rollouts with spans and rewards, some twice, and one record of each other kind."""
    for n in range(first, first + ROLLOUTS):
        name = f"ro-{n}"
        log.write(
            make.rollout(n, "running"),
            *(make.span(n * 1000 + i, rollout_id=name) for i in range(SPANS)),
            make.span(n * 1000, rollout_id=name, name="again"),
            make.reward(n, rollout_id=name),
            make.reward(n, rollout_id=name, value=9.0),
            make.rollout(n),
            make.trajectory(n),
        )
    log.write(make.manifest(), make.step(first), make.resources(first), make.worker(f"w{first}"))


def count(engine: Engine, table: Any) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table)).scalar_one()


def caught_up(engine: Engine, settings: Settings) -> bool:
    """Whether all that is written now is in the rows; the workers go on writing."""
    names = [settings.topic(topic) for topic in TOPICS if topic != "workers"]
    ends = end_offsets(make_admin(settings), [(name, p) for name in names for p in partition_ids(settings, name)])
    with engine.connect() as connection:
        stands = {(r.topic, r.partition): r.next for r in connection.execute(select(tables.offsets))}
    return all(stands.get(at, 0) >= end for at, end in ends.items())


@contextmanager
def viewing(settings: Settings, engine: Engine, worker_id: str) -> Generator[ViewLoop]:
    """A view in this process, which is quicker to start."""
    loop = ViewLoop(settings, ViewWriter(engine), Pruner(engine, settings, None), worker_id)
    ready = threading.Event()
    thread = threading.Thread(target=loop.run, args=(ready.set,))
    thread.start()
    try:
        assert ready.wait(60)
        yield loop
    finally:
        loop.stop()
        thread.join(90)
        assert not thread.is_alive()


def test_a_view_that_is_killed_has_the_rows_of_one_that_is_not(
    log: Any,
    start_processor: Any,
    wait_for: Any,
    tmp_path: Path,
    rows_of: Any,
    open_view: Callable[[str], Engine],
    settings: Settings,
) -> None:
    killed = f"sqlite:///{tmp_path / 'killed.db'}"
    process = start_processor("view", "v", "--database", killed)
    engine = open_database(killed, read_only=True)
    write_everything(log)
    wait_for(lambda: count(engine, tables.spans) > 0)
    process.kill()
    process.wait()
    write_everything(log, ROLLOUTS)
    log.write_raw("spans", b"ro-1", b"no record")
    log.write_raw("rollouts", b"ro-3", None)
    process = start_processor("view", "v", "--database", killed)
    wait_for(lambda: caught_up(engine, settings))
    process.terminate()
    assert process.wait(90) == 0
    assert count(engine, tables.spans) == 2 * ROLLOUTS * SPANS
    assert count(engine, tables.rewards) == count(engine, tables.trajectories) == 2 * ROLLOUTS
    assert count(engine, tables.rollouts) == 2 * ROLLOUTS  # one has left its topic, and stays
    assert count(engine, tables.attempts) == 4 * ROLLOUTS
    assert count(engine, tables.workers) == 3
    once = rows_of(engine, "workers")
    engine.dispose()

    undisturbed = open_view(f"sqlite:///{tmp_path / 'undisturbed.db'}")
    with viewing(settings, undisturbed, "u"):
        wait_for(lambda: caught_up(undisturbed, settings))
    assert rows_of(undisturbed, "workers") == once

    rebuilt = open_view(killed)
    upgrade(rebuilt, rebuild=True)
    assert count(rebuilt, tables.spans) == 0
    with viewing(settings, rebuilt, "v"):
        wait_for(lambda: caught_up(rebuilt, settings))
    assert rows_of(rebuilt, "workers") == once
    assert {(m.key(), m.value()) for m in log.messages("spans", dead=True)} == {(b"ro-1", b"no record")}


def test_two_views_of_one_database_share_the_partitions(
    log: Any,
    start_processor: Any,
    wait_for: Any,
    postgresql_database: str,
    rows_of: Any,
    open_view: Callable[[str], Engine],
    settings: Settings,
) -> None:
    engine = open_view(postgresql_database)
    other = start_processor("view", "a", "--database", postgresql_database)
    with viewing(settings, engine, "b"):
        write_everything(log)
        wait_for(lambda: count(engine, tables.spans) > 0)
        other.kill()
        write_everything(log, ROLLOUTS)
        wait_for(lambda: caught_up(engine, settings))
    assert count(engine, tables.spans) == 2 * ROLLOUTS * SPANS
    assert count(engine, tables.rewards) == count(engine, tables.trajectories) == 2 * ROLLOUTS
    assert {row[1] for row in rows_of(engine)["rollouts"]} == {"succeeded"}
    assert count(engine, tables.attempts) == 4 * ROLLOUTS


def test_a_loop_whose_positions_were_moved_reads_on_from_where_they_are(
    log: Any, settings: Settings, sqlite_database: str, open_view: Callable[[str], Engine], wait_for: Any
) -> None:
    engine = open_view(sqlite_database)
    with viewing(settings, engine, "w") as loop:
        log.write(make.span(1, rollout_id="ro-1"))
        wait_for(lambda: count(engine, tables.spans) == 1)
        with engine.begin() as connection:  # as one does that has begun anew
            connection.execute(tables.offsets.update().values(next=0))
            connection.execute(tables.spans.delete())
        log.write(make.span(2, rollout_id="ro-1"))
        wait_for(lambda: count(engine, tables.spans) == 2)
        assert loop.counters["sessions_lost"] >= 1
