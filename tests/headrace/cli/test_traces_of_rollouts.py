"""`headrace traces show|spans|tail`, and the same answers from the topics and from the view."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import (
    AttemptState,
    Choice,
    Diagnostics,
    ModelCall,
    Reward,
    RolloutState,
    Span,
    Trajectory,
)
from headrace.streams.kafka.clock import wall_us
from tests.waiting import until

pytestmark = pytest.mark.kafka
MS = 1_000_000  # nanoseconds


def span(name: str, parent: str | None = None, start: int = 0, **changes: Any) -> Span:
    values: dict[str, Any] = {
        "rollout_id": "ro-1",
        "attempt_id": "at-1",
        "source": "runner",
        "trace_id": "t",
        "span_id": name,
        "parent_id": parent,
        "name": name,
        "start": start * MS,
        "end": (start + 5) * MS,
    }
    return Span(**(values | changes))


def write(asking: Any) -> None:
    now = wall_us()
    call = ModelCall(
        model="policy",
        prompt_token_ids=pack_int32([1, 2, 3]),
        choices=[Choice(index=0, response_token_ids=pack_int32([4, 5]), finish_reason="stop")],
    )
    attempt = AttemptState(attempt_id="at-1", attempt=1, status="succeeded", started_at=now, ended_at=now + 250_000)
    records = (
        RolloutState(rollout_id="ro-1", status="succeeded", group_id="g", attempts=[attempt], enqueued_at=now),
        RolloutState(rollout_id="ro-2", status="failed", enqueued_at=now + 1),
        span("plan", attributes='{"agent.name": "planner"}'),
        span("chat policy", "plan", 1, llm=call, source="gateway"),
        span("chat policy", "plan", 1, llm=call, source="gateway"),
        span("look up", "plan", 2),
        span("other", rollout_id="ro-2"),
        Reward(rollout_id="ro-1", attempt_id="at-1", reward_id="r", primary=True, value=0.75, source="agent", at=now),
        Trajectory(
            rollout_id="ro-1",
            group_id="g",
            status="succeeded",
            final_reward=0.75,
            diagnostics=Diagnostics(calls=3, kept=1, dropped={"no_token_ids": 2}),
            assembled_at=now,
        ),
    )
    asking.write(*records)


def test_topics_and_view_give_the_same_answers(asking: Any, headrace: Any, tmp_path: Path) -> None:
    write(asking)
    questions = [
        ("rollouts", "list", "--json"),
        ("rollouts", "list", "--json", "--status", "failed", "--since", "1h"),
        ("rollouts", "show", "ro-1", "--json"),
        ("traces", "show", "ro-1", "--json"),
        ("traces", "spans", "ro-1", "--json"),
        ("traces", "spans", "ro-1", "--json", "--attempt", "latest", "--name-contains", "l", "--limit", "2"),
    ]
    answers = [asking.json(*question) for question in questions]
    assert [r["rollout_id"] for r in answers[0]] == ["ro-1", "ro-2"]
    assert [r["rollout_id"] for r in answers[1]] == ["ro-2"]
    (trace,) = answers[3]
    (attempt,) = trace["attempts"]
    assert (trace["final_reward"], attempt["duration_ms"]) == (0.75, 250.0)
    assert (attempt["calls"], attempt["prompt_tokens"], attempt["response_tokens"]) == (1, 3, 2)
    (root,) = attempt["spans"]
    assert [c["name"] for c in root["children"]] == ["chat policy", "look up"]
    assert attempt["rewards"][0]["value"] == 0.75
    assert [s["name"] for s in answers[4]] == ["plan", "chat policy", "look up"]
    assert [s["name"] for s in answers[5]] == ["plan", "chat policy"]

    database = f"sqlite:///{tmp_path / 'view.db'}"
    assert "headrace processor view" in str(asking("rollouts", "list", "--database", database).exception)
    view = headrace.start("processor", "view", "--database", database)
    try:
        assert json.loads(view.stdout.readline())["ready"] == "view"
        until(lambda: asking(*questions[3], "--database", database).stdout == asking(*questions[3]).stdout)
    finally:
        view.terminate()
        assert view.wait(90) == 0
    for question, answer in zip(questions, answers, strict=True):
        assert asking.json(*question, "--database", database) == answer, question

    tree = asking("traces", "show", "ro-1", "--database", database).stdout
    assert "3+2 tokens" in tree
    assert "reward 0.75, 1 of 3 calls kept (no_token_ids 2)" in tree
    assert "ro-9" in str(asking("traces", "show", "ro-9", "--database", database).exception)


def test_tail_follows_what_is_asked_for(asking: Any, headrace: Any) -> None:
    write(asking)
    process = headrace.start("traces", "tail", "--since", "10m", "--agent", "plan", "--rollout", "ro-1", "--json")
    try:
        assert json.loads(process.stdout.readline())["span_id"] == "plan"
        asking.write(
            span("x", attributes='{"agent.name": "writer"}'), span("y", attributes='{"agent.name": "planner 2"}')
        )
        assert json.loads(process.stdout.readline())["span_id"] == "y"
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
