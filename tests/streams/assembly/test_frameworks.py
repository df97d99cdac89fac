"""What agent frameworks' own instrumentation writes, where it is no call, or tells one in its own way."""

import json
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import AttemptEvent, Choice, ModelCall, Span, TaskFacts, Trajectory
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble

LLM = {"openinference.span.kind": "LLM"}
CALLS = [{"id": "x", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]


def traced(name: str, attributes: dict[str, Any], at: int = 0, **fields: Any) -> Span:
    """A framework's span of an OpenInference LLM kind, ten milliseconds long."""
    start = 1_800_000_000_000_000_000 + at * 1_000_000
    return Span(
        rollout_id="ro",
        attempt_id="at",
        source=fields.pop("source", "otlp"),
        trace_id="t",
        span_id=f"{name} {at}",
        name=name,
        start=start,
        end=start + 10_000_000,
        attributes=json.dumps(LLM | attributes),
        **fields,
    )


def assembled(*spans: Span) -> Trajectory:
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="started", task=TaskFacts(), at=0), 0, 0)
    for offset, one in enumerate(spans):
        records.add_span(one, offset, 1)
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="succeeded", final=True, at=0), 1, 2)
    return assemble(records, AssemblySettings(conversations=True), assembled_at=0)


def dropped(*spans: Span) -> dict[str, int]:
    return assembled(*spans).diagnostics.dropped


def test_what_builds_a_prompt_from_a_template_is_no_call() -> None:
    template = {"llm.prompt_template.template": "What is {{ a }}?", "input.value": "{}", "output.value": "What is 2?"}
    assert dropped(traced("PromptBuilder.run", template)) == {"no_model_call": 1}
    for told in ("llm.model_name", "llm.output_messages.0.message.content", "llm.invocation_parameters"):
        assert dropped(traced("LLM.predict", template | {told: "m"})) == {"no_token_ids": 1}


@pytest.mark.parametrize(("reason", "expected"), [("stop", {}), (None, {"incomplete_response": 1})])
def test_a_stream_that_its_reader_left_is_cut(reason: str | None, expected: dict[str, int]) -> None:
    response = {"id": "c1", "prompt_token_ids": [1], "choices": [{"token_ids": [2], "finish_reason": reason}]}
    parameters = {"llm.invocation_parameters": '{"model": "m", "stream": true}'}
    assert dropped(traced("ChatCompletion", parameters | {"output.value": json.dumps(response)})) == expected


def test_an_answer_that_asks_for_nothing_streamed_is_whole_without_a_reason() -> None:
    response = {"id": "c1", "prompt_token_ids": [1], "choices": [{"token_ids": [2]}]}
    parameters = {"llm.invocation_parameters": '{"model": "m", "stream": false}'}
    assert dropped(traced("ChatCompletion", parameters | {"output.value": json.dumps(response)})) == {}


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        # CrewAI's event listener: the tool calls alone
        ({"llm.input_messages.0.message.content": "1+1?"}, {"output.value": json.dumps(CALLS)}),
        # OpenAI Agents, streamed: the whole response in a list, with an id that all of them share
        (
            {"llm.input_messages.0.message.content": "1+1?"},
            {
                "output.value": json.dumps(
                    [
                        {
                            "id": "__fake_id__",
                            "object": "response",
                            "output": [{"type": "function_call", "name": "add", "arguments": '{"a": 1}'}],
                        }
                    ]
                )
            },
        ),
        # Haystack's generators: the message as a text
        (
            {"input.value": json.dumps({"messages": "1+1?", "tools": None})},
            {"llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "add"}
            | {"llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"a": 1}'},
        ),
    ],
)
def test_a_copy_tells_a_call_in_its_own_way(asked: dict[str, str], answered: dict[str, str]) -> None:
    call = ModelCall(
        model="m",
        response_id="c1",
        prompt_token_ids=pack_int32([1]),
        choices=[
            Choice(index=0, response_token_ids=pack_int32([2]), finish_reason="stop", tool_calls=json.dumps(CALLS))
        ],
        request=json.dumps({"messages": [{"role": "user", "content": "1+1?"}]}),
    )
    seen = traced("chat", {}, 2, source="gateway", llm=call)
    assert dropped(traced("llm_call", asked | answered), seen) == {"duplicate_call": 1}


def test_tools_as_one_text() -> None:
    tools = [{"type": "function", "function": {"name": "add"}}]
    response = {"id": "c1", "prompt_token_ids": [1], "choices": [{"token_ids": [2], "finish_reason": "stop"}]}
    told = {"llm.tools": json.dumps(tools), "output.value": json.dumps(response)}
    (entry,) = json.loads(assembled(traced("llm_call", told)).conversations or "[]")
    assert entry["tools"] == tools


ADK = {"scope": '{"name": "gcp.vertex.agent", "version": "1.14.1"}'}
ADK_REQUEST = {
    "config": {
        "system_instruction": "You add.",
        "tools": [{"function_declarations": [{"name": "add", "parameters": {"type": "OBJECT"}}]}],
    },
    "contents": [{"role": "user", "parts": [{"text": "1+1?"}]}],
}


def adk(name: str, at: int, parent: str | None = None, **attributes: Any) -> Span:
    """A span of Google's ADK; its spans of calls have no kind, and end after the tools that were asked for."""
    found = traced(name, {}, at, parent_id=parent, **ADK)
    found.attributes = json.dumps({f"gcp.vertex.agent.{key}": json.dumps(value) for key, value in attributes.items()})
    return found


def test_calls_of_googles_adk() -> None:
    response = {"content": {"role": "model", "parts": [{"function_call": {"name": "add", "args": {"a": 1}}}]}}
    told = adk("call_llm", 1, "agent_run [adder] 0", llm_request=ADK_REQUEST, llm_response=response)
    silent = adk("call_llm", 3, "agent_run [adder] 0")  # what has failed, or records no content
    assert dropped(adk("agent_run [adder]", 0), told, silent) == {"no_token_ids": 2}
    call = ModelCall(
        model="m",
        prompt_token_ids=pack_int32([1]),
        choices=[
            Choice(index=0, response_token_ids=pack_int32([2]), finish_reason="stop", tool_calls=json.dumps(CALLS))
        ],
        request=json.dumps({"messages": [{"role": "user", "content": "1+1?"}]}),
    )
    found = assembled(adk("agent_run [adder]", 0), told, traced("chat", {}, 2, source="gateway", llm=call))
    assert found.diagnostics.dropped == {"duplicate_call": 1}
    assert [triplet.agent_name for triplet in found.triplets] == ["adder"]
    (entry,) = json.loads(found.conversations or "[]")
    assert [message["content"] for message in entry["messages"]] == ["You add.", "1+1?", None]
    assert entry["tools"] == [{"type": "function", "function": {"name": "add", "parameters": {"type": "OBJECT"}}}]


def test_what_a_tool_calls_is_no_copy_of_the_call_that_asked_for_it() -> None:
    tool = traced("tool", {"openinference.span.kind": "TOOL"}, 2, parent_id="call_llm 1")
    below = [adk("call_llm", 1), tool, adk("call_llm", 3, "tool 2")]
    assert dropped(*below) == {"no_token_ids": 2}
    below[2].parent_id = "call_llm 1"
    assert dropped(*below) == {"no_token_ids": 1, "duplicate_call": 1}


def test_a_call_within_an_agents_span_is_that_agents_though_nothing_links_the_two():
    agent = traced("planner", {"openinference.span.kind": "AGENT"})
    agent.end += 20_000_000
    call = ModelCall(
        model="policy",
        response_id="r",
        prompt_token_ids=pack_int32([1]),
        choices=[Choice(index=0, response_token_ids=pack_int32([2]), finish_reason="stop")],
    )
    answered = traced("chat policy", {}, at=5, source="gateway", llm=call)
    assert [triplet.agent_name for triplet in assembled(answered, agent).triplets] == ["planner"]
