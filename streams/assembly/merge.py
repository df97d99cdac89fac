"""A call that was traced more than once counts once.

Copies share the response id, or one is the other's ancestor and one has no response id, or one without a response id
says what the other says (`twins`). Nested calls with two different response ids are two calls.
"""

from collections.abc import Sequence

from headrace.streams.assembly.recognise import is_tool
from headrace.streams.assembly.tree import nearest_agent_name
from headrace.streams.assembly.twins import find_twins
from headrace.streams.assembly.values import Call


def merge_copies(calls: Sequence[Call]) -> list[Call]:
    """One call for each group of copies, in the order of the kept copies.

    Tokens come from the copy that has them, what that copy lacks from the others. `copies` names all spans.
    """
    if len(calls) < 2:
        return list(calls)
    ids = {call.response_id for call in calls}
    if len(ids) == len(calls) and None not in ids:
        return list(calls)
    groups = _groups(calls)
    if len(groups) == len(calls):
        merged = list(calls)  # in their order
    else:
        merged = [group[0] if len(group) == 1 else _merged(group) for group in groups]
    return _with_twins(merged) if None in ids and len(merged) > 1 else merged


def _with_twins(calls: list[Call]) -> list[Call]:
    pairs = find_twins(calls)
    if not pairs:
        return calls
    groups = {id(call): [call] for call in calls}
    for orphan, other in pairs:
        groups[id(other)].append(orphan)
        del groups[id(orphan)]
    return [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


def _groups(calls: Sequence[Call]) -> list[list[Call]]:
    by_id: dict[str, list[Call]] = {}
    groups: list[list[Call]] = []
    for call in calls:
        if call.response_id is None:
            continue
        group = by_id.get(call.response_id)
        if group is None:
            group = by_id[call.response_id] = []
            groups.append(group)
        group.append(call)
    nameless = [call for call in calls if call.response_id is None]
    if nameless:
        _place_nameless(nameless, calls, groups)
    return groups


def _place_nameless(nameless: Sequence[Call], calls: Sequence[Call], groups: list[list[Call]]) -> None:
    """Put each call without a response id to the call it encloses, else to the call that encloses it, else alone.

    One that encloses several calls (a client that tried again) is a copy of the last of them.
    """
    above = {id(call): _calls_above(call) for call in calls}
    below: dict[int, list[Call]] = {}
    for call in calls:
        for ancestor in above[id(call)]:
            below.setdefault(id(ancestor), []).append(call)
    home = {id(call): group for group in groups for call in group}
    # The deepest first, so that a chain of nameless copies ends at the innermost.
    for call in sorted(nameless, key=lambda call: -len(above[id(call)])):
        inner = below.get(id(call), [])
        # In a circle of parents each lies below the other; the first of them finds no home below.
        placed = [other for other in inner if id(other) in home]
        if placed:
            group = home[id(max(placed, key=lambda c: (c.node.span.end, c.node.index)))]
        else:
            enclosing = next((c for c in above[id(call)] if c.response_id is not None), None)
            if enclosing is not None:
                group = home[id(enclosing)]
            else:
                group = list[Call]()
                groups.append(group)
        group.append(call)
        home[id(call)] = group


def _calls_above(call: Call) -> list[Call]:
    """The calls whose spans enclose this one, the nearest first.

    What a tool calls is no copy of the call that asked for the tool, though some frameworks end that call's span only
    when its tools have run (Google ADK).
    """
    found: list[Call] = []
    for node in call.node.ancestors():
        if node.call is not None:
            found.append(node.call)
        elif is_tool(node.attributes):
            break
    return found


def _merged(group: list[Call]) -> Call:
    group = sorted(group, key=lambda call: call.node.index)
    kept = max(group, key=_worth)
    outer = min(group, key=_depth).outer
    for other in group:
        if other is kept:
            continue
        kept.copies += other.copies
        kept.response_id = kept.response_id or other.response_id
        kept.model = kept.model or other.model
        kept.policy = kept.policy or other.policy
        kept.policy_version = kept.policy_version or other.policy_version
        kept.sampling = kept.sampling or other.sampling
        kept.logprobs_mode = kept.logprobs_mode or other.logprobs_mode
        kept.retry_count = max(kept.retry_count, other.retry_count)
        if kept.prompt is None:
            kept.prompt = other.prompt
        if kept.failed:
            kept.http_status = kept.http_status or other.http_status
        _merge_choices(kept, other)
    kept.incomplete = kept.incomplete and not any(
        choice.finish_reason for call in group if not call.incomplete for choice in call.choices
    )
    kept.outer = outer
    return kept


def _merge_choices(kept: Call, other: Call) -> None:
    if not kept.choices:
        kept.choices = other.choices
        return
    theirs = {choice.index: choice for choice in other.choices}
    for choice in kept.choices:
        copy = theirs.get(choice.index)
        if copy is None:
            continue
        if choice.tokens is None:
            choice.tokens = copy.tokens
        if choice.logprobs is None and copy.logprobs is not None and choice.tokens == copy.tokens:
            choice.logprobs, choice.logprobs_misfit = copy.logprobs, False
        choice.finish_reason = choice.finish_reason or copy.finish_reason


def _worth(call: Call) -> tuple[bool, bool, bool, int]:
    """Token ids first, then an answer, then what the gateway saw, then the first in the log."""
    return call.has_tokens, not call.failed, call.node.span.llm is not None, -call.node.index


def _depth(call: Call) -> tuple[bool, bool, int, int]:
    """What the agent's own process wrote first, the outermost of it: its clock is that of the rewards."""
    node = call.outer
    return node.span.source == "gateway", nearest_agent_name(node) is None, len(node.ancestors()), node.index
