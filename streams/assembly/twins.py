"""Copies of one call that neither a response id nor the tree of spans joins.

Frameworks' spans of streamed calls often have no response id (LangChain, LiteLLM, OpenAI Agents), and where the client
below them sends no `traceparent`, the gateway's span stands elsewhere in the trace. Such a copy is known by what was
said in it, while it ran. One that has token ids is a call of its own all the same: what can be trained is never merged
by its content.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from headrace.streams.assembly.loose import as_mapping, read_text
from headrace.streams.assembly.messages.message import Message
from headrace.streams.assembly.messages.read import Conversation, read_conversation
from headrace.streams.assembly.values import Call

GATEWAY = "gateway"
CLOCKS_NS = 2_000_000_000  # by which the clocks of two machines may differ, and a span of a stream may end early


def find_twins(calls: Sequence[Call]) -> list[tuple[Call, Call]]:
    """Pairs of a call that a library has told without response id, and the call that it is a copy of.

    The other has a response id or is the gateway's, is told by another library, began while the first one ran, and says
    the same: the same last message sent, the same answer, failed or not. Of several the last that began within it, as
    where a client has tried again; else the nearest. A call has one copy of each library at most.

    Args:
        calls: of one attempt, copies merged as far as ids and the tree of spans tell.
    """
    orphans = [call for call in calls if _is_orphan(call)]
    if not orphans:
        return []
    others = sorted((call for call in calls if call.response_id is not None or _of_gateway(call)), key=_start)
    starts = [_start(other) for other in others]
    said: dict[int, Conversation] = {}
    libraries = {id(call): {copy.span.scope for copy in call.copies if copy.span.source != GATEWAY} for call in others}
    pairs: list[tuple[Call, Call]] = []
    near = sorted(
        (
            (*_nearness(orphan, other), position, orphan, other)
            for position, orphan in enumerate(orphans)
            for other in others[_first(starts, orphan) : _last(starts, orphan)]
            if _began_within(orphan, other)
        ),
        key=lambda pair: pair[:3],
    )
    placed: set[int] = set()
    for *_, orphan, other in near:
        scopes = {copy.span.scope for copy in orphan.copies}
        if id(orphan) in placed or not scopes.isdisjoint(libraries[id(other)]) or orphan.failed != other.failed:
            continue
        if _says_the_same(_said(orphan, said), _said(other, said)):
            placed.add(id(orphan))
            libraries[id(other)] |= scopes
            pairs.append((orphan, other))
    return pairs


def _start(call: Call) -> int:
    return call.node.span.start


def _first(starts: list[int], orphan: Call) -> int:
    return bisect_left(starts, orphan.outer.span.start - CLOCKS_NS)


def _last(starts: list[int], orphan: Call) -> int:
    return bisect_right(starts, orphan.outer.span.end + CLOCKS_NS)


def _is_orphan(call: Call) -> bool:
    return call.response_id is None and not call.has_tokens and not _of_gateway(call)


def _of_gateway(call: Call) -> bool:
    return any(copy.span.source == GATEWAY for copy in call.copies)


def _began_within(orphan: Call, other: Call) -> bool:
    ours, start = orphan.outer.span, other.node.span.start
    leeway = CLOCKS_NS if other.node.span.source != ours.source else 0
    return ours.start - leeway <= start <= ours.end + leeway


def _nearness(orphan: Call, other: Call) -> tuple[int, int]:
    ours, start = orphan.outer.span, _start(other)
    return (0, -start) if ours.start <= start <= ours.end else (1, abs(start - ours.start))


def _said(call: Call, known: dict[int, Conversation]) -> Conversation:
    found = known.get(id(call))
    if found is None:
        found = known[id(call)] = read_conversation(call, ())
    return found


def _says_the_same(ours: Conversation, theirs: Conversation) -> bool:
    if not ours.sent or not theirs.sent:
        return False
    asked = _content(ours.sent[-1])
    if not any(asked) or asked != _content(theirs.sent[-1]):
        return False
    pairs = list(zip(ours.answered, theirs.answered, strict=False))
    return bool(pairs) and all(_content(one) == _content(other) for one, other in pairs)


def _content(message: Message) -> tuple[str, list[tuple[str, object]]]:
    """The text and the tools called, as any library may write them."""
    content = message.content
    if isinstance(content, list):
        content = "".join(str(as_mapping(part).get("text", "")) for part in content)
    calls = [(call.name, _decoded(call.arguments)) for call in message.tool_calls]
    return (content or "").strip(), calls


def _decoded(arguments: str) -> object:
    value: object = read_text(arguments)
    return arguments if value is None else value
