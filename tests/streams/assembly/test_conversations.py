"""Calls as OpenAI messages, in the trajectory."""

import json
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import AttemptEvent, Choice, ModelCall, Span, TaskFacts
from headrace.streams.assembly.messages.message import openai_message
from headrace.streams.assembly.messages.openai import chat_messages, request_messages, response_messages
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble

TOOL = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {"type": "object"}}}
CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]


def gateway_span() -> Span:
    request = {"model": "m", "messages": [{"role": "user", "content": "1+1?"}], "tools": [TOOL]}
    choices = [
        Choice(index=0, response_token_ids=pack_int32([1]), finish_reason="tool_calls", tool_calls=json.dumps(CALLS)),
        Choice(index=1, response_token_ids=pack_int32([2]), finish_reason="stop", text="2"),
    ]
    call = ModelCall(model="m", prompt_token_ids=pack_int32([7]), choices=choices, request=json.dumps(request))
    return Span(
        rollout_id="ro",
        attempt_id="at",
        source="gateway",
        trace_id="t",
        span_id="s",
        name="chat",
        start=1,
        end=2,
        llm=call,
    )


def test_gateway_calls_as_conversations():
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="started", task=TaskFacts(), at=0), 0, 0)
    records.add_span(gateway_span(), 0, 1)
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="at", type="succeeded", final=True, at=0), 1, 2)
    trajectory = assemble(records, AssemblySettings(conversations=True), assembled_at=0)
    first, second = json.loads(trajectory.conversations or "null")
    user = {"role": "user", "content": "1+1?"}
    assert first["messages"] == [user, {"role": "assistant", "content": None, "tool_calls": CALLS}]
    assert second["messages"] == [user, {"role": "assistant", "content": "2"}]
    assert first["tools"] == [TOOL]
    assert [(entry["span_id"], entry["choice"]) for entry in (first, second)] == [("s", 0), ("s", 1)]


@pytest.mark.parametrize(
    ("request_json", "expected"),
    [
        (
            {"system": "S", "messages": [{"role": "user", "content": [{"type": "text", "text": "U"}]}]},
            [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        ),
        (
            {
                "instructions": "S",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "U"}]},
                    {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
                    {"type": "function_call_output", "call_id": "c1", "output": "1"},
                ],
            },
            [
                {"role": "system", "content": "S"},
                {"role": "user", "content": "U"},
                {"role": "assistant", "content": None, "tool_calls": CALLS},
                {"role": "tool", "content": "1", "tool_call_id": "c1"},
            ],
        ),
        ({"prompt": "once"}, [{"role": "user", "content": "once"}]),
    ],
)
def test_requests_of_several_apis(request_json: dict[str, Any], expected: list[dict[str, Any]]):
    assert [openai_message(message) for message in request_messages(request_json)] == expected


def test_tool_results_of_anthropic_are_messages_of_their_own():
    content = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "18 C"}]},
        {"type": "text", "text": "and now?"},
    ]
    assert [openai_message(message) for message in chat_messages([{"role": "user", "content": content}])] == [
        {"role": "tool", "content": "18 C", "tool_call_id": "t1"},
        {"role": "user", "content": "and now?"},
    ]


def test_an_answer_in_several_items_is_one_message():
    output = [
        {"type": "reasoning", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me add."}]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
    ]
    [message] = response_messages({"output": output})
    assert openai_message(message) == {"role": "assistant", "content": "Let me add.", "tool_calls": CALLS}


def test_images_stay_as_they_came():
    url = "data:image/png;base64,AAAA"
    parts = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url, "detail": "low"}}]
    [message] = chat_messages([{"role": "user", "content": parts}])
    assert message.content == [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]
