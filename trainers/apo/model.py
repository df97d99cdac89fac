"""The model that criticises and rewrites prompts."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Messages = list[dict[str, str]]
TIMEOUT_SECONDS = 300.0
RETRIES = 4


class Model(Protocol):
    """Answers messages. A scripted one makes a search deterministic."""

    def __call__(self, messages: Messages, *, model: str, temperature: float) -> Awaitable[str]:
        """The text of the answer; empty where there is none."""
        ...


class OpenAIModel:
    """Any server that speaks OpenAI's chat completions.

    Args:
        base_url: None is OpenAI's own; then the key stands in OPENAI_API_KEY.
    """

    def __init__(self, base_url: str | None = None, api_key: str | None = None) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._made: AsyncOpenAI | None = None

    async def __call__(self, messages: Messages, *, model: str, temperature: float) -> str:
        """One completion; asked for again where the server is busy or away for a moment."""
        answer: Any = await self._client().chat.completions.create(
            model=model, messages=cast(Any, messages), temperature=temperature
        )
        return answer.choices[0].message.content or ""

    def _client(self) -> "AsyncOpenAI":
        if self._made is None:
            from openai import AsyncOpenAI

            key = self._api_key or ("unused" if self._base_url else None)  # many local servers want none
            self._made = AsyncOpenAI(base_url=self._base_url, api_key=key, timeout=TIMEOUT_SECONDS, max_retries=RETRIES)
        return self._made
