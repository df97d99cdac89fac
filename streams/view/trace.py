"""The trace of a rollout as a tree: attempts, their spans below each other, tokens, rewards, durations."""

from typing import Any

import msgspec

from headrace.schemas.records import AttemptState, RolloutState
from headrace.streams.lifecycle.machine import EXTERNAL
from headrace.streams.view.source import Fields


class SpanNode(msgspec.Struct, kw_only=True):
    """A span with what lies below it. Durations are milliseconds, times nanoseconds since the epoch."""

    span_id: str
    parent_id: str | None
    trace_id: str
    name: str
    agent_name: str | None
    source: str
    status_code: str
    status_message: str
    start_ns: int
    duration_ms: float
    model: str | None
    policy_version: list[int] | None
    prompt_tokens: int | None
    response_tokens: int | None
    finish_reason: str | None
    http_status: int | None
    error: str | None
    rewards: list[dict[str, Any]]
    children: "list[SpanNode]"


class AttemptTrace(msgspec.Struct, kw_only=True):
    """An attempt with its spans; the calls are those spans that trace one."""

    attempt_id: str | None
    attempt: int | None
    delivery: int | None
    status: str | None
    worker_id: str | None
    duration_ms: float | None
    error: str | None
    calls: int
    prompt_tokens: int
    response_tokens: int
    rewards: list[dict[str, Any]]
    spans: list[SpanNode]


class Trace(msgspec.Struct, kw_only=True):
    """All that is known of a rollout's run."""

    rollout_id: str
    status: str | None
    duration_ms: float | None
    final_reward: float | None
    trajectory: dict[str, Any] | None
    rewards: list[dict[str, Any]]
    attempts: list[AttemptTrace]


def trace_of(
    rollout_id: str,
    state: RolloutState | None,
    spans: list[Fields],
    rewards: list[Fields],
    trajectory: Fields | None,
) -> Trace:
    """The trace that records make, in any order.

    A reward that names a span stands at the span, one that names an attempt at the attempt, any other at the rollout.
    Spans without a parent that is there are roots, as are those of a circle of parents. What outside traffic says of no
    attempt is of the only one that it has, which the assembler began.
    """
    known = {a.attempt_id: a for a in state.attempts} if state is not None else {}
    if state is not None and state.origin == EXTERNAL and len(known) == 1:
        (only,) = known
        spans = [{**s, "attempt_id": s["attempt_id"] or only} for s in spans]
        rewards = [{**r, "attempt_id": r["attempt_id"] or only} for r in rewards]
    ids: list[str | None] = list(known)
    for fields in (*spans, *rewards):
        attempt_id = fields["attempt_id"] or None
        if attempt_id not in ids and (attempt_id is not None or "trace_id" in fields):
            ids.append(attempt_id)
    attempts = [
        _attempt(
            attempt_id,
            known.get(attempt_id),
            [s for s in spans if (s["attempt_id"] or None) == attempt_id],
            [r for r in rewards if r["attempt_id"] == attempt_id],
        )
        for attempt_id in ids
    ]
    return Trace(
        rollout_id=rollout_id,
        status=state.status if state is not None else None,
        duration_ms=_milliseconds(state.enqueued_at, state.ended_at) if state is not None else None,
        final_reward=trajectory["final_reward"] if trajectory is not None else None,
        trajectory=None if trajectory is None else _trajectory(trajectory),
        rewards=[_reward(r) for r in rewards if r["attempt_id"] not in ids],
        attempts=attempts,
    )


def _attempt(
    attempt_id: str | None, state: AttemptState | None, spans: list[Fields], rewards: list[Fields]
) -> AttemptTrace:
    ids = {s["span_id"] for s in spans}
    by_span: dict[str, list[Fields]] = {}
    for reward in rewards:
        if reward["span_id"] in ids:
            by_span.setdefault(reward["span_id"], []).append(reward)
    calls = [s for s in spans if s["model"] is not None or s["prompt_tokens"] is not None]
    error = state.error if state is not None else None
    return AttemptTrace(
        attempt_id=attempt_id,
        attempt=state.attempt if state is not None else None,
        delivery=state.delivery if state is not None else None,
        status=state.status if state is not None else None,
        worker_id=state.worker_id if state is not None else None,
        duration_ms=_milliseconds(state.started_at, state.ended_at) if state is not None else None,
        error=f"{error.type}: {error.message}" if error is not None else None,
        calls=len(calls),
        prompt_tokens=sum(s["prompt_tokens"] or 0 for s in calls),
        response_tokens=sum(s["response_tokens"] or 0 for s in calls),
        rewards=[_reward(r) for r in rewards if r["span_id"] not in ids],
        spans=_tree(spans, by_span),
    )


def _tree(spans: list[Fields], rewards: dict[str, list[Fields]]) -> list[SpanNode]:
    ordered = sorted(spans, key=lambda s: (s["start_ns"], -s["end_ns"], s["log_partition"], s["log_offset"]))
    nodes = {(s["trace_id"], s["span_id"]): _node(s, rewards.get(s["span_id"], [])) for s in ordered}
    roots: list[SpanNode] = []
    for (trace_id, span_id), node in nodes.items():
        parent = nodes.get((trace_id, node.parent_id or ""))
        if parent is None or _leads_to(nodes, parent, span_id):
            roots.append(node)
        else:
            parent.children.append(node)
    return roots


def _leads_to(nodes: dict[tuple[str, str], SpanNode], node: SpanNode, span_id: str) -> bool:
    """Whether a span is itself among the ancestors of its parent."""
    seen: set[str] = set()
    at: SpanNode | None = node
    while at is not None and at.span_id not in seen:
        if at.span_id == span_id:
            return True
        seen.add(at.span_id)
        at = nodes.get((at.trace_id, at.parent_id or ""))
    return False


def _node(span: Fields, rewards: list[Fields]) -> SpanNode:
    low, high = span["policy_version_min"], span["policy_version_max"]
    return SpanNode(
        span_id=span["span_id"],
        parent_id=span["parent_id"],
        trace_id=span["trace_id"],
        name=span["name"],
        agent_name=span["agent_name"],
        source=span["source"],
        status_code=span["status_code"],
        status_message=span["status_message"],
        start_ns=span["start_ns"],
        duration_ms=(span["end_ns"] - span["start_ns"]) / 1e6,
        model=span["model"],
        policy_version=None if low is None else [low, high],
        prompt_tokens=span["prompt_tokens"],
        response_tokens=span["response_tokens"],
        finish_reason=span["finish_reason"],
        http_status=span["http_status"],
        error=f"{span['error_type']}: {span['error_message']}" if span["error_type"] is not None else None,
        rewards=[_reward(r) for r in rewards],
        children=[],
    )


def _reward(reward: Fields) -> dict[str, Any]:
    return {name: reward[name] for name in ("reward_id", "name", "value", "is_primary", "source", "span_id", "at")}


def _trajectory(trajectory: Fields) -> dict[str, Any]:
    names = ("revision", "attempt_id", "status", "final_reward", "rewards", "calls", "kept", "dropped", "triplets")
    return {name: trajectory[name] for name in names}


def _milliseconds(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else (end - start) / 1e3
