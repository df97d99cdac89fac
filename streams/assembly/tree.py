"""The tree of an attempt's spans: who is below whom, by links first and by time where a link is missing."""

from collections.abc import Sequence

from headrace.streams.assembly.values import Node


def link_parents(nodes: Sequence[Node]) -> None:
    """Set the parent of every node whose parent's span is there. A parent that was never exported is no parent."""
    if not any(node.span.parent_id for node in nodes):
        return
    by_id = {(node.span.trace_id, node.span.span_id): node for node in nodes}
    for node in nodes:
        parent_id = node.span.parent_id
        if parent_id:
            parent = by_id.get((node.span.trace_id, parent_id))
            node.parent = parent if parent is not node else None


def adopt_floating(nodes: Sequence[Node]) -> None:
    """Give a call or reward operation that floats at the top the smallest span that encloses it in time.

    Agent frameworks and model libraries trace by different means, so that calls hang below the root, or nowhere,
    though they ran inside an agent or a reward operation. A link that leads to an agent is never overruled by time.
    """
    possible = [node for node in nodes if node.call is None]
    if not possible:
        return
    floating = [
        node
        for node in nodes
        if (node.call is not None or node.operation)
        and (node.parent is None or node.parent.parent is None)
        and not (node.parent is not None and (node.parent.call is not None or node.parent.operation))
        and nearest_agent_name(node) is None
    ]
    if not floating:
        return
    hosts = [node for node in possible if _tells(node)]
    for node in floating:
        # One after the other: two that enclose each other's ancestors must not close a circle.
        host = _enclosing(node, hosts)
        if host is not None:
            node.parent = host


def _tells(host: Node) -> bool:
    """Whether to lie below the span says something: it is, or is below, an agent or a reward operation."""
    return host.operation or nearest_agent_name(host) is not None or below_reward_operation(host)


def _enclosing(node: Node, hosts: Sequence[Node]) -> Node | None:
    """The shortest span that covers the node in time and is longer than it, the node's own ancestors aside."""
    start, end = node.span.start, node.span.end
    length = end - start
    above = node.ancestors()
    best: Node | None = None
    best_length = 0
    for host in hosts:
        span = host.span
        if host is node or span.start > start or span.end < end or span.end - span.start <= length:
            continue
        if (best is None or span.end - span.start < best_length) and host not in above and node not in host.ancestors():
            best, best_length = host, span.end - span.start
    return best


def nearest_agent_name(node: Node) -> str | None:
    """The agent's name on the nearest of the node and its ancestors."""
    if node.name is not None or node.parent is None:
        return node.name
    for ancestor in node.ancestors():
        if ancestor.name is not None:
            return ancestor.name
    return None


def below_reward_operation(node: Node) -> bool:
    """Whether an ancestor is a reward operation: the call judges, it does not act."""
    return node.parent is not None and any(ancestor.operation for ancestor in node.ancestors())


def family(node: Node) -> tuple[str, str]:
    """What siblings share: the ids of their parent, exported or not. Roots are siblings of each other."""
    if node.parent is not None:
        return node.parent.span.trace_id, node.parent.span.span_id
    parent_id = node.span.parent_id
    return (node.span.trace_id, parent_id) if parent_id else ("", "")
