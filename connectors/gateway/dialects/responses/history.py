"""What was said in earlier responses, so that `previous_response_id` may stand for it."""

from collections import OrderedDict
from typing import Any

import orjson

from headrace.connectors.gateway.dialects.fields import invalid
from headrace.connectors.gateway.errors import BAD_REQUEST, CallError


class History:
    """Conversations by the id of their last response, in the memory of one gateway; the least used go first.

    Messages are shared among the responses of a conversation, and each counts once, where it was new.

    Args:
        max_bytes: of all messages as JSON; 0 keeps none.
    """

    def __init__(self, max_bytes: int) -> None:
        self._limit = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[list[dict[str, Any]], int]] = OrderedDict()

    @property
    def enabled(self) -> bool:
        """Whether anything is kept."""
        return self._limit > 0

    def messages(self, response_id: str | None) -> list[dict[str, Any]]:
        """The messages up to a response, its own among them; none where no response is named.

        Raises:
            CallError: 400 where it is not known here, by OpenAI's code.
        """
        if not response_id:
            return []
        if not self.enabled:
            raise invalid("previous_response_id", "this gateway keeps no responses; send the conversation as input")
        kept = self._kept.get(response_id)
        if kept is None:
            message = (
                f"Previous response with id {response_id[:80]!r} not found: a gateway keeps the latest responses that "
                "it gave, in memory, unless store is false; send the whole conversation as input"
            )
            raise CallError(BAD_REQUEST, "previous_response_not_found", message, param="previous_response_id")
        self._kept.move_to_end(response_id)
        return kept[0]

    def keep(self, response_id: str, earlier: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
        """Remembers a response: the messages before its request, and those of its request and answer."""
        if not self.enabled or response_id in self._kept:
            return
        size = len(orjson.dumps(new)) + len(response_id)
        self._kept[response_id] = ([*earlier, *new], size)
        self._bytes += size
        while self._bytes > self._limit:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed
