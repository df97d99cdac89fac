"""A request to the Responses API as a chat completion."""

from collections.abc import Sequence
from typing import Any

from headrace.connectors.gateway.dialects.fields import Fields, invalid, unsupported
from headrace.connectors.gateway.dialects.responses.items import Messages
from headrace.streams.assembly.loose import as_list, as_mapping

# Named alike in both APIs, or an engine's own: they go over as they are.
PASSED = (
    "model",
    "stream",
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "user",
    "seed",
    "stop",
    "stop_token_ids",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "logit_bias",
    "min_tokens",
    "ignore_eos",
    "structured_outputs",
    "chat_template_kwargs",
    "return_token_ids",
)
READ = frozenset(
    {
        *PASSED,
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "text",
        "reasoning",
        "max_output_tokens",
        "metadata",
        "previous_response_id",
        "store",
        "include",
        "top_logprobs",
        "stream_options",
        "n",
    }
)
REFUSED = {
    "background": "an answer is given to the request that asks for it; leave background out",
    "conversation": "conversations are not stored; send their items as input",
    "prompt": "prompts are not stored; send instructions and input",
    "moderation": "there is no moderation",
}
LOGPROBS = "message.output_text.logprobs"


def input_messages(request: Fields, history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation that a request goes on with: `history`, then its input.

    Raises:
        CallError: 400 where there is nothing to answer.
    """
    messages = Messages(history)
    value = request.values.get("input")
    if isinstance(value, str):
        messages.all.append({"role": "user", "content": value})
    else:
        for item in request.listed("input"):
            messages.add(item)
    return messages.all


def chat_request(body: dict[str, Any], history: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The chat completion that a request asks for.

    Args:
        history: messages of the response that `previous_response_id` names, its own among them.

    Raises:
        CallError: 400 where the request cannot be, or asks for what only OpenAI's servers can do.
    """
    request = Fields(body)
    for name, reason in REFUSED.items():
        if body.get(name):
            raise unsupported(name, f"{name} is not supported: {reason}")
    if body.get("n") not in (None, 1):
        raise unsupported("n", "the Responses API gives one answer; send the request n times")
    messages = input_messages(request, history)
    if instructions := request.text("instructions"):
        messages.insert(0, {"role": "system", "content": instructions})
    if not messages:
        raise invalid("input", "input is required: a string, or a list of items")
    chat: dict[str, Any] = {name: body[name] for name in PASSED if body.get(name) is not None}
    chat["messages"] = messages
    if request.flag("stream"):
        chat["stream_options"] = {"include_usage": True}
    if (limit := request.count("max_output_tokens")) is not None:
        chat["max_completion_tokens"] = limit
    if (reasoning := request.fields("reasoning")) and (effort := reasoning.text("effort")):
        chat["reasoning_effort"] = effort
    if text := request.fields("text"):
        _read_text(text, chat)
    top = request.values.get("top_logprobs")
    if top or LOGPROBS in request.array("include"):
        chat["logprobs"] = True
        chat["top_logprobs"] = top or 0
    _read_tools(request, chat)
    return chat


def ignored(body: dict[str, Any]) -> list[str]:
    """What of a request has no meaning here, and is neither refused nor passed on."""
    found = [name for name, value in body.items() if value is not None and name not in READ and name not in REFUSED]
    if any(as_mapping(item).get("type") == "reasoning" for item in as_list(body.get("input"))):
        found.append("input.reasoning")
    found += [f"include.{name}" for name in as_list(body.get("include")) if name != LOGPROBS]
    return sorted(found)


def _read_text(text: Fields, chat: dict[str, Any]) -> None:
    if verbosity := text.text("verbosity"):
        chat["verbosity"] = verbosity
    form = text.fields("format")
    if form is None:
        return
    match form.text("type"):
        case "text":
            pass
        case "json_object":
            chat["response_format"] = {"type": "json_object"}
        case "json_schema":
            named = {"name": form.needed_text("name")}
            schema = {key: form.values[key] for key in ("description", "schema", "strict") if key in form.values}
            chat["response_format"] = {"type": "json_schema", "json_schema": named | schema}
        case other:
            raise invalid(form.path("type"), f"there is no text format {other!r}: use text, json_object or json_schema")


def _read_tools(request: Fields, chat: dict[str, Any]) -> None:
    tools = [_tool(tool) for tool in request.listed("tools")]
    choice = request.values.get("tool_choice")
    if isinstance(choice, dict):
        asked = Fields(choice, "tool_choice")
        kind = asked.text("type")
        if kind == "function":
            choice = {"type": "function", "function": {"name": asked.needed_text("name")}}
        elif kind == "allowed_tools":
            allowed = {tool.text("name") for tool in asked.listed("tools")}
            tools = [tool for tool in tools if tool["function"]["name"] in allowed]
            choice = asked.text("mode") or "auto"
        else:
            raise unsupported("tool_choice", f"tool_choice {kind!r} is not supported: only functions are")
    elif choice is not None and choice not in ("none", "auto", "required"):
        raise invalid("tool_choice", "tool_choice must be none, auto, required, or an object that names a function")
    if tools:
        chat["tools"] = tools
    if choice is not None and (tools or choice not in ("none", "auto")):
        chat["tool_choice"] = choice


def _tool(tool: Fields) -> dict[str, Any]:
    kind = tool.text("type")
    if kind != "function":
        raise unsupported(
            tool.path("type"),
            f"tools of type {kind!r} run on OpenAI's servers; only functions, which the agent runs, are supported",
        )
    function: dict[str, Any] = {"name": tool.needed_text("name")}
    for name in ("description", "parameters", "strict"):
        if tool.values.get(name) is not None:
            function[name] = tool.values[name]
    return {"type": "function", "function": function}
