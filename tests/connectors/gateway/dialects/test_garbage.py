"""Whatever a client sends is translated or refused with a 400; whatever an engine answers is translated."""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connectors.gateway.dialects.anthropic import MessagesDialect
from headrace.connectors.gateway.dialects.responses import ResponsesDialect
from headrace.connectors.gateway.dialects.responses.history import History
from headrace.connectors.gateway.errors import CallError

DIALECTS = [ResponsesDialect(History(10_000), clock=lambda: 0.0), MessagesDialect()]
KNOWN = ["type", "role", "content", "text", "name", "id", "input", "output", "call_id", "tools", "function", "source"]
KINDS = ["text", "message", "function_call", "function_call_output", "reasoning", "tool_use", "tool_result", "image"]
leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=3)
words = leaves | st.sampled_from([*KINDS, "user", "assistant", "function", "base64", "json_schema", "auto", "length"])
values = st.recursive(
    words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=4),
    max_leaves=12,
)
VALID: list[dict[str, Any]] = [
    {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "x"}, {"type": "input_image", "image_url": "u"}],
            },
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "x"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {}}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "f"}]},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "reasoning": {"effort": "low"},
        "include": ["message.output_text.logprobs"],
        "max_output_tokens": 3,
        "previous_response_id": None,
        "metadata": {},
    },
    {
        "model": "m",
        "max_tokens": 3,
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "u"}}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": []}]},
        ],
        "tools": [{"name": "f", "input_schema": {}}],
        "tool_choice": {"type": "tool", "name": "f"},
        "stop_sequences": ["x"],
        "metadata": {"user_id": "u"},
        "output_config": {"format": {"type": "json_schema", "schema": {}}},
    },
]
ANSWER: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "m",
    "created": 1,
    "choices": [
        {
            "index": 0,
            "message": {
                "content": "x",
                "refusal": None,
                "reasoning": "r",
                "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}],
            },
            "logprobs": {"content": [{"token": "x", "logprob": 0, "bytes": [], "top_logprobs": []}]},
            "finish_reason": "stop",
            "stop_reason": None,
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
}


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of a value, so that each may hold something else."""
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += paths(child, (*path, key))
    return found


def with_change(value: Any, path: tuple[Any, ...], change: Any) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = change
    return changed


def check_refusal(dialect: Any, refused: CallError) -> None:
    assert refused.status == 400
    assert orjson.loads(dialect.error(refused.status, refused.code, str(refused)))["error"]["message"]


def translate(dialect: Any, body: Any) -> None:
    try:
        chat = dialect.read(body)
    except CallError as refused:
        check_refusal(dialect, refused)
        return
    orjson.dumps(chat)
    assert chat["messages"]
    dialect.ignored(body)
    orjson.dumps(dialect.answer(ANSWER, body))
    stream = dialect.stream(body)
    assert stream.feed(ANSWER)
    assert stream.end()


@pytest.mark.parametrize(("dialect", "valid"), list(zip(DIALECTS, VALID, strict=True)), ids=["responses", "anthropic"])
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_requests(dialect: Any, valid: dict[str, Any], data: st.DataObject) -> None:
    body = with_change(valid, data.draw(st.sampled_from(paths(valid))), data.draw(values))
    translate(dialect, body)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda value: value.name)
@given(body=values)
@settings(max_examples=60, deadline=None)
def test_anything(dialect: Any, body: Any) -> None:
    translate(dialect, body)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda value: value.name)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_answers(dialect: Any, data: st.DataObject) -> None:
    answer = with_change(ANSWER, data.draw(st.sampled_from(paths(ANSWER))), data.draw(values))
    orjson.dumps(dialect.answer(answer, VALID[0]))
    stream = dialect.stream(VALID[0])
    stream.feed(answer)
    assert stream.feed(answer) is not None
    stream.end()


def test_a_request_that_is_nested_too_deeply() -> None:
    deep: Any = {}
    for _ in range(20_000):
        deep = {"a": deep}
    tool_use = {"type": "tool_use", "id": "t", "name": "f", "input": deep}
    with pytest.raises(CallError):
        MessagesDialect().read({"max_tokens": 1, "messages": [{"role": "assistant", "content": [tool_use]}]})
