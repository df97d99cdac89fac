"""What was sent and answered in a call: the fullest account that any of its spans gives."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from headrace.streams.assembly.evidence import Evidence
from headrace.streams.assembly.loose import as_list, as_mapping, read_text
from headrace.streams.assembly.messages import adk, flattened, genai, vercel
from headrace.streams.assembly.messages.message import Message, ToolCall, arguments_of, openai_message
from headrace.streams.assembly.messages.openai import (
    chat_choices,
    chat_messages,
    listed_answer,
    request_messages,
    response_messages,
    tool_calls,
)
from headrace.streams.assembly.messages.tools import read_tools
from headrace.streams.assembly.values import Call, Node


class Conversation(msgspec.Struct):
    """The messages of one call."""

    sent: list[Message]
    answered: list[Message]  # one a choice
    tools: list[dict[str, Any]]


def read_conversation(call: Call, nodes: Sequence[Node]) -> Conversation:
    """The messages of a call. `nodes` are the spans of its attempt: AgentOps writes tool calls as spans below."""
    sent: list[list[Message]] = []
    answered: list[list[Message]] = []
    tools: list[dict[str, Any]] = []
    for node in call.copies:
        evidence = Evidence(node.span, node.attributes)
        sent += _sent(evidence)
        answered += _answered(evidence)
        tools = tools or read_tools(evidence)
    best = _fullest(answered, _weight_of_answer) or [Message(role="assistant")]
    if len(best) == 1 and not best[0].tool_calls:
        best[0].tool_calls = list(_calls_below(call, nodes))
    return Conversation(_fullest(sent, _weight_of_request), best, tools)


def conversation_json(calls: Iterable[Call], nodes: Sequence[Node]) -> str:
    """Calls as OpenAI messages with tools, one object a call and choice: the `conversations` of a trajectory."""
    found: list[dict[str, Any]] = []
    for call in calls:
        conversation = read_conversation(call, nodes)
        for position, answer in enumerate(conversation.answered):
            choice = call.choices[position].index if position < len(call.choices) else position
            entry: dict[str, Any] = {
                "span_id": call.node.span.span_id,
                "choice": choice,
                "messages": [openai_message(message) for message in [*conversation.sent, answer]],
            }
            if conversation.tools:
                entry["tools"] = conversation.tools
            found.append(entry)
    return json.dumps(found, ensure_ascii=False)


def _sent(evidence: Evidence) -> Iterator[list[Message]]:
    """What each convention says was sent, the most telling first."""
    attributes = evidence.attributes
    llm = evidence.span.llm
    if llm is not None and llm.request:
        yield request_messages(read_text(llm.request))
    if not attributes:
        return
    yield genai.input_messages(attributes)
    yield flattened.prompt_messages(attributes)
    yield genai.single_prompt(attributes)
    yield flattened.openinference_input(attributes)
    yield vercel.prompt(attributes)
    yield adk.request(attributes)
    yield chat_messages(evidence.provider.get("messages"))
    yield genai.event_messages(evidence.span.events)[0]
    yield genai.event_messages(attributes.get("events"))[0]
    yield request_messages(evidence.request)


def _answered(evidence: Evidence) -> Iterator[list[Message]]:
    attributes = evidence.attributes
    llm = evidence.span.llm
    if llm is not None:
        if llm.response:
            yield response_messages(as_mapping(read_text(llm.response)))
        yield [
            Message(role="assistant", content=choice.text or None, tool_calls=list(tool_calls(choice.tool_calls)))
            for choice in llm.choices
        ]
    if not attributes:
        return
    yield genai.output_messages(attributes)
    yield flattened.completion_messages(attributes)
    yield genai.single_completion(attributes)
    yield flattened.openinference_output(attributes)
    yield vercel.response(attributes)
    yield adk.response(attributes)
    yield chat_choices(evidence.choices)
    yield genai.event_messages(evidence.span.events)[1]
    yield genai.event_messages(attributes.get("events"))[1]
    yield response_messages(evidence.response)
    if isinstance(value := attributes.get("output.value"), str) and value.startswith("["):
        yield listed_answer(as_list(read_text(value)))


def _calls_below(call: Call, nodes: Sequence[Node]) -> Iterator[ToolCall]:
    """Tool calls that AgentOps wrote as spans directly below the model call."""
    below = [node for node in nodes if node.parent is not None and node.parent in call.copies]
    for node in sorted(below, key=lambda node: (node.span.start, node.index)):
        call_id, name = node.attributes.get("tool.call.id"), node.attributes.get("tool.name")
        if isinstance(call_id, str) and isinstance(name, str):
            yield ToolCall(call_id, name, arguments_of(node.attributes.get("tool.parameters")))


def _fullest(accounts: Sequence[list[Message]], weight: Callable[[list[Message]], Any]) -> list[Message]:
    """The account that says most; of equals the first."""
    return max(accounts, key=weight) if accounts else []


def _weight_of_request(messages: Sequence[Message]) -> tuple[int, int]:
    return len(messages), sum(not m.empty for m in messages) + sum(len(m.tool_calls) for m in messages)


def _weight_of_answer(messages: Sequence[Message]) -> int:
    return sum(bool(m.content) + sum(2 if c.id is not None else 1 for c in m.tool_calls) for m in messages)
