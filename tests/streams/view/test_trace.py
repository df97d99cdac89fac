"""Traces as trees."""

from typing import Any

from headrace.schemas.records import AttemptState, Span
from headrace.streams.view import tables
from headrace.streams.view.fields import fields_of
from headrace.streams.view.rows import Place, reward_row
from headrace.streams.view.span_rows import span_row
from headrace.streams.view.trace import SpanNode, trace_of
from headrace.streams.view.training_rows import trajectory_row

from . import records as make


def spans_of(*spans: Span) -> list[dict[str, Any]]:
    names = [c.name for c in tables.spans.columns]
    return [fields_of(names, span_row(s, Place(0, n, 0))) for n, s in enumerate(spans)]


def rewards_of(*rewards: Any) -> list[dict[str, Any]]:
    names = [c.name for c in tables.rewards.columns]
    return [fields_of(names, reward_row(r, Place(0, n, 0))) for n, r in enumerate(rewards)]


def step(name: str, parent: str | None = None, start: int = 0, end: int = 10, **changes: Any) -> Span:
    values: dict[str, Any] = {"trace_id": "t", "span_id": name, "parent_id": parent, "name": name}
    values |= {"llm": None, "attributes": "{}"}
    return make.span(1, start=start, end=end, **(values | changes))


def shape(nodes: list[SpanNode]) -> list[Any]:
    return [(n.name, shape(n.children)) if n.children else n.name for n in nodes]


def test_spans_hang_below_their_parents_in_the_order_of_time() -> None:
    spans = spans_of(
        step("call-2", "agent", 5), step("agent", "root", 1), step("root", None, 0, 20), step("call-1", "agent", 2)
    )
    (_, attempt) = trace_of("ro-1", make.rollout(1), spans, [], None).attempts
    assert shape(attempt.spans) == [("root", [("agent", ["call-1", "call-2"])])]


def test_lost_parents_and_circles_of_them_lose_no_span() -> None:
    spans = spans_of(
        step("orphan", "gone", 1),
        step("a", "b", 2),
        step("b", "a", 3),
        step("below", "a", 4),
        step("self", "self", 5),
        step("elsewhere", "a", 6, trace_id="u"),
    )
    (_, attempt) = trace_of("ro-1", make.rollout(1), spans, [], None).attempts
    assert shape(attempt.spans) == ["orphan", ("a", ["below"]), "b", "self", "elsewhere"]


def test_tokens_rewards_and_durations_stand_where_they_belong() -> None:
    call = make.span(1, span_id="call", trace_id="t")
    rewards = rewards_of(
        make.reward(1, value=0.25, span_id="call"),
        make.reward(2, value=1.0),
        make.reward(3, value=0.5, attempt_id=None, source="feedback"),
        make.reward(4, value=0.0, span_id="unknown"),
    )
    names = [c.name for c in tables.trajectories.columns]
    trajectory = fields_of(names, trajectory_row(make.trajectory(1), Place(0, 0, 0)))
    trace = trace_of("ro-1", make.rollout(1), spans_of(call), rewards, trajectory)
    failed, succeeded = trace.attempts
    assert (failed.status, failed.error, failed.duration_ms, failed.spans) == ("failed", "ValueError: no", 1000.0, [])
    assert (succeeded.calls, succeeded.prompt_tokens, succeeded.response_tokens) == (1, 60, 4)
    (node,) = succeeded.spans
    assert (node.duration_ms, node.policy_version, node.finish_reason) == (12.5, [3, 4], "stop")
    assert [r["value"] for r in node.rewards] == [0.25]
    assert [r["reward_id"] for r in succeeded.rewards] == ["rw-2", "rw-4"]
    assert [r["reward_id"] for r in trace.rewards] == ["rw-3"]
    assert (trace.status, trace.final_reward, trace.duration_ms) == ("succeeded", 1.0, 2000.0)
    assert trace.trajectory is not None
    assert trace.trajectory["kept"] == 2


def test_spans_of_attempts_that_lifecycle_does_not_know_are_shown() -> None:
    spans = spans_of(step("x", attempt_id=None), step("y", attempt_id="other"))
    trace = trace_of("ro-1", None, spans, [], None)
    assert [(a.attempt_id, a.status, shape(a.spans)) for a in trace.attempts] == [
        (None, None, ["x"]),
        ("other", None, ["y"]),
    ]


def test_calls_and_feedback_of_outside_traffic_are_of_its_only_attempt() -> None:
    state = make.rollout(
        1, origin="external", attempts=[AttemptState(attempt_id="ro-1-1", attempt=1, status="running")]
    )
    spans = spans_of(make.span(1, attempt_id=None))
    rewards = rewards_of(make.reward(1, attempt_id=None, span_id=None))
    trace = trace_of("ro-1", state, spans, rewards, None)
    (attempt,) = trace.attempts
    assert (attempt.attempt_id, attempt.calls, len(attempt.rewards), trace.rewards) == ("ro-1-1", 1, 1, [])
