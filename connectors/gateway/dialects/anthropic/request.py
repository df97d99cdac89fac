"""A request to Anthropic's Messages API as a chat completion."""

from typing import Any

from headrace.connectors.gateway.dialects.anthropic.blocks import THINKING, chat_messages, text_blocks
from headrace.connectors.gateway.dialects.fields import Fields, invalid, unsupported
from headrace.streams.assembly.loose import as_list, as_mapping

# Named alike in both APIs, or an engine's own: they go over as they are.
PASSED = (
    "model",
    "stream",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "stop_token_ids",
    "min_tokens",
    "ignore_eos",
    "structured_outputs",
    "chat_template_kwargs",
    "return_token_ids",
)
READ = frozenset({*PASSED, "max_tokens", "messages", "system", "stop_sequences", "tools", "tool_choice", "metadata"})
REFUSED = {
    "mcp_servers": "tools of MCP servers run on Anthropic's servers",
    "container": "there are no containers",
}
CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def chat_request(body: dict[str, Any]) -> dict[str, Any]:
    """The chat completion that a request asks for.

    Raises:
        CallError: 400 where the request cannot be, or asks for what only Anthropic's servers can do.
    """
    request = Fields(body)
    for name, reason in REFUSED.items():
        if body.get(name):
            raise unsupported(name, f"{name} is not supported: {reason}")
    limit = request.count("max_tokens")
    if limit is None:
        raise invalid("max_tokens", "max_tokens is required")
    chat: dict[str, Any] = {name: body[name] for name in PASSED if body.get(name) is not None}
    chat["max_completion_tokens"] = limit
    chat["messages"] = _messages(request)
    last = chat["messages"][-1]
    if last["role"] == "assistant" and "tool_calls" not in last:
        # The model goes on with what stands there, as Anthropic's does.
        chat |= {"continue_final_message": True, "add_generation_prompt": False}
    if request.flag("stream"):
        chat["stream_options"] = {"include_usage": True}
    if stops := request.array("stop_sequences"):
        chat["stop"] = stops
    if (metadata := request.fields("metadata")) and (user := metadata.text("user_id")):
        chat["user"] = user
    if (config := request.fields("output_config")) and (form := config.fields("format")):
        if form.text("type") != "json_schema":
            raise unsupported("output_config.format.type", "output_config.format.type must be json_schema")
        schema = {"name": "answer", "schema": form.values.get("schema"), "strict": True}
        chat["response_format"] = {"type": "json_schema", "json_schema": schema}
    _read_tools(request, chat)
    return chat


def ignored(body: dict[str, Any]) -> list[str]:
    """What of a request has no meaning here, and is neither refused nor passed on."""
    found = {name for name, value in body.items() if value is not None and name not in READ and name not in REFUSED}
    if not as_mapping(body.get("output_config")).keys() - {"format"}:
        found.discard("output_config")
    for message in as_list(body.get("messages")):
        for block in as_list(as_mapping(message).get("content")):
            fields = as_mapping(block)
            if fields.get("type") in THINKING:
                found.add("messages.thinking")
            if fields.get("is_error"):
                found.add("messages.is_error")
    return sorted(found)


def _messages(request: Fields) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if system := text_blocks(request, "system"):
        messages.append({"role": "system", "content": system})
    given = request.listed("messages")
    if not given:
        raise invalid("messages", "messages: at least one message is required")
    for message in given:
        messages += chat_messages(message)
    return messages


def _read_tools(request: Fields, chat: dict[str, Any]) -> None:
    if tools := [_tool(tool) for tool in request.listed("tools")]:
        chat["tools"] = tools
    choice = request.fields("tool_choice")
    if choice is None:
        return
    kind = choice.needed_text("type")
    if kind == "tool":
        chat["tool_choice"] = {"type": "function", "function": {"name": choice.needed_text("name")}}
    elif kind not in CHOICES:
        raise invalid("tool_choice.type", f"tool_choice.type must be auto, any, tool or none, not {kind!r}")
    elif tools or kind == "any":
        chat["tool_choice"] = CHOICES[kind]
    if choice.flag("disable_parallel_tool_use"):
        chat["parallel_tool_calls"] = False


def _tool(tool: Fields) -> dict[str, Any]:
    kind = tool.text("type")
    if kind not in (None, "custom"):
        raise unsupported(tool.path("type"), f"tools of type {kind!r} are Anthropic's own; give input_schema instead")
    schema = tool.fields("input_schema")
    if schema is None:
        raise invalid(tool.path("input_schema"), f"{tool.path('input_schema')} is required")
    function: dict[str, Any] = {"name": tool.needed_text("name")}
    if description := tool.text("description"):
        function["description"] = description
    function["parameters"] = schema.values
    if tool.flag("strict") is not None:
        function["strict"] = tool.flag("strict")
    return {"type": "function", "function": function}
