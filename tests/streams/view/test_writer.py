"""Batches in a database of either kind: the guard, repeats, tombstones, values that it does not take."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, select, text

from headrace.streams.settings import load_settings
from headrace.streams.view import tables
from headrace.streams.view.batch import Batch
from headrace.streams.view.database import open_database
from headrace.streams.view.errors import DatabaseUnavailableError, OvertakenError, RefusedRowsError, ViewError
from headrace.streams.view.migrate import check_pipeline, upgrade
from headrace.streams.view.rows import Place
from headrace.streams.view.writer import ViewWriter

from . import records as make

SPANS = ("headrace.spans.v1", 0)
ROLLOUTS = ("headrace.rollouts.v1", 0)
IDS = {SPANS[0]: "A", ROLLOUTS[0]: "B"}
Open = Callable[[str], Engine]


def batch_of(*records: tuple[str, Any], first: int = 0) -> Batch:
    batch = Batch()
    for offset, (topic, record) in enumerate(records, first):
        batch.add(topic, record, Place(0, offset, make.NOON))
    return batch


def everything() -> Batch:
    return batch_of(
        ("rollouts", make.rollout(1)),
        ("spans", make.span(1)),
        ("spans", make.span(2)),
        ("rewards", make.reward(1)),
        ("triplets", make.trajectory(1)),
        ("triplets", make.trajectory(1, revision=1)),
        ("training", make.manifest()),
        ("training", make.step(1)),
        ("resources", make.resources(1)),
        ("workers", make.worker()),
    )


def test_rows_and_positions_are_written_together(database: str, open_view: Open, rows_of: Any) -> None:
    engine = open_view(database)
    writer = ViewWriter(engine)
    assert writer.positions([SPANS, ROLLOUTS], IDS) == {SPANS: 0, ROLLOUTS: 0}
    writer.write(everything(), {SPANS: (0, 2), ROLLOUTS: (0, 1)})
    assert ViewWriter(engine).positions([SPANS], IDS) == {SPANS: 2}
    counts = {table: len(rows) for table, rows in rows_of(engine).items()}
    assert counts == {
        "rollouts": 1,
        "attempts": 2,
        "spans": 2,
        "rewards": 1,
        "trajectories": 2,
        "runs": 1,
        "training_steps": 1,
        "resources": 1,
        "workers": 1,
    }
    batch = everything()
    with engine.connect() as connection:
        for table, written in batch.appended.items():
            found = connection.execute(select(tables.metadata.tables[table])).all()
            assert sorted(map(tuple, found), key=repr) == sorted((w.row for w in written), key=repr)


def test_of_two_writers_of_one_read_one_rolls_back(database: str, open_view: Open, rows_of: Any) -> None:
    engine, other = open_view(database), open_view(database)
    first, second = ViewWriter(engine), ViewWriter(other)
    starts = first.positions([SPANS, ROLLOUTS], IDS)
    assert second.positions([SPANS, ROLLOUTS], IDS) == starts
    first.write(batch_of(("spans", make.span(1))), {SPANS: (0, 1)})
    late = batch_of(("rollouts", make.rollout(1)), ("spans", make.span(2)))
    with pytest.raises(OvertakenError, match="spans"):
        second.write(late, {ROLLOUTS: (0, 1), SPANS: (0, 2)})
    rows = rows_of(engine)
    assert len(rows["spans"]) == 1
    assert rows["rollouts"] == []
    assert second.positions([SPANS, ROLLOUTS], IDS) == {SPANS: 1, ROLLOUTS: 0}


def test_of_two_spans_or_rewards_with_one_identity_the_first_counts(
    database: str, open_view: Open, rows_of: Any
) -> None:
    engine = open_view(database)
    writer = ViewWriter(engine)
    writer.positions([SPANS], IDS)
    again = make.span(1, name="again")
    writer.write(batch_of(("spans", make.span(1)), ("spans", again), ("rewards", make.reward(1, value=1.0))), {})
    writer.write(batch_of(("spans", again), ("rewards", make.reward(1, value=2.0)), first=5), {})
    no_attempt = make.span(1, attempt_id=None)
    writer.write(batch_of(("spans", no_attempt), ("spans", no_attempt), first=8), {})
    rows = rows_of(engine)
    names = [c.name for c in tables.spans.columns]
    found = [dict(zip(names, row, strict=True)) for row in rows["spans"]]
    assert [(f["log_offset"], f["name"], f["attempt_id"]) for f in found] == [
        (0, "chat policy", "ro-1-2"),
        (8, "chat policy", ""),
    ]
    assert len(rows["rewards"]) == 1
    assert 1.0 in rows["rewards"][0]


def test_a_newer_state_replaces_the_older_and_a_tombstone_removes_a_worker_but_no_rollout(
    database: str, open_view: Open, rows_of: Any
) -> None:
    engine = open_view(database)
    writer = ViewWriter(engine)
    writer.write(batch_of(("rollouts", make.rollout(1, "running")), ("workers", make.worker())), {})
    writer.write(batch_of(("rollouts", make.rollout(1, attempts=[])), ("workers", make.worker(status="gone"))), {})
    rows = rows_of(engine)
    assert rows["rollouts"][0][1] == "succeeded"
    assert rows["attempts"] == []
    assert "gone" in rows["workers"][0]
    writer.write(batch_of(("rollouts", make.rollout(1))), {})
    gone = Batch()
    gone.remove("rollouts", "ro-1")
    gone.remove("workers", "w")
    writer.write(gone, {})
    rows = rows_of(engine)
    assert (len(rows["rollouts"]), len(rows["attempts"]), rows["workers"]) == (1, 2, [])


def test_a_value_that_the_database_refuses_is_found_and_the_rest_is_written(
    postgresql_database: str, open_view: Open, rows_of: Any
) -> None:
    engine = open_view(postgresql_database)
    writer = ViewWriter(engine)
    writer.positions([SPANS], IDS)
    long = random.Random(0).randbytes(10_000).hex()  # no index takes it, compressed or not
    batch = batch_of(("spans", make.span(1)), ("spans", make.span(2, rollout_id=long)), ("rollouts", make.rollout(1)))
    with pytest.raises(RefusedRowsError):
        writer.write(batch, {SPANS: (0, 2)})
    refused = writer.refused(batch)
    assert set(refused) == {("spans", Place(0, 1, make.NOON))}
    assert rows_of(engine)["spans"] == []
    writer.write(batch.without(set(refused)), {SPANS: (0, 2)})
    rows = rows_of(engine)
    assert (len(rows["spans"]), len(rows["rollouts"]), len(rows["attempts"])) == (1, 1, 2)


def test_an_integer_that_is_too_large_is_refused(database: str, open_view: Open) -> None:
    writer = ViewWriter(open_view(database))
    batch = batch_of(("spans", make.span(1, sequence=2**70)))
    with pytest.raises(RefusedRowsError):
        writer.write(batch, {})
    assert len(writer.refused(batch)) == 1


def test_nul_and_numbers_that_are_none_do_not_stop_it(database: str, open_view: Open, rows_of: Any) -> None:
    engine = open_view(database)
    writer = ViewWriter(engine)
    odd = make.span(1, name="a\x00b \\u0000 é\U0001f600", attributes='{"x": "\\u0000"}')
    writer.write(batch_of(("spans", odd), ("rewards", make.reward(1, value=float("nan")))), {})
    rows = rows_of(engine)
    row = dict(zip((c.name for c in tables.spans.columns), rows["spans"][0], strict=True))
    nul = "\x00" if engine.dialect.name == "sqlite" else "\ufffd"
    assert row["name"] == f"a{nul}b \\u0000 é\U0001f600"
    assert row["attributes"] == '{"x": "\\u0000"}'
    assert None in rows["rewards"][0]


def test_a_topic_that_was_made_anew_is_noticed(database: str, open_view: Open) -> None:
    writer = ViewWriter(open_view(database))
    writer.positions([SPANS], IDS)
    with pytest.raises(ViewError, match="--rebuild"):
        writer.positions([SPANS], {SPANS[0]: "other"})


def test_a_database_is_the_view_of_one_pipeline(database: str, open_view: Open) -> None:
    engine = open_view(database)
    ViewWriter(engine).positions([SPANS], IDS)
    check_pipeline(engine, load_settings())
    with pytest.raises(ViewError, match="other"):
        check_pipeline(engine, load_settings(prefix="other"))


def test_migrations_make_the_tables(database: str, open_view: Open, rows_of: Any) -> None:
    engine = open_view(database)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), tables.metadata)
    assert differences == []
    ViewWriter(engine).write(everything(), {})
    upgrade(engine)
    assert len(rows_of(engine)["spans"]) == 2
    upgrade(engine, rebuild=True)
    assert not any(rows_of(engine).values())


def test_a_later_version_of_the_tables_is_an_error(database: str, open_view: Open) -> None:
    engine = open_view(database)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ViewError, match="another version"):
        upgrade(engine)
    upgrade(engine, rebuild=True)
    upgrade(engine)


def test_a_url_that_is_none_is_named() -> None:
    with pytest.raises(ViewError, match="no database URL"):
        open_database("view.db")
    with pytest.raises(ViewError, match="not in mysql"):
        open_database("mysql://host/db")
    with pytest.raises(DatabaseUnavailableError, match="does not answer"):
        upgrade(open_database("postgresql://headrace@127.0.0.1:1/x"))


def test_to_read_there_must_be_a_view(sqlite_database: str) -> None:
    with pytest.raises(ViewError, match="headrace processor view"):
        open_database(sqlite_database, read_only=True)
