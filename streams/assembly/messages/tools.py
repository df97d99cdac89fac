"""The tools that a call offered the model, as OpenAI's chat API takes them."""

from collections.abc import Mapping
from typing import Any

from headrace.streams.assembly.evidence import Evidence
from headrace.streams.assembly.loose import as_list, as_mapping, indexed, read_text
from headrace.streams.assembly.messages import adk
from headrace.streams.assembly.messages.genai import decoded


def read_tools(evidence: Evidence) -> list[dict[str, Any]]:
    """Tool definitions; empty if the trace has none."""
    attributes = evidence.attributes
    llm = evidence.span.llm
    sources = (
        as_mapping(read_text(llm.request)).get("tools") if llm is not None and llm.request else None,
        decoded(attributes.get("gen_ai.tool.definitions")),
        indexed(attributes, "gen_ai.request.functions") or indexed(attributes, "llm.request.functions"),
        [decoded(as_mapping(as_mapping(t).get("tool")).get("json_schema")) for t in indexed(attributes, "llm.tools")],
        decoded(attributes.get("llm.tools")),
        [decoded(item) for item in as_list(attributes.get("ai.prompt.tools"))],
        adk.tools(attributes),
        decoded(evidence.provider.get("tools")),
    )
    for source in sources:
        tools = [tool for item in as_list(source) if (tool := _tool(as_mapping(item))) is not None]
        if tools:
            return tools
    return []


def _tool(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    function = as_mapping(fields.get("function")) or fields
    name = function.get("name")
    if not isinstance(name, str) or not name:
        return None
    found: dict[str, Any] = {"name": name}
    if isinstance(description := function.get("description"), str):
        found["description"] = description
    for key in ("parameters", "input_schema", "inputSchema"):
        if key in function:
            found["parameters"] = decoded(function[key])
            break
    return {"type": "function", "function": found}
