"""What assembly works on: the spans of one attempt as nodes, and the model calls found in them."""

from typing import Any

import msgspec

from headrace.schemas.records import Sampling, Span, VersionRange
from headrace.streams.assembly.records import LoggedSpan

Attributes = dict[str, Any]
NO_ATTRIBUTES: Attributes = {}
_decode_attributes = msgspec.json.Decoder(dict[str, Any]).decode


def span_attributes(span: Span) -> Attributes:
    """The attributes of a span; empty if they are no JSON object."""
    text = span.attributes
    if text == "{}":
        return NO_ATTRIBUTES
    try:
        return _decode_attributes(text)
    except (msgspec.DecodeError, RecursionError):
        return NO_ATTRIBUTES


class Node:
    """A span of the attempt with its place in the log and in the tree."""

    __slots__ = ("_attributes", "at", "call", "index", "name", "operation", "parent", "span")

    def __init__(self, logged: LoggedSpan, index: int) -> None:
        self.span = logged.record
        self.at = logged.at
        self.index = index  # in the log's order
        self.parent: Node | None = None
        self.call: Call | None = None
        self.name: str | None = None  # of the agent, where the span itself tells it
        self.operation = False  # it is a reward operation
        self._attributes: Attributes | None = None

    @property
    def attributes(self) -> Attributes:
        if self._attributes is None:
            self._attributes = span_attributes(self.span)
        return self._attributes

    def ancestors(self) -> "list[Node]":
        """From the parent to the root; a circle of parents is cut where it closes."""
        found: list[Node] = []
        seen: set[Node] = {self}
        node = self.parent
        while node is not None and node not in seen:
            seen.add(node)
            found.append(node)
            node = node.parent
        return found


class CallChoice(msgspec.Struct, gc=False):
    """One answer of a call. `tokens` is None where the trace holds no ids, empty where it says that there are none."""

    index: int
    tokens: bytes | None = None
    logprobs: bytes | None = None
    finish_reason: str | None = None
    logprobs_misfit: bool = False  # recorded, but not one for each token

    @property
    def usable(self) -> bool:
        return bool(self.tokens)


class Call(msgspec.Struct, kw_only=True):
    """One model call; after merging, all that the spans which trace it tell about it."""

    node: Node  # the copy that is kept
    outer: Node  # the copy whose times count: the agent's own view of the call
    copies: list[Node]
    response_id: str | None = None
    model: str = ""
    prompt: bytes | None = None  # packed ids
    choices: list[CallChoice]
    policy: str | None = None
    policy_version: VersionRange | None = None
    sampling: Sampling | None = None
    logprobs_mode: str | None = None
    http_status: int | None = None
    failed: bool = False
    incomplete: bool = False  # the stream was cut
    retry_count: int = 0
    agent_name: str | None = None
    reason: str | None = None  # why it gives no triplet
    takes_reward: bool = False
    reward: float | None = None

    @property
    def has_tokens(self) -> bool:
        if self.prompt:
            for choice in self.choices:
                if choice.tokens is not None:
                    return True
        return False
