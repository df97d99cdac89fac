"""Model calls of Google's Agent Development Kit: Gemini's request and response, as JSON, of its spans `call_llm`."""

from collections.abc import Mapping
from typing import Any

from headrace.streams.assembly.loose import as_list, as_mapping
from headrace.streams.assembly.messages.genai import decoded
from headrace.streams.assembly.messages.message import Message, text_of
from headrace.streams.assembly.messages.openai import chat_messages

REQUEST, RESPONSE = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"


def request(attributes: Mapping[str, Any]) -> list[Message]:
    """`gcp.vertex.agent.llm_request`: the system's instruction and the contents."""
    fields = _object(attributes, REQUEST)
    found = chat_messages(fields.get("contents"))
    instruction = as_mapping(fields.get("config")).get("system_instruction")
    if instruction:
        parts = as_mapping(instruction).get("parts")
        texts = [as_mapping(part).get("text") for part in as_list(parts)]
        text = "".join(str(text) for text in texts if text) if texts else text_of(instruction)
        found.insert(0, Message(role="system", content=text))
    return found


def response(attributes: Mapping[str, Any]) -> list[Message]:
    """`gcp.vertex.agent.llm_response`: the one message of the answer."""
    content = as_mapping(_object(attributes, RESPONSE).get("content"))
    return chat_messages([{"role": "assistant", **content}]) if content else []


def tools(attributes: Mapping[str, Any]) -> list[Any]:
    """The functions that the request declares."""
    groups = as_list(as_mapping(_object(attributes, REQUEST).get("config")).get("tools"))
    return [function for group in groups for function in as_list(as_mapping(group).get("function_declarations"))]


def _object(attributes: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return as_mapping(decoded(attributes.get(key)))
