"""A client's request, and what of it goes to the engine: token ids and log-probabilities are always asked for, and
training traffic is sampled from the whole distribution, so that its log-probabilities are the behaviour policy's."""

from typing import Any, cast

import msgspec
import orjson

from headrace.connectors.gateway.errors import BAD_REQUEST, CallError
from headrace.connectors.gateway.operations import CHAT, Operation
from headrace.schemas.packing import int32_array
from headrace.schemas.records import Sampling

# Set rather than removed: an engine's own defaults may come from the model's generation_config.json.
TRAIN_SAMPLING: dict[str, float | int] = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
}
DEFAULT_TEMPERATURE = 1.0
LARGEST_TOP_K = 1 << 63  # of a record
# What changes which tokens can come, beyond the numbers of Sampling.
CONSTRAINTS = (
    "logit_bias",
    "response_format",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "allowed_token_ids",
    "bad_words",
    "min_tokens",
    "use_beam_search",
    "best_of",
    "length_penalty",
    "logits_processors",
)
PROMPT_FIELDS = ("messages", "prompt", "tools")
FREE_TOOL_CHOICES = (None, "auto", "none")
FREE_FORMATS: tuple[Any, ...] = (None, {"type": "text"})


class ModelRequest(msgspec.Struct):
    """One request as it will be sent.

    Attributes:
        operation: what is asked for.
        asked: the client's JSON where it is in a dialect, else empty.
        fields: parameters for the engine, without the prompt: a thousand open streams would keep it parsed.
        prompt: messages or prompt, and tools, for who takes them before the call goes out.
        encoded: all that the engine is asked, as text, without the model.
        sampling: in effect.
        wants_logprobs, wants_token_ids: asked for by the client itself.
        stream: the answer goes out while it is generated.
    """

    operation: Operation
    asked: dict[str, Any]
    fields: dict[str, Any]
    encoded: bytes
    model: str | None
    sampling: Sampling
    wants_logprobs: bool
    wants_token_ids: bool
    stream: bool
    prompt: dict[str, Any] = {}

    @property
    def count(self) -> int:
        """How many choices are to come."""
        n = self.fields.get("n")
        return n if isinstance(n, int) and n > 1 else 1

    def upstream(self, model: str, prompt_ids: bytes = b"") -> bytes:
        """The body for an engine that serves `model`.

        Args:
            prompt_ids: packed; the engine takes them for the prompt, instead of rendering the messages.
        """
        named = b'{"model":%b,' % orjson.dumps(model)
        if prompt_ids:
            ids = orjson.dumps(int32_array(prompt_ids), option=orjson.OPT_SERIALIZE_NUMPY)
            named += b'"kv_transfer_params":{"prompt_token_ids":%b},' % ids
        return named + self.encoded[1:]


def read_request(body: bytes, mode: str | None, operation: Operation = CHAT) -> ModelRequest:
    """Reads a request and settles its sampling.

    Raises:
        CallError: 400 where it is no JSON object, or has no messages or prompt.
    """
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise CallError(BAD_REQUEST, "invalid_json", f"the body is no valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise CallError(BAD_REQUEST, "invalid_type", "the body must be a JSON object")
    asked = fields = cast(dict[str, Any], value)
    if operation.dialect is not None:
        fields = operation.dialect.read(asked)
    if operation.is_text:
        _check_prompt(fields)
    elif not isinstance(fields.get("messages"), list):
        raise CallError(BAD_REQUEST, "invalid_type", "messages must be a list", param="messages")
    model, stream = fields.get("model"), fields.get("stream")
    if model is not None and not isinstance(model, str):
        raise CallError(BAD_REQUEST, "invalid_type", "model must be a string", param="model")
    if stream is not None and not isinstance(stream, bool):
        raise CallError(BAD_REQUEST, "invalid_type", "stream must be true or false", param="stream")
    if mode == "train":
        fields = {**fields, **TRAIN_SAMPLING}
        if fields.get("temperature") is None:
            fields["temperature"] = DEFAULT_TEMPERATURE
    else:
        fields = dict(fields)
    sampling = _sampling(fields)
    logprobs, wants_ids = fields.get("logprobs"), bool(fields.get("return_token_ids"))
    if operation.is_text:
        wants_logprobs = logprobs is not None
        if not wants_logprobs:
            fields["logprobs"] = 1  # how many alternatives beside the sampled token: some engines give none for 0
    else:
        wants_logprobs = bool(logprobs)
        fields["logprobs"] = True
    fields["return_token_ids"] = True
    fields.pop("model", None)
    encoded = _encoded(fields)
    prompt = {name: fields.pop(name) for name in PROMPT_FIELDS if name in fields}
    return ModelRequest(
        operation=operation,
        asked=asked if operation.dialect is not None else {},
        fields=fields,
        encoded=encoded,
        model=model,
        sampling=sampling,
        wants_logprobs=wants_logprobs,
        wants_token_ids=wants_ids,
        stream=bool(stream),
        prompt=prompt,
    )


def _check_prompt(fields: dict[str, Any]) -> None:
    """A span has one prompt."""
    prompt: Any = fields.get("prompt")
    listed = cast(list[Any], prompt) if isinstance(prompt, list) else []
    if listed:
        if len(listed) == 1 and isinstance(listed[0], str | list):
            fields["prompt"] = listed[0]
        elif isinstance(listed[0], str | list):
            message = "one prompt a request: send a request for each, they are batched by the engine"
            raise CallError(BAD_REQUEST, "unsupported_parameter", message, param="prompt")
    if not isinstance(fields.get("prompt"), str | list):
        raise CallError(BAD_REQUEST, "invalid_type", "prompt must be a string or a list of token ids", param="prompt")
    if fields.get("echo"):
        message = "echo is not supported: the prompt's tokens would be taken for sampled ones"
        raise CallError(BAD_REQUEST, "unsupported_parameter", message, param="echo")


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:  # it reads 1,024 levels and writes 254
        raise CallError(BAD_REQUEST, "invalid_json", f"the body cannot be passed on: {error}") from error


def _sampling(fields: dict[str, Any]) -> Sampling:
    get = fields.get
    constraints = {name: get(name) for name in CONSTRAINTS if get(name)}
    if get("tool_choice") not in FREE_TOOL_CHOICES:
        constraints["tool_choice"] = get("tool_choice")
    if constraints.get("response_format") in FREE_FORMATS:
        constraints.pop("response_format", None)
    top_k = int(_number(get("top_k"), -1, "top_k"))
    if top_k >= LARGEST_TOP_K:
        raise CallError(BAD_REQUEST, "invalid_value", f"top_k must be below {LARGEST_TOP_K}", param="top_k")
    return Sampling(
        temperature=_number(get("temperature"), DEFAULT_TEMPERATURE, "temperature"),
        top_p=_number(get("top_p"), 1.0, "top_p"),
        top_k=top_k if top_k > 0 else -1,
        min_p=_number(get("min_p"), 0.0, "min_p"),
        presence_penalty=_number(get("presence_penalty"), 0.0, "presence_penalty"),
        frequency_penalty=_number(get("frequency_penalty"), 0.0, "frequency_penalty"),
        repetition_penalty=_number(get("repetition_penalty"), 1.0, "repetition_penalty"),
        constraints=_encoded(constraints).decode() if constraints else None,
    )


def _number(value: Any, default: float, name: str) -> float:
    if value is None:
        return default
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise CallError(BAD_REQUEST, "invalid_type", f"{name} must be a number", param=name)
