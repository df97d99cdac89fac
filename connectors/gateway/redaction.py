"""What of a call is kept from its record. The agent gets its answer as it is."""

import importlib
import logging
from collections.abc import Callable
from typing import Any, cast

import msgspec
import orjson

from headrace.schemas.records import Choice, ErrorInfo, Span, SpanStatus
from headrace.streams.assembly.withheld import OPTED_OUT, REDACTED, REDACTION_FAILED, WITHHELD
from headrace.streams.errors import SettingsError

log = logging.getLogger(__name__)

Hook = Callable[[Span], Span | None]
"""Takes a copy of the span that will be written; returns it, changed or not, or None for nothing of its content."""
# What says nothing of prompts and answers.
BARE_ATTRIBUTES = frozenset(
    {
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.id",
        "gen_ai.response.model",
        "gen_ai.response.finish_reasons",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.conversation.id",
        "server.address",
        "server.port",
        "http.response.status_code",
        "error.type",
        "headrace.dialect",
        "headrace.key",
        "headrace.mode",
    }
)
# What the gateway itself writes of them: the messages of a request that names an earlier response.
BODY_ATTRIBUTES = ("gen_ai.input.messages",)


def load_hook(name: str | None) -> Hook | None:
    """The hook that `gateway_redact` names.

    Raises:
        SettingsError: it is no MODULE:FUNCTION that can be imported.
    """
    if name is None:
        return None
    module, _, function = name.partition(":")
    try:
        hook: Any = getattr(importlib.import_module(module), function) if module and function else None
    except Exception as error:  # whatever the module's own code raises
        raise SettingsError(f"gateway_redact: {name} cannot be imported: {error}") from error
    if not callable(hook):
        raise SettingsError(f"gateway_redact is {name!r}; write MODULE:FUNCTION of a function that takes a span")
    return cast(Hook, hook)


class Redactor:
    """Applies a hook to spans."""

    def __init__(self, hook: Hook | None) -> None:
        self._hook = hook

    def __call__(self, span: Span, *, opted_out: bool = False) -> tuple[Span, str | None]:
        """The span to be written, and why its content is not in it as it was."""
        if opted_out:
            return withhold(span, OPTED_OUT), OPTED_OUT
        if self._hook is None:
            return span, None
        try:
            redacted = self._hook(_copy(span))
            if redacted is None:
                return withhold(span, REDACTED), REDACTED
            if not isinstance(redacted, Span):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError("no span")
            kept = _with_identity(redacted, span)
            if _content(kept) == _content(span):
                return kept, None
            return _without_tokens(kept), REDACTED
        except Exception as error:  # users' code; what it says may quote the prompt
            log.error("the redaction hook failed with %s; nothing of the call's content is kept", type(error).__name__)
            return withhold(span, REDACTION_FAILED), REDACTION_FAILED


def withhold(span: Span, reason: str) -> Span:
    """A span that says that there was a call, how long it took and what it cost, and nothing of what was said."""
    attributes = {name: value for name, value in _attributes(span).items() if name in BARE_ATTRIBUTES}
    llm = span.llm
    if llm is not None:
        llm = msgspec.structs.replace(
            llm,
            prompt_token_ids=b"",
            choices=[Choice(index=choice.index, finish_reason=choice.finish_reason) for choice in llm.choices],
            sampling=msgspec.structs.replace(llm.sampling, constraints=None) if llm.sampling is not None else None,
            request=None,
            response=None,
            error=ErrorInfo(type=llm.error.type, message="") if llm.error is not None else None,
        )
    return msgspec.structs.replace(
        span,
        status=SpanStatus(code=span.status.code),
        attributes=_json({**attributes, WITHHELD: reason}),
        events="[]",
        links="[]",
        llm=llm,
    )


def _without_tokens(span: Span) -> Span:
    """Token ids decode to what was changed, and request and response hold it: they go with it."""
    attributes = _attributes(span)
    for name in BODY_ATTRIBUTES:
        attributes.pop(name, None)
    llm = span.llm
    if llm is not None:
        choices = [msgspec.structs.replace(c, response_token_ids=b"", logprobs=None) for c in llm.choices]
        llm = msgspec.structs.replace(llm, prompt_token_ids=b"", choices=choices, request=None, response=None)
    return msgspec.structs.replace(span, attributes=_json({**attributes, WITHHELD: REDACTED}), llm=llm)


def _copy(span: Span) -> Span:
    """A copy that a hook may change in place."""
    return msgspec.convert(msgspec.to_builtins(span, builtin_types=(bytes,)), Span)


def _with_identity(redacted: Span, span: Span) -> Span:
    return msgspec.structs.replace(
        redacted,
        rollout_id=span.rollout_id,
        attempt_id=span.attempt_id,
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_id=span.parent_id,
        sequence=span.sequence,
        source=span.source,
        start=span.start,
        end=span.end,
    )


def _content(span: Span) -> tuple[Any, ...]:
    return span.name, span.status, span.attributes, span.events, span.links, span.llm


def _attributes(span: Span) -> dict[str, Any]:
    found: Any = orjson.loads(span.attributes)
    if not isinstance(found, dict):
        raise TypeError("attributes are a JSON object")
    return cast("dict[str, Any]", found)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
