"""Old rollouts leave the view whole, whatever interrupts it, and what has not ended stays."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from headrace.cli import view as command
from headrace.schemas.records import Record
from headrace.streams.errors import SettingsError
from headrace.streams.settings import Settings
from headrace.streams.view import pruning, tables
from headrace.streams.view.batch import Batch
from headrace.streams.view.errors import ViewError
from headrace.streams.view.migrate import upgrade
from headrace.streams.view.pruning import Pruner, check_age, prune
from headrace.streams.view.rows import Place
from headrace.streams.view.writer import ViewWriter

from . import records as make

Open = Callable[[str], Engine]
DAY = 86_400 * make.SECOND
MONTH = timedelta(days=30)
NOW = make.NOON + 100 * DAY
OLD, YOUNG = NOW - 60 * DAY, NOW - 5 * DAY
LOG = [("headrace.rollouts.v1", 0), ("headrace.spans.v1", 0)]


class Filled:
    """A view with some rollouts."""

    def __init__(self, engine: Engine) -> None:
        self.writer = ViewWriter(engine)
        self.writer.positions(LOG, {topic: topic for topic, _ in LOG})
        self._offset = 0
        self.add("workers", make.worker(), NOW)

    def add(self, topic: str, record: Record, at: int) -> None:
        batch = Batch()
        self._offset += 1
        batch.add(topic, record, Place(0, self._offset, at))
        self.writer.write(batch, {})

    def rollout(self, n: int, at: int, status: str = "succeeded", spans: int = 2) -> None:
        """A rollout, all of it at one time."""
        rollout_id = f"ro-{n}"
        for i in range(spans):
            self.add("spans", make.span(100 * n + i, rollout_id), at)
        self.add("rewards", make.reward(n, rollout_id), at)
        if status == "running":
            self.add("rollouts", make.rollout(n, status, enqueued_at=at), at)
        else:
            self.add("triplets", make.trajectory(n), at)
            self.add("rollouts", make.rollout(n, status, enqueued_at=at, ended_at=at), at)


@pytest.fixture
def filled(database: str, open_view: Open) -> tuple[Filled, Engine]:
    """Two old rollouts, one that is old and still runs, one that is young; and what belongs to none."""
    engine = open_view(database)
    view = Filled(engine)
    view.rollout(1, OLD)
    view.rollout(2, OLD, "failed", spans=7)
    view.rollout(3, OLD, "running")
    view.add("spans", make.span(901, "nobody"), OLD)
    view.add("rewards", make.reward(901, "nobody"), OLD)
    view.add("triplets", make.trajectory(901), OLD)
    view.add("workers", make.worker("long gone"), OLD)
    view.rollout(4, YOUNG)
    view.add("spans", make.span(902, "to come"), YOUNG)
    with engine.begin() as connection:  # as one that was made long ago
        connection.execute(tables.horizon.update().values(whole_since=0))
    return view, engine


def ids(rows: dict[str, list[tuple[Any, ...]]], table: str) -> set[str]:
    place = [c.name for c in tables.metadata.tables[table].columns].index("rollout_id")
    return {row[place] for row in rows[table]}


STAY = {"ro-3", "ro-4"}


def test_old_rollouts_go_with_all_that_is_theirs(filled: tuple[Filled, Engine], rows_of: Any) -> None:
    _, engine = filled
    removed = prune(Pruner(engine, Settings(), MONTH), NOW, sleep=lambda _: None)
    rows = rows_of(engine)
    assert ids(rows, "rollouts") == ids(rows, "attempts") == ids(rows, "rewards") == STAY
    assert ids(rows, "spans") == {*STAY, "to come"}
    assert ids(rows, "trajectories") == {"ro-4"}
    assert [row[0] for row in rows["workers"]] == ["w"]
    assert removed == {"spans": 10, "rewards": 3, "trajectories": 3, "attempts": 4, "rollouts": 2, "workers": 1}
    assert prune(Pruner(engine, Settings(), MONTH), NOW) == {}


def test_a_rollout_stays_until_the_last_of_its_rows_is_gone(
    filled: tuple[Filled, Engine], rows_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    view, engine = filled
    monkeypatch.setattr(pruning, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(pruning, "ROLLOUTS_AT_ONCE", 1)
    pruner = Pruner(engine, Settings(), MONTH)
    pruner.look(0.0, NOW)
    steps = 0
    while pruner.pending:
        pruner.step()
        steps += 1
        rows = rows_of(engine)
        left = ids(rows, "spans") | ids(rows, "rewards") | ids(rows, "trajectories") | ids(rows, "attempts")
        assert left - {"nobody", "to come", "ro-901"} <= ids(rows, "rollouts")
        view.rollout(1000 + steps, NOW, spans=1)  # who writes meanwhile finds no lock
        if steps == 3:  # the process dies
            pruner = Pruner(engine, Settings(), MONTH)
            pruner.look(0.0, NOW)
    assert steps > 6
    rows = rows_of(engine)
    assert ids(rows, "rollouts") == STAY | {f"ro-{1000 + n}" for n in range(1, steps + 1)}
    assert ids(rows, "spans") == ids(rows, "rollouts") | {"to come"}


def test_a_rollout_that_is_asked_for_anew_is_not_old(filled: tuple[Filled, Engine], rows_of: Any) -> None:
    view, engine = filled
    view.add("rollouts", make.rollout(1, "queuing", enqueued_at=NOW), NOW)
    prune(Pruner(engine, Settings(), MONTH), NOW)
    assert ids(rows_of(engine), "rollouts") == {*STAY, "ro-1"}


@pytest.mark.parametrize(("newest", "wall"), [(NOW, YOUNG - 30 * DAY), (OLD, NOW)])
def test_a_clock_that_is_wrong_removes_nothing(
    filled: tuple[Filled, Engine], rows_of: Any, newest: int, wall: int
) -> None:
    view, engine = filled
    view.add("workers", make.worker(), newest)
    view.add("workers", make.worker("long gone"), OLD)
    before = rows_of(engine)
    prune(Pruner(engine, Settings(), MONTH), wall)
    assert rows_of(engine) == before


def test_a_view_that_is_made_anew_has_no_half_rollouts(filled: tuple[Filled, Engine], rows_of: Any) -> None:
    _, engine = filled
    upgrade(engine, rebuild=True)
    pruner = Pruner(engine, Settings(), None)
    pruner.look(0.0, NOW)
    assert not pruner.pending  # what time it is in the log is not known yet
    settings = Settings()
    edge = NOW - int((settings.retention - settings.max_open).total_seconds() * 1e6)
    view = Filled(engine)
    view.rollout(1, edge - 1, spans=1)  # its first spans may have left the topic
    view.add("triplets", make.trajectory(7), NOW - 20 * DAY)  # its rollout has left the topic
    view.rollout(3, edge - 1, "running")
    view.add("spans", make.span(903, "read before its rollout"), edge - 1)
    view.rollout(4, edge + 1)
    prune(Pruner(engine, settings, None), NOW + DAY)
    rows = rows_of(engine)
    assert ids(rows, "rollouts") == STAY
    assert ids(rows, "spans") == {*STAY, "read before its rollout"}
    assert ids(rows, "trajectories") == {"ro-4"}
    with engine.connect() as connection:
        assert connection.execute(select(tables.horizon.c.whole_since)).scalar() == edge
    view.add("workers", make.worker(), NOW + 3 * DAY)
    view.rollout(5, NOW + 3 * DAY)
    prune(Pruner(engine, Settings(), None), NOW + 4 * DAY)
    rows = rows_of(engine)
    assert ids(rows, "rollouts") == {*STAY, "ro-5"}  # what is whole stays where no age is given
    assert "read before its rollout" not in ids(rows, "spans")


def test_rows_do_not_go_before_their_rollout_can_have_more() -> None:
    settings = Settings()
    assert check_age(settings, settings.retention) == settings.retention
    with pytest.raises(SettingsError, match="may still come"):
        check_age(settings, settings.retention - timedelta(seconds=1))


def test_the_command(sqlite_database: str, open_view: Open, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(ViewError, match="there is no view"):
        command.prune("30d", database=f"sqlite:///{tmp_path / 'other.db'}")
    view = Filled(open_view(sqlite_database))
    view.rollout(1, OLD)
    command.prune("30d", database=sqlite_database, json=True)
    command.prune("30d", database=sqlite_database)
    said = capsys.readouterr().out
    assert '"rollouts": 1' in said
    assert "nothing is as old" in said
