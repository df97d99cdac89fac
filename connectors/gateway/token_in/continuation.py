"""Whether a call goes on from a turn that is remembered, and if not, why."""

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.connectors.gateway.token_in.fingerprints import ASSISTANT, beginnings, extended, fingerprint, has_media
from headrace.connectors.gateway.token_in.memory import Key, Memory, Turn
from headrace.streams.assembly.loose import as_list, as_mapping

CONTINUED = "continued"
FIRST, UNKNOWN, CONTEXT = "first", "unknown_history", "other_context"
MODEL, MEDIA, OPTIONS, ENGINE, REFUSED = "other_model", "media", "options", "engine", "refused"

# What templates render beside the messages.
CONTEXT_FIELDS = ("tools", "chat_template", "chat_template_kwargs", "documents", "reasoning_effort")
# What a prompt given as ids has no place for.
PLAIN_FIELDS = ("continue_final_message", "echo", "truncate_prompt_tokens", "use_beam_search")
STOP = "stop"
CLOSED = (STOP, "tool_calls", "function_call")
STOPS = ("stop", "stop_token_ids")
LIMITS = ("max_completion_tokens", "max_tokens")
IDS = "kv_transfer_params"  # where the ids go


class Continuation(msgspec.Struct):
    """How a call stands to its conversation.

    Attributes:
        key: the rollout and attempt, or the session.
        fingerprint: of all messages of the request.
        context: of what else is rendered.
        result: `continued`, or why the prompt is rendered anew.
        turn: the one it goes on from.
        new: the messages after that turn.
        options: for rendering them, as `/tokenize` takes them.
        limit: of tokens of a response, if the client named one.
        stops: the client named stops of its own, so that a response may end without the template's stop token.
        sent: packed ids that the engine was given as the prompt.
    """

    key: Key
    fingerprint: bytes
    context: bytes
    result: str
    turn: Turn | None = None
    new: list[Any] = []
    options: dict[str, Any] = {}
    limit: int | None = None
    stops: bool = False
    sent: bytes = b""

    def plain(self, reason: str) -> None:
        """The prompt is rendered anew after all."""
        self.result, self.sent = reason, b""

    def refused(self) -> bool:
        """An engine answered with an error: whether the ids may be why, so that it is asked again without them."""
        if not self.sent:
            return False
        self.plain(REFUSED)
        self.turn = None
        return True


def find_turn(asked: Mapping[str, Any], key: Key, memory: Memory) -> Continuation:
    """The turn that a chat completion goes on from: the longest conversation that its messages begin with.

    Args:
        asked: the whole request.
    """
    messages = as_list(asked.get("messages"))
    known = beginnings(messages)
    bare = asked.get("tool_choice") == "none"
    found = Continuation(
        key,
        known[-1],
        fingerprint([bare, *(asked.get(name) or None for name in CONTEXT_FIELDS)]),
        UNKNOWN if any(map(_is_answer, messages)) else FIRST,
        limit=next((limit for name in LIMITS if isinstance(limit := asked.get(name), int)), None),
        stops=any(asked.get(name) for name in STOPS),
    )
    if any(asked.get(name) for name in PLAIN_FIELDS) or asked.get("add_generation_prompt") is False or IDS in asked:
        found.result = OPTIONS
        return found
    if has_media(messages):
        found.result = MEDIA
        return found
    for count in range(len(messages) - 1, 0, -1):
        if not _is_answer(messages[count - 1]):
            continue
        turn = memory.find(key, known[count])
        if turn is None:
            break  # an answer that was not given here: what came before it does not help
        if turn.context != found.context:
            found.result = CONTEXT
            break
        found.result, found.turn, found.new = CONTINUED, turn, messages[count:]
        found.options = _rendering(asked, bare)
        break
    return found


def answered(before: bytes, text: str | None, tool_calls: Any) -> bytes:
    """The fingerprint of a conversation with the answer to it.

    Args:
        before: that of the request's messages.
        tool_calls: as OpenAI has them.
    """
    return extended(before, {"role": ASSISTANT, "content": text, "tool_calls": tool_calls})


def closed(going: Continuation, finish_reason: str, size: int) -> bool:
    """Whether the model ended a response itself, with a stop token.

    Args:
        size: of the response, in tokens. A response that calls tools says so where its limit has cut it, too.
    """
    if going.stops or finish_reason not in CLOSED:
        return False
    return finish_reason == STOP or going.limit is None or size < going.limit


def _is_answer(message: Any) -> bool:
    return as_mapping(message).get("role") == ASSISTANT


def _rendering(asked: Mapping[str, Any], bare: bool) -> dict[str, Any]:
    options: dict[str, Any] = dict(as_mapping(asked.get("chat_template_kwargs")))
    if (effort := asked.get("reasoning_effort")) is not None:
        options.setdefault("reasoning_effort", effort)
    given: dict[str, Any] = {"chat_template_kwargs": options} if options else {}
    if asked.get("chat_template"):
        given["chat_template"] = asked["chat_template"]
    if asked.get("tools") and not bare:
        given["tools"] = asked["tools"]
    return given
