"""Targets looked up in a view, of either kind of database."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine

from headrace.schemas.records import ModelCall, Span
from headrace.streams.feedback.errors import UnknownTargetError
from headrace.streams.feedback.request import Target, read_feedback
from headrace.streams.feedback.targets import Targets
from headrace.streams.view.batch import Batch
from headrace.streams.view.errors import ViewError
from headrace.streams.view.rows import Place
from headrace.streams.view.writer import ViewWriter

from . import records as make

TOPICS = ("headrace.spans.v1", "headrace.triplets.v1")


def call(number: int, rollout_id: str, trace: str, **more: Any) -> Span:
    return Span(
        rollout_id=rollout_id,
        source="gateway",
        trace_id=trace,
        span_id=f"{number:016x}",
        name="chat",
        start=number,
        end=number + 1,
        llm=ModelCall(model="m", response_id=f"chatcmpl-{number}"),
        **more,
    )


@pytest.fixture
def targets(database: str, open_view: Callable[[str], Engine]) -> Any:
    """Session `s`: the rollout `one` in two closed segments and one that is open, then `two`, of one call."""
    batch = Batch()
    spans = [
        call(1, "one", "t1", session_id="s"),
        call(2, "one", "t2", session_id="s"),
        call(3, "one", "t3", session_id="s"),
        call(4, "two", "t4", session_id="s"),
        call(5, "one_", "t5"),
    ]
    for offset, span in enumerate(spans):
        batch.add("spans", span, Place(0, offset, make.NOON + offset))
    copy = Span(rollout_id="sdk", source="otlp", trace_id="t1", span_id="f" * 16, name="x", start=1, end=2)
    copy.attributes = '{"gen_ai.operation.name":"chat","gen_ai.response.id":"chatcmpl-1"}'
    batch.add("spans", copy, Place(0, 9, make.NOON + 9))
    for offset, (rollout_id, number) in enumerate([("one", 1), ("one~2", 2), ("one_", 5)]):
        trajectory = make.trajectory(1, rollout_id=rollout_id, attempt_id=f"{rollout_id}-1", origin="external")
        trajectory.triplets = trajectory.triplets[:1]
        trajectory.triplets[0].span_id = f"{number:016x}"
        batch.add("triplets", trajectory, Place(0, offset, make.NOON))
    writer = ViewWriter(open_view(database))
    starts = writer.positions([(topic, 0) for topic in TOPICS], dict.fromkeys(TOPICS, "A"))
    writer.write(batch, {place: (start, start + 10) for place, start in starts.items()})
    found = Targets(database)
    yield found
    found.close()


def find(targets: Targets, **fields: Any) -> list[Target]:
    return targets.find(read_feedback({"value": 1, **fields}))


def test_each_kind_of_target(targets: Targets):
    assert find(targets, rollout_id="two") == [Target("two")]
    assert find(targets, rollout_id="one~2") == [Target("one~2")]
    # The copy with token ids is the call, and the trajectory that holds it its segment.
    assert find(targets, response_id="chatcmpl-1") == [Target("one", "one-1", f"{1:016x}")]
    assert find(targets, response_id="chatcmpl-2") == [Target("one", "one~2-1", f"{2:016x}")]
    assert find(targets, response_id="chatcmpl-3") == [Target("one", None, f"{3:016x}")]
    assert find(targets, trace_id="t2") == [Target("one", "one~2-1", None)]
    assert find(targets, trace_id="t4") == [Target("two")]
    assert find(targets, session_id="s") == [Target("two")]
    assert find(targets, session_id="s", scope="all") == [
        Target("two"),
        Target("one", "one-1"),
        Target("one", "one~2-1"),
        Target("one"),
    ]
    for fields in (
        {"rollout_id": "on"},
        {"rollout_id": "one~3"},
        {"response_id": "x"},
        {"trace_id": "t"},
        {"session_id": "%"},
    ):
        with pytest.raises(UnknownTargetError, match=f"nobody knows the {next(iter(fields)).removesuffix('_id')}"):
            find(targets, **fields)


def test_without_a_view(sqlite_database: str):
    with pytest.raises(ViewError, match="headrace processor view"):
        Targets(sqlite_database)
