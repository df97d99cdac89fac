"""Filters, order and pages give the same from values and from SQL."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine

from headrace.streams.view.batch import Batch
from headrace.streams.view.queries import SqlSource
from headrace.streams.view.rows import Place
from headrace.streams.view.selection import Condition, Selection, select_from
from headrace.streams.view.source import CHANGED_AT, ROLLOUT_TIES, latest_attempt, rollout_field
from headrace.streams.view.writer import ViewWriter

from . import records as make

STATES = [
    make.rollout(1, "failed", run_id=None),
    make.rollout(2, "running", run_id="b"),
    make.rollout(3, "succeeded", run_id="a", mode="val"),
    make.rollout(4, "failed", run_id="a", enqueued_at=make.NOON),
    make.rollout(5, "queuing", rollout_id="RO_5%", run_id=None, attempts=[], mode=None),
    make.rollout(6, "failed", run_id="b", enqueued_at=make.NOON),
]
SELECTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["ro-4", "ro-6", "ro-1", "ro-2", "ro-3", "RO_5%"]),
    ({"descending": True, "limit": 2}, ["RO_5%", "ro-3"]),
    ({"limit": 2, "offset": 1}, ["ro-6", "ro-1"]),
    ({"offset": 5}, ["RO_5%"]),
    ({"sort_by": "run_id"}, ["ro-3", "ro-4", "ro-2", "ro-6", "RO_5%", "ro-1"]),
    ({"sort_by": "run_id", "descending": True}, ["ro-6", "ro-2", "ro-4", "ro-3", "ro-1", "RO_5%"]),
    ({"sort_by": "ended_at", "limit": 3}, ["ro-1", "ro-3", "ro-4"]),
    ({"sort_by": "rollout_id", "limit": 1}, ["RO_5%"]),
    ({"conditions": (Condition("status", "in", ("failed",)),)}, ["ro-4", "ro-6", "ro-1"]),
    ({"conditions": (Condition("status", "in", ()),)}, []),
    (
        {"conditions": (Condition("status", "in", ("failed",)), Condition("run_id", "in", ("a", "b")))},
        ["ro-4", "ro-6"],
    ),
    (
        {"conditions": (Condition("status", "in", ("queuing",)), Condition("mode", "in", ("val",))), "logic": "or"},
        ["ro-3", "RO_5%"],
    ),
    ({"conditions": (Condition("rollout_id", "contains", "5%"),)}, ["RO_5%"]),
    ({"conditions": (Condition("rollout_id", "contains", "_"),)}, ["RO_5%"]),
    ({"conditions": (Condition("rollout_id", "contains", "O"),)}, ["RO_5%"]),
    ({"conditions": (Condition(CHANGED_AT, "since", make.NOON + 5 * make.SECOND),)}, ["ro-4", "ro-6", "ro-3", "RO_5%"]),
]


@pytest.fixture
def sources(database: str, open_view: Callable[[str], Engine]) -> Any:
    batch = Batch()
    for offset, state in enumerate(STATES):
        batch.add("rollouts", state, Place(0, offset, make.NOON))
    for offset in range(3):
        batch.add("spans", make.span(offset, rollout_id="ro-1"), Place(0, offset, make.NOON))
    batch.add("rewards", make.reward(1), Place(0, 1, make.NOON))
    for revision in (1, 0):
        batch.add("triplets", make.trajectory(1, revision), Place(0, 5 - revision, make.NOON))
    ViewWriter(open_view(database)).write(batch, {})
    source = SqlSource(database)
    yield source
    source.close()


def test_sql_and_values_agree(sources: SqlSource) -> None:
    for changes, ids in SELECTIONS:
        selection = Selection(**({"sort_by": "enqueued_at", "ties": ROLLOUT_TIES} | changes))
        assert [s.rollout_id for s in select_from(STATES, selection, rollout_field)] == ids, changes
        found = sources.rollouts(selection)
        assert [s.rollout_id for s in found] == ids, changes
        by_id = {s.rollout_id: s for s in STATES}
        assert found == [by_id[i] for i in ids]


def test_what_is_asked_of_one_rollout(sources: SqlSource) -> None:
    assert sources.rollout("ro-1") == STATES[0]
    assert sources.rollout("ro-9") is None
    assert [s["log_offset"] for s in sources.spans("ro-1")] == [0, 1, 2]
    assert sources.spans("ro-1")[0]["attributes"]["agent.name"] == "solver"
    assert sources.rewards("ro-1")[0]["value"] == 0.5
    trajectory = sources.trajectory("ro-1", "g")
    assert trajectory is not None
    assert trajectory["revision"] == 1
    assert trajectory["triplets"][0]["response_tokens"] == 1
    assert sources.trajectory("ro-2", None) is None


def test_the_latest_attempt_is_the_highest_delivery() -> None:
    first, second = make.rollout(1).attempts
    second.attempt, second.delivery, first.delivery = 1, 1, 2
    assert latest_attempt(make.rollout(1, attempts=[first, second]), []) == first.attempt_id
    assert latest_attempt(None, [{"attempt_id": "x"}]) == "x"
    assert latest_attempt(None, []) == ""
