"""What a library's attributes say about a model call, by whichever convention says it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from headrace.schemas.records import Span, Usage
from headrace.streams.assembly.lazy import lazy
from headrace.streams.assembly.loose import as_list, as_mapping, as_number, indexed, read_text
from headrace.streams.assembly.values import Attributes

PROVIDER_KEY = re.compile(r"llm\.[\w-]+\.(id|model|choices|usage|messages|tools|prompt_token_ids|response_token_ids)")
LONGEST_STATUS = 10  # characters
STATUS_KEYS = ("http.response.status_code", "http.status_code", "error.code", "error.type")
STREAM_KEYS = ("gen_ai.request.stream", "gen_ai.request.streaming", "gen_ai.is_streaming", "llm.is_streaming")
PARAMETERS_KEY = "llm.invocation_parameters"  # OpenInference: the request without its messages, as JSON
RETRY_KEYS = ("http.request.resend_count", "gen_ai.request.retry_count")
FINISH_KEYS = (
    "llm.finish_reason",
    "ai.response.finishReason",
    "anthropic.message.stop_reason",
    "llm.response.finish_reason",
    "llm.response.stop_reason",
)
MODEL_KEYS = (
    "gen_ai.response.model",
    "ai.response.model",
    "llm.response.model_name",
    "llm.model_name",
    "gen_ai.request.model",
    "ai.model.id",
    "llm.request.model_name",
)
INPUT_TOKEN_KEYS = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.inputTokens",
    "ai.usage.promptTokens",
    "llm.usage.prompt_tokens",
)
OUTPUT_TOKEN_KEYS = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.token_count.completion",
    "ai.usage.outputTokens",
    "ai.usage.completionTokens",
    "llm.usage.completion_tokens",
)


class Evidence:
    """The attributes of one model call's span, with the parts that are text decoded once."""

    def __init__(self, span: Span, attributes: Attributes) -> None:
        self.span = span
        self.attributes = attributes

    @lazy
    def provider(self) -> dict[str, Any]:
        """LiteLLM's raw request and response: `llm.<provider>.<field>` by field."""
        found: dict[str, Any] = {}
        for key in [key for key in self.attributes if key.startswith("llm.")]:
            if match := PROVIDER_KEY.fullmatch(key):
                found.setdefault(match[1], self.attributes[key])
        return found

    @lazy
    def response(self) -> Mapping[str, Any]:
        """The response as OpenInference's `output.value` (or Logfire's `response_data`) has it, if an object."""
        value = self.attributes.get("output.value", self.attributes.get("response_data"))
        if isinstance(value, str) and value.lstrip()[:1] == "{":
            value = read_text(value)
        return as_mapping(value)

    @lazy
    def request(self) -> Any:
        """The request as OpenInference's `input.value` (or Logfire's `request_data`) has it, if that is JSON."""
        value = self.attributes.get("input.value", self.attributes.get("request_data"))
        return read_text(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value

    @lazy
    def has_answer(self) -> bool:
        """Whether the answer stands in the trace as the provider or the client wrote it."""
        return bool(self.provider or self.response)

    @lazy
    def choices(self) -> list[Mapping[str, Any]]:
        """The choices of an OpenAI response, from the provider's raw response or from `output.value`."""
        if not self.has_answer:
            return []
        value = self.provider.get("choices")
        if isinstance(value, str):
            value = read_text(value)
        choices = as_list(value) or as_list(self.response.get("choices"))
        return [as_mapping(choice) for choice in choices]

    @lazy
    def generations(self) -> list[Mapping[str, Any]]:
        """LangChain's generations of the first prompt."""
        outer = as_list(self.response.get("generations"))
        return [as_mapping(generation) for generation in as_list(outer[0])] if outer else []

    @lazy
    def output_messages(self) -> list[Mapping[str, Any]]:
        """`gen_ai.output.messages`, decoded."""
        value = self.attributes.get("gen_ai.output.messages")
        return [as_mapping(message) for message in as_list(read_text(value) if isinstance(value, str) else value)]

    @property
    def response_id(self) -> str | None:
        value = self.attributes.get("gen_ai.response.id")
        if isinstance(value, str) and value:
            return value
        for value in (
            self.provider.get("id"),
            self.attributes.get("ai.response.id"),
            self.response.get("id"),
            as_mapping(self.response.get("llm_output")).get("id"),
        ):
            if isinstance(value, str) and value:
                return value
        return None

    @property
    def model(self) -> str:
        for key in MODEL_KEYS:
            value = self.attributes.get(key)
            if isinstance(value, str) and value:
                return value
        values = (self.provider.get("model"), self.response.get("model"))
        return next((value for value in values if isinstance(value, str) and value), "")

    @lazy
    def finish_reasons(self) -> list[str | None]:
        """One a choice, as the library writes them; empty if it writes none."""
        for reasons in self._finish_reasons():
            if any(reasons):
                return reasons
        return []

    def _finish_reasons(self) -> Iterator[list[str | None]]:
        get = self.attributes.get
        value = get("gen_ai.response.finish_reasons")
        if isinstance(value, str):
            value = read_text(value) if value.lstrip()[:1] in ("[", "(") else [value]
        yield [_word(reason) for reason in as_list(value)]
        yield [
            _word(as_mapping(choice).get("finish_reason")) for choice in indexed(self.attributes, "gen_ai.completion")
        ]
        yield [_word(message.get("finish_reason")) for message in self.output_messages]
        for key in FINISH_KEYS:
            yield [_word(get(key))]
        yield [_word(choice.get("finish_reason")) for choice in self.choices]
        yield [_word(as_mapping(g.get("generation_info")).get("finish_reason")) for g in self.generations]
        yield [_word(self.response.get("stop_reason"))]
        yield [_word(self.response.get("finish_reason"))]

    @property
    def http_status(self) -> int | None:
        """An HTTP status that is recorded as such; one that stands only in a message's text is none."""
        for key in STATUS_KEYS:
            value = self.attributes.get(key)
            if isinstance(value, str) and len(value) <= LONGEST_STATUS and value.strip().isdecimal():
                value = int(value)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
                return value
        return None

    @property
    def failed(self) -> bool:
        error = self.attributes.get("error.type")
        return self.span.status.code == "ERROR" or (isinstance(error, str) and bool(error))

    @property
    def streaming(self) -> bool:
        """Whether the answer was asked for as a stream."""
        get = self.attributes.get
        if any(get(key) is not None and str(get(key)).lower() == "true" for key in STREAM_KEYS):
            return True
        if str(get("ai.operationId")).endswith(".doStream"):
            return True
        asked = get(PARAMETERS_KEY)
        return isinstance(asked, str) and as_mapping(read_text(asked)).get("stream") is True

    @property
    def retry_count(self) -> int:
        """How often the client had sent the same request before."""
        for key in RETRY_KEYS:
            value = self.attributes.get(key)
            if value is not None and (number := as_number(value)) is not None:
                return int(number)
        return 0

    @property
    def usage(self) -> Usage | None:
        """Token counts; None if the trace has none."""
        sent, generated = self._count(INPUT_TOKEN_KEYS), self._count(OUTPUT_TOKEN_KEYS)
        if sent is None and generated is None:
            raw = self.provider.get("usage")
            usage = as_mapping(read_text(raw) if isinstance(raw, str) else raw) or as_mapping(
                self.response.get("usage")
            )
            sent = as_number(usage.get("prompt_tokens", usage.get("input_tokens")))
            generated = as_number(usage.get("completion_tokens", usage.get("output_tokens")))
        if sent is None and generated is None:
            return None
        return Usage(input_tokens=int(sent or 0), output_tokens=int(generated or 0))

    def _count(self, keys: tuple[str, ...]) -> float | None:
        return next((n for key in keys if (n := as_number(self.attributes.get(key))) is not None), None)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
