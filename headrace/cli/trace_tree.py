"""A trace for people: a tree of attempts and spans, and a span as one line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.streams.view.source import Fields
    from headrace.streams.view.trace import AttemptTrace, SpanNode, Trace

STATUS_STYLES = {
    "succeeded": "green",
    "failed": "red",
    "timeout": "red",
    "cancelled": "yellow",
    "lost": "yellow",
    "running": "cyan",
}


def trace_tree(trace: Trace) -> Any:
    """A rich tree."""
    from rich.text import Text
    from rich.tree import Tree

    head = Text.assemble((trace.rollout_id, "bold"), "  ", _status(trace.status))
    head.append(_facts(_duration(trace.duration_ms), _final(trace)))
    root = Tree(head)
    for attempt in trace.attempts:
        label = Text.assemble((attempt.attempt_id or "outside an attempt", "bold"))
        if attempt.attempt_id:
            label.append("  ").append(*_status(attempt.status))
        label.append(_facts(*_attempt_facts(attempt)))
        branch = root.add(label)
        for reward in attempt.rewards:
            branch.add(_reward(reward))
        for span in attempt.spans:
            _add(branch, span)
    for reward in trace.rewards:
        root.add(_reward(reward))
    return root


def _add(branch: Any, span: SpanNode) -> None:
    from rich.text import Text

    label = Text(span.name, style="red" if span.status_code == "ERROR" else "")
    version = span.policy_version
    label.append(
        _facts(
            _duration(span.duration_ms),
            _tokens(span.prompt_tokens, span.response_tokens),
            span.finish_reason,
            span.agent_name and f"agent {span.agent_name}",
            None if version is None else f"v{version[0]}" + (f"-{version[1]}" if version[0] != version[1] else ""),
            span.error or (span.status_message if span.status_code == "ERROR" else None),
        )
    )
    below = branch.add(label)
    for reward in span.rewards:
        below.add(_reward(reward))
    for child in span.children:
        _add(below, child)


def span_line(span: Fields) -> str:
    """One span on one line, for those who follow or list them."""
    at = datetime.fromtimestamp(span["start_ns"] / 1e9, UTC).strftime("%H:%M:%S.%f")[:-3]
    facts = _facts(
        _duration((span["end_ns"] - span["start_ns"]) / 1e6),
        _tokens(span["prompt_tokens"], span["response_tokens"]),
        span["finish_reason"],
        span["agent_name"] and f"agent {span['agent_name']}",
        span["status_message"] if span["status_code"] == "ERROR" else None,
    )
    return f"{at}  {span['rollout_id']}  {span['attempt_id'] or '-'}  {span['name']}{facts}"


def _attempt_facts(attempt: AttemptTrace) -> list[str | None]:
    return [
        _duration(attempt.duration_ms),
        f"{attempt.calls} calls" if attempt.calls != 1 else "1 call",
        _tokens(attempt.prompt_tokens, attempt.response_tokens) if attempt.calls else None,
        f"delivery {attempt.delivery}" if (attempt.delivery or 1) > 1 else None,
        attempt.worker_id,
        attempt.error,
    ]


def _final(trace: Trace) -> str | None:
    found = trace.trajectory
    if found is None:
        return None
    kept = f"{found['kept']} of {found['calls']} calls kept"
    if found["dropped"]:
        kept += f" ({', '.join(f'{reason} {number}' for reason, number in found['dropped'].items())})"
    reward = "no reward" if trace.final_reward is None else f"reward {trace.final_reward:g}"
    return f"{reward}, {kept}" + (f", revision {found['revision']}" if found["revision"] else "")


def _reward(reward: dict[str, Any]) -> Any:
    from rich.text import Text

    name = reward["name"] or "reward"
    value = "not finite" if reward["value"] is None else f"{reward['value']:g}"
    return Text(f"{name} {value}  ({reward['source']})", style="magenta")


def _status(status: str | None) -> tuple[str, str]:
    return status or "unknown", STATUS_STYLES.get(status or "", "")


def _facts(*facts: str | None) -> str:
    return "".join(f"  {fact}" for fact in facts if fact)


def _tokens(prompt: int | None, response: int | None) -> str | None:
    return None if prompt is None and response is None else f"{prompt or 0}+{response or 0} tokens"


def _duration(milliseconds: float | None) -> str | None:
    if milliseconds is None:
        return None
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.2f} s"
