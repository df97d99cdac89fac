"""Chat completions by LiteLLM.

LiteLLM takes seconds to import and much memory: it is imported by the first call, in a thread.
"""

import asyncio
import importlib.util
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from headrace.connectors.gateway.errors import BAD_GATEWAY, GATEWAY_TIMEOUT, CallError
from headrace.connectors.gateway.providers.settings import Provider, Target
from headrace.streams.errors import SettingsError

# Only these of a request: LiteLLM takes URLs, keys and callbacks by the same way, and an agent may not choose those.
FIELDS = (
    "messages",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "n",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "user",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "reasoning_effort",
    "verbosity",
    "thinking",
    "modalities",
    "audio",
    "prediction",
)
CLIENT_ERROR, LAST_ERROR, REQUEST_TIMEOUT = 400, 599, 408
LOGGERS = ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router")


def check_provider(name: str, provider: Provider) -> None:
    """Raises SettingsError where calls of a provider could not succeed."""
    if importlib.util.find_spec("litellm") is None:
        raise SettingsError(f"gateway_providers.{name} needs LiteLLM: pip install 'headrace[litellm]'")
    if provider.api_key_env is not None and not os.environ.get(provider.api_key_env):
        raise SettingsError(f"gateway_providers.{name}: the environment has no {provider.api_key_env}")


def arguments(target: Target, fields: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """What `acompletion` is called with.

    Args:
        fields: the agent's request.
        timeout: seconds, where the provider has none of its own.
    """
    provider = target.provider
    found = {name: fields[name] for name in FIELDS if fields.get(name) is not None}
    found |= {"model": target.model, "timeout": provider.timeout_seconds or timeout, "num_retries": provider.retries}
    if provider.api_base is not None:
        found["api_base"] = provider.api_base
    if provider.api_key_env is not None:
        found["api_key"] = os.environ.get(provider.api_key_env)
    return found | provider.parameters


class LiteLlm:
    """Calls providers.

    Args:
        timeout: seconds for an answer, where a provider has none of its own.
    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._loading: asyncio.Task[Any] | None = None

    async def complete(self, target: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A chat completion.

        Raises:
            CallError: the provider's error, with its status.
        """
        asked = arguments(target, {**fields, "stream": None, "stream_options": None}, self._timeout)
        answer = await self._ask(asked)
        return answer.model_dump(mode="json")

    async def stream(self, target: Target, fields: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        """The chunks of a streamed chat completion, the last one with `usage`.

        Raises:
            CallError: the provider's error, with its status; also in the middle.
        """
        more = {"stream": True, "stream_options": {"include_usage": True}}
        asked = arguments(target, {**fields, **more}, self._timeout)
        chunks = await self._ask(asked)
        try:
            async for chunk in chunks:
                yield chunk.model_dump(mode="json", exclude_none=True)
        except Exception as error:  # LiteLLM raises a class of its own for each provider's failures, and others
            raise call_error(error, asked.get("api_key")) from None
        finally:  # also where the reader has left: the provider may stop
            await chunks.aclose()

    async def _ask(self, asked: dict[str, Any]) -> Any:
        litellm = await self._load()
        try:
            return await litellm.acompletion(**asked)
        except Exception as error:  # LiteLLM raises a class of its own for each provider's failures, and others
            raise call_error(error, asked.get("api_key")) from None

    async def _load(self) -> Any:
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_import))
        return await asyncio.shield(self._loading)


def call_error(error: Exception, key: str | None) -> CallError:
    """What a provider's failure is for the agent; without the key, should the message have it."""
    status = getattr(error, "status_code", None)
    message = str(error) or type(error).__name__
    if key:
        message = message.replace(key, "***")
    if status == REQUEST_TIMEOUT or isinstance(error, TimeoutError):
        return CallError(GATEWAY_TIMEOUT, "engine_timeout", message)
    if not isinstance(status, int) or not CLIENT_ERROR <= status <= LAST_ERROR:
        status = BAD_GATEWAY
    return CallError(status, "provider_error", message)


def _import() -> Any:
    # It would fetch a table of prices from the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "true")
    import litellm

    litellm.suppress_debug_info = True
    for name in LOGGERS:  # their warnings have prompts in them
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return litellm
