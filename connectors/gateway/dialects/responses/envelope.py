"""All of a Responses object but what was generated."""

from typing import Any

from headrace.connectors.gateway.dialects.pieces import Tokens
from headrace.streams.assembly.loose import as_list, as_mapping


def envelope(response_id: str, model: str, created: float, body: dict[str, Any], stored: bool) -> dict[str, Any]:
    """A response in progress: what the request asked for, as OpenAI repeats it."""
    text = as_mapping(body.get("text"))
    reasoning = as_mapping(body.get("reasoning"))
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "metadata": body.get("metadata") or {},
        "model": model,
        "output": [],
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": "default",
        "store": stored,
        "temperature": _default(body.get("temperature"), 1.0),
        "text": {"format": text.get("format") or {"type": "text"}, "verbosity": text.get("verbosity") or "medium"},
        "tool_choice": _default(body.get("tool_choice"), "auto"),
        "tools": [{"parameters": None, "strict": None, **as_mapping(tool)} for tool in as_list(body.get("tools"))],
        "top_logprobs": body.get("top_logprobs") or 0,
        "top_p": _default(body.get("top_p"), 1.0),
        "truncation": "disabled",
        "usage": None,
        "user": body.get("user"),
    }


def usage(tokens: Tokens) -> dict[str, Any]:
    """Numbers of tokens."""
    return {
        "input_tokens": tokens.prompt,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": 0},
        "output_tokens": tokens.completion,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": tokens.prompt + tokens.completion,
    }


def _default(value: Any, default: Any) -> Any:
    return default if value is None else value
