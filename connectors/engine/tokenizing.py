"""`POST /tokenize`, as vLLM has it: the ids of a text, or of a conversation as it is rendered for the model."""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.connectors.engine.chat import ChatTokenizer
from headrace.connectors.engine.protocol import RequestError, chat_prompt


class TokenizeRequest(msgspec.Struct, kw_only=True):
    """Either `prompt` or `messages`."""

    model: str | None = None
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None
    continue_final_message: bool | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None


def parse_tokenize(raw: bytes) -> TokenizeRequest:
    """Raises RequestError where it is no such request."""
    try:
        request = msgspec.json.decode(raw, type=TokenizeRequest)
    except msgspec.ValidationError as error:
        raise RequestError(str(error), code="invalid_type") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"the body is no valid JSON: {error}", code="invalid_json") from error
    if (request.prompt is None) == (request.messages is None):
        raise RequestError("give either prompt or messages", param="messages", code="invalid_value")
    if request.continue_final_message:
        raise RequestError(
            "continue_final_message is not supported", param="continue_final_message", code="unsupported_parameter"
        )
    return request


def tokenized(request: TokenizeRequest, tokenizer: ChatTokenizer, max_positions: int) -> dict[str, Any]:
    """The JSON of the answer.

    Raises:
        RequestError: the chat template refuses the messages.
    """
    if request.messages is None:
        ids = tokenizer.ids(request.prompt or "", special=request.add_special_tokens is not False)
    else:
        options: dict[str, Any] = {} if request.add_generation_prompt else {"add_generation_prompt": False}
        if request.tools:
            options["tools"] = request.tools
        ids = chat_prompt(request.messages, {**options, **(request.chat_template_kwargs or {})}, tokenizer)
    strings = [tokenizer.piece(token) for token in ids] if request.return_token_strs else None
    return {"count": len(ids), "max_model_len": max_positions, "tokens": ids, "token_strs": strings}
