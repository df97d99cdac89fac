"""Copies of a call that share neither a response id nor a trace."""

import json
from typing import Any

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import AttemptEvent, Choice, ModelCall, Span, TaskFacts, Trajectory
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble

MS = 1_000_000
START = 1_800_000_000_000 * MS


def gateway(number: int, at: int, asked: str = "hi", answer: str = "yes", **fields: Any) -> Span:
    """The gateway's span of a call that began `at` milliseconds and took ten."""
    call = ModelCall(
        model="m",
        response_id=f"c{number}",
        prompt_token_ids=pack_int32([1, number]),
        choices=[Choice(index=0, response_token_ids=pack_int32([2]), finish_reason="stop", text=answer)],
        request=json.dumps({"messages": [{"role": "user", "content": asked}]}),
        **fields,
    )
    return span(f"g{number}", "gateway", at, at + 10, {}, llm=call)


def library(
    name: str, at: int, end: int, asked: str = "hi", answer: str = "yes", scope: str = "langchain", **more: Any
) -> Span:
    """A framework's span of a call: no response id, and a trace of its own."""
    attributes = {
        "openinference.span.kind": "LLM",
        "agent.name": name,
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": asked,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": answer,
        **more,
    }
    return span(name, "otlp", at, end, attributes, scope=json.dumps({"name": scope}))


def span(span_id: str, source: str, at: int, end: int, attributes: dict[str, Any], **fields: Any) -> Span:
    return Span(
        rollout_id="ro",
        attempt_id="at",
        source=source,
        trace_id=f"trace of {span_id}",
        span_id=span_id,
        name="ChatOpenAI",
        start=START + at * MS,
        end=START + end * MS,
        attributes=json.dumps(attributes),
        **fields,
    )


def assembled(*spans: Span) -> Trajectory:
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="started", task=TaskFacts(), at=0), 0, 0)
    for offset, one in enumerate(spans):
        records.add_span(one, offset, 1)
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="succeeded", final=True, at=0), 1, 2)
    return assemble(records, AssemblySettings(), assembled_at=0)


def told(trajectory: Trajectory) -> tuple[dict[str | None, str | None], dict[str, int]]:
    return {t.response_id: t.agent_name for t in trajectory.triplets}, trajectory.diagnostics.dropped


def test_a_copy_is_known_by_what_was_said_while_it_ran() -> None:
    assert told(assembled(library("planner", 0, 20), gateway(1, 5))) == ({"c1": "planner"}, {"duplicate_call": 1})
    # The span of a stream may end before the stream does, and the gateway's clock be another one.
    early, skewed = library("planner", 0, 1), gateway(1, -900)
    assert told(assembled(early, skewed)) == ({"c1": "planner"}, {"duplicate_call": 1})


def test_what_is_said_otherwise_or_at_another_time_is_another_call() -> None:
    for other in (
        library("planner", 0, 20, asked="ho"),
        library("planner", 0, 20, answer="no"),
        library("planner", 0, 20, answer=""),
        library("planner", 5_000, 5_020),
        library("planner", 0, 20, prompt_token_ids=[1], response_token_ids=[2]),
    ):
        found, dropped = told(assembled(gateway(1, 5), other))
        assert found["c1"] is None
        assert "duplicate_call" not in dropped


def test_calls_that_say_the_same_have_a_copy_each() -> None:
    spans = [library("a", 0, 30), library("b", 2, 30), gateway(1, 5), gateway(2, 6)]
    names, dropped = told(assembled(*spans))
    assert sorted(names.values(), key=str) == ["a", "b"]
    assert dropped == {"duplicate_call": 2}
    names, dropped = told(assembled(*spans[:3]))  # what no gateway has seen stays a call
    assert len(names) == 1
    assert dropped == {"duplicate_call": 1, "no_token_ids": 1}


def test_of_a_client_that_tried_again_it_is_the_last_call() -> None:
    spans = [library("planner", 0, 50), gateway(1, 5), gateway(2, 25, retry_count=1)]
    assert told(assembled(*spans)) == ({"c2": "planner"}, {"duplicate_call": 1, "undelivered": 1})


def test_copies_of_two_libraries() -> None:
    spans = [library("planner", 0, 50), library("coder", 2, 48, scope="litellm"), gateway(1, 5)]
    _, dropped = told(assembled(*spans))
    assert dropped == {"duplicate_call": 2}


def test_tools_are_compared_as_they_are_called() -> None:
    calls = [{"id": "x", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]
    seen = gateway(1, 5, answer="")
    assert seen.llm is not None
    seen.llm.choices[0].tool_calls = json.dumps(calls)
    prefix = "llm.output_messages.0.message.tool_calls.0.tool_call"
    for arguments, copies in (('{"a":1}', {"duplicate_call": 1}), ('{"a":2}', {"no_token_ids": 1})):
        called = {f"{prefix}.function.name": "add", f"{prefix}.function.arguments": arguments}
        assert told(assembled(library("planner", 0, 20, answer="", **called), seen))[1] == copies


def test_a_method_that_only_puts_a_request_together_is_no_call() -> None:
    helper = library("planner", 0, 1)
    helper.name = "OpenAILike._prepare_chat_with_tools"
    assert told(assembled(helper, gateway(1, 5))) == ({"c1": None}, {})
