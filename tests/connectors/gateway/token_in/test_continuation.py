"""Which turn a request goes on from, and why it does not."""

from typing import Any

import pytest

from headrace.connectors.gateway.token_in.continuation import answered, closed, find_turn
from headrace.connectors.gateway.token_in.fingerprints import beginnings
from headrace.connectors.gateway.token_in.memory import TURN_BYTES, Memory, Turn
from headrace.schemas.packing import pack_int32

KEY = ("ro", "ro-1")
SYSTEM: dict[str, Any] = {"role": "system", "content": "be brief"}
USER: dict[str, Any] = {"role": "user", "content": "hi"}
NEXT: dict[str, Any] = {"role": "user", "content": "and now?"}
SAID: dict[str, Any] = {"role": "assistant", "content": "hello"}
CALL = {"id": "call-1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
CALLED: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT: dict[str, Any] = {"role": "tool", "tool_call_id": "call-1", "content": "42"}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


def ids(*values: int) -> bytes:
    return pack_int32(values)


def remembered(said: dict[str, Any] = SAID, *asked: dict[str, Any], **fields: Any) -> Memory:
    """A memory of one turn."""
    memory = Memory(10_000)
    going = find_turn({"messages": asked or [SYSTEM, USER], **fields}, KEY, memory)
    assert going.result == "first"
    key = answered(going.fingerprint, said.get("content"), said.get("tool_calls"))
    memory.keep(KEY, key, Turn(ids(1, 2, 3), going.context, "policy", True))
    return memory


def result(memory: Memory, messages: list[Any], key: Any = KEY, **fields: Any) -> str:
    return find_turn({"messages": messages, **fields}, key, memory).result


def test_the_next_turn() -> None:
    going = find_turn({"messages": [SYSTEM, USER, SAID, NEXT], "stop": ["\n"]}, KEY, remembered())
    assert (going.result, going.new, going.stops) == ("continued", [NEXT], True)
    assert going.turn is not None
    assert going.turn.ids == ids(1, 2, 3)


@pytest.mark.parametrize(
    "said",
    [
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": " hello\n", "refusal": None, "reasoning_content": "hm", "tool_calls": None},
    ],
)
def test_a_client_may_write_the_answer_down_in_its_own_way(said: dict[str, Any]) -> None:
    assert result(remembered(), [SYSTEM, USER, said, NEXT]) == "continued"


def test_tool_calls_are_compared_by_what_they_say() -> None:
    memory = remembered(CALLED, tools=TOOLS)
    spaced = {**CALL, "function": {"name": "f", "arguments": '{"b":2,"a":1}'}}
    sent = {"role": "assistant", "content": "", "tool_calls": [spaced]}
    assert result(memory, [SYSTEM, USER, sent, RESULT], tools=TOOLS) == "continued"
    other = {**CALL, "function": {"name": "f", "arguments": '{"b":3,"a":1}'}}
    assert result(memory, [SYSTEM, USER, {**sent, "tool_calls": [other]}, RESULT], tools=TOOLS) == "unknown_history"


def test_why_a_prompt_is_rendered_anew() -> None:
    memory = remembered()
    history = [SYSTEM, USER, SAID]
    assert result(memory, [SYSTEM, USER]) == "first"
    assert result(memory, [*history[:2], {**SAID, "content": "hallo"}, NEXT]) == "unknown_history"
    assert result(memory, [{**SYSTEM, "content": "be verbose"}, *history[1:], NEXT]) == "unknown_history"
    assert result(memory, [*history, NEXT, SAID, NEXT]) == "unknown_history"
    assert result(memory, [*history, NEXT], key=("ro", "ro-2")) == "unknown_history"
    assert result(memory, [*history, NEXT], tools=TOOLS) == "other_context"
    assert result(memory, [*history, NEXT], chat_template_kwargs={"enable_thinking": False}) == "other_context"
    assert result(memory, [*history, NEXT], continue_final_message=True) == "options"
    assert result(memory, [*history, NEXT], kv_transfer_params=None) == "options"
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
    assert result(memory, [*history, image]) == "media"


@pytest.mark.parametrize(
    ("fields", "reason", "size", "expected"),
    [
        ({}, "stop", 3, True),
        ({"max_tokens": 3}, "stop", 3, True),
        ({}, "length", 3, False),
        ({}, "abort", 3, False),  # a load of weights has ended it
        ({"stop": ["e"]}, "stop", 3, False),
        ({"stop_token_ids": [4]}, "stop", 3, False),
        ({"max_tokens": None, "max_completion_tokens": 4}, "tool_calls", 3, True),
        ({"max_tokens": 3}, "tool_calls", 3, False),  # vLLM says so of calls that are followed by a cut text
    ],
)
def test_who_ended_a_turn(fields: dict[str, Any], reason: str, size: int, expected: bool) -> None:
    going = find_turn({"messages": [USER], **fields}, KEY, Memory(1000))
    assert closed(going, reason, size) == expected


ODD: list[Any] = [None, [None, 3], [{"role": "assistant", "tool_calls": [3, {"function": []}]}], [[]]]


@pytest.mark.parametrize("messages", ODD)
def test_requests_that_an_engine_will_refuse(messages: Any) -> None:
    assert result(Memory(1000), messages) in ("first", "unknown_history")


def test_how_tools_are_rendered() -> None:
    asked = {"messages": [SYSTEM, USER, SAID, NEXT], "tools": TOOLS, "reasoning_effort": "low"}
    given = {"tools": TOOLS, "reasoning_effort": "low"}
    assert find_turn(asked, KEY, remembered(SAID, **given)).options == {
        "tools": TOOLS,
        "chat_template_kwargs": {"reasoning_effort": "low"},
    }
    bare = {**given, "tool_choice": "none"}
    assert "tools" not in find_turn({**asked, "tool_choice": "none"}, KEY, remembered(SAID, **bare)).options


def test_turns_share_what_they_go_on_from() -> None:
    memory = Memory(4 * (TURN_BYTES + 8))
    parent: Turn | None = None
    for n in range(4):
        parent = Turn(ids(n, n), b"", "m", True, parent)
        memory.keep(KEY, b"%d" % n, parent)
    assert parent is not None
    assert parent.ids == ids(0, 0, 1, 1, 2, 2, 3, 3)
    assert parent.last == 3
    assert memory.size == 4 * (TURN_BYTES + 8)


def test_what_is_forgotten_first() -> None:
    memory = Memory(2 * (TURN_BYTES + 4))
    turn = Turn(ids(1), b"", "m", True)
    for rollout in ("a", "b", "a", "c"):
        memory.keep((rollout, None), rollout.encode(), turn)
    assert [memory.find((rollout, None), rollout.encode()) is not None for rollout in "abc"] == [False, False, True]
    memory.keep(("c", None), b"more", Turn(bytes(4 * TURN_BYTES), b"", "m", True))  # alone too large
    assert memory.size == 0
    assert memory.find(("c", None), b"c") is None


def test_beginnings_tell_where_messages_differ() -> None:
    one, two = beginnings([SYSTEM, USER, SAID]), beginnings([SYSTEM, USER, CALLED])
    assert one[:3] == two[:3]
    assert one[3] != two[3]
    assert len({*one, *two}) == 5
