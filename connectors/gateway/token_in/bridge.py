"""The ids that come between a turn and the response to what is said next, by the difference of two renderings.

A chat template is not asked to render the turn again, which it may do otherwise than the model wrote it. It renders a
stand-in for it, alone and with the new messages after it; what the second rendering has more is what is new. Of the
stand-in itself only its end counts, which closes a turn that the model did not close.

The method is that of verifiers' token client; NeMo RL, verl and SkyRL have others of the kind.
"""

from collections.abc import Sequence
from typing import Any

from headrace.streams.assembly.loose import as_mapping

TEMPLATE, UNFINISHED = "template", "unfinished"
# Two stand-ins, that end in different letters: what their renderings end in alike is how a template ends a turn.
WORDS = ("x", "yes")
# Some templates refuse a conversation that begins with the assistant's turn; others render a turn after a question
# otherwise while it is the last. The first that can be rendered and continued counts.
BEFORE: tuple[list[dict[str, Any]], ...] = ([], [{"role": "user", "content": "x"}])
TOOL = "tool"


def stand_in(new: Sequence[Any], word: str) -> dict[str, Any]:
    """An assistant's turn that the new messages may follow: one that calls tools if their results come first."""
    calls: list[dict[str, Any]] = []
    for message in map(as_mapping, new):
        if message.get("role") != TOOL:
            break
        function = {"name": word, "arguments": "{}"}
        calls.append({"id": message.get("tool_call_id") or "x", "type": "function", "function": function})
    turn: dict[str, Any] = {"role": "assistant", "content": "" if calls else word, "reasoning_content": ""}
    return turn | {"tool_calls": calls} if calls else turn


def calls_tools(new: Sequence[Any]) -> bool:
    """Whether the turn before the new messages called tools."""
    return bool(new) and as_mapping(new[0]).get("role") == TOOL


def new_ids(
    last: int, closed: bool, alone: Sequence[int], other: Sequence[int], followed: Sequence[int], *, tools: bool
) -> list[int] | str:
    """The ids after a turn, or the reason why they cannot be told.

    Args:
        last: id of the turn.
        closed: the model ended the turn itself.
        alone, other: renderings of the two stand-ins.
        followed: rendering of the first with the new messages, and the next turn opened.
        tools: the turn called tools.
    """
    size = len(alone)
    if size >= len(followed) or list(followed[:size]) != list(alone) or list(alone) == list(other):
        return TEMPLATE  # it renders otherwise what was said before
    closing, new = _common_end(alone, other), list(followed[size:])
    if closing and closing[0] == last and not tools:
        return closing[1:] + new
    if closed and last in closing:
        end = len(closing) - closing[::-1].index(last)
        return closing[end:] + new
    if closed and new[0] == last:  # one token ends a turn and opens the next
        return new[1:]
    return UNFINISHED if tools else closing + new


def _common_end(a: Sequence[int], b: Sequence[int]) -> list[int]:
    size = 0
    while size < min(len(a), len(b)) and a[-1 - size] == b[-1 - size]:
        size += 1
    return list(a[len(a) - size :])
