"""Calls of the gateway that go to a provider instead of an engine."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import orjson

from headrace.connectors.gateway.answer import read_answer
from headrace.connectors.gateway.errors import NOT_FOUND, CallError
from headrace.connectors.gateway.providers.calls import LiteLlm
from headrace.connectors.gateway.providers.settings import WILDCARD, Provider, Target, find_provider
from headrace.connectors.gateway.request import ModelRequest
from headrace.connectors.gateway.spans import Observed

# What `read_request` adds, for the sake of the tokens of an engine.
ADDED = ("logprobs", "return_token_ids")


class ProviderCalls:
    """Answers the calls of the models of `gateway_providers`."""

    def __init__(self, providers: Mapping[str, Provider], calls: LiteLlm) -> None:
        self._providers, self._calls = providers, calls

    @property
    def names(self) -> list[str]:
        """Models that can be named, those with a prefix aside."""
        return [name for name in self._providers if not name.endswith(WILDCARD)]

    def find(self, model: str | None) -> Target | None:
        """Where a model's calls go; None for an engine's."""
        return find_provider(self._providers, model)

    async def complete(self, call: Observed) -> None:
        """Answers a call.

        Raises:
            CallError: the provider's error.
        """
        request, target = _noted(call)
        answer = await self._calls.complete(target, _asked(request))
        call.answer = read_answer(orjson.dumps(answer), request)

    async def chunks(self, call: Observed) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of a streamed answer. The one with `usage` comes also where the client did not ask for it.

        Raises:
            CallError: the provider's error.
        """
        request, target = _noted(call)
        async for chunk in self._calls.stream(target, _asked(request)):
            yield {"choices": [], **chunk}


def _noted(call: Observed) -> tuple[ModelRequest, Target]:
    assert call.request is not None
    assert call.target is not None
    if call.operation.is_text:
        message = f"{call.request.model} is a provider's model, which takes chat completions only"
        raise CallError(NOT_FOUND, "not_supported", message, param="model")
    call.endpoint, call.model = call.target.provider.api_base, call.target.model
    return call.request, call.target


def _asked(request: ModelRequest) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(request.encoded)
    for name in ADDED:
        fields.pop(name, None)
    if request.wants_logprobs:
        fields["logprobs"] = True
    return fields
