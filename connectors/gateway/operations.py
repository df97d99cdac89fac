"""What clients may ask of the gateway: one entry for each path that calls a model."""

from collections.abc import Iterable

import msgspec

from headrace.connectors.gateway.dialects.base import Dialect

CHAT_PATH = "/v1/chat/completions"
TEXT_PATH = "/v1/completions"


class Operation(msgspec.Struct, frozen=True):
    """A kind of model call.

    Attributes:
        path: where clients ask for it, below the base URL.
        upstream: what the engine is asked.
        name: `gen_ai.operation.name` of its spans.
        dialect: translates requests and answers; None where they are passed on as they are.
    """

    path: str
    upstream: str
    name: str
    dialect: Dialect | None = None

    @property
    def is_text(self) -> bool:
        """Whether the engine completes a text, and has no messages."""
        return self.upstream == TEXT_PATH


CHAT = Operation(CHAT_PATH, CHAT_PATH, "chat")
TEXT = Operation(TEXT_PATH, TEXT_PATH, "text_completion")


def operations(dialects: Iterable[Dialect] = ()) -> dict[str, Operation]:
    """By path all that clients may ask for."""
    translated = [Operation(dialect.path, CHAT_PATH, CHAT.name, dialect) for dialect in dialects]
    return {operation.path: operation for operation in (CHAT, TEXT, *translated)}
