"""The turns that a gateway remembers: the ids of each, by the conversation that it ended."""

from collections import OrderedDict

import msgspec

TURN_BYTES = 400  # of a turn without its ids, about
ID_BYTES = 4
Key = tuple[str, str | None]


class Turn(msgspec.Struct):
    """A prompt and the response to it. Turns that go on from one another hold what they share once.

    Attributes:
        suffix: packed ids that come after those of the parent: what was new in the prompt, and the response.
        context: fingerprint of tools and whatever else a template renders beside the messages.
        model: the policy that answered, or the engine's model.
        closed: the model ended it itself, with a stop token.
    """

    suffix: bytes
    context: bytes
    model: str
    closed: bool
    parent: "Turn | None" = None

    @property
    def ids(self) -> bytes:
        """Packed: prompt and response."""
        parts: list[bytes] = []
        turn: Turn | None = self
        while turn is not None:
            parts.append(turn.suffix)
            turn = turn.parent
        return b"".join(reversed(parts))

    @property
    def last(self) -> int:
        """The last id."""
        return int.from_bytes(self.suffix[-ID_BYTES:], "little", signed=True)


class _Conversations(msgspec.Struct):
    """Those of one rollout: its agent may lead several."""

    turns: dict[bytes, Turn] = msgspec.field(default_factory=dict[bytes, Turn])
    size: int = 0


class Memory:
    """The turns of the rollouts that were heard of last, up to so many bytes; of each all or none.

    Args:
        max_bytes: of ids, and of what is kept beside them.

    Attributes:
        size: bytes that it takes, about.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._rollouts: OrderedDict[Key, _Conversations] = OrderedDict()
        self.size = 0

    def find(self, key: Key, fingerprint: bytes) -> Turn | None:
        """The turn that ended a conversation, by the fingerprint of all its messages; None if it is not known."""
        known = self._rollouts.get(key)
        return known.turns.get(fingerprint) if known is not None else None

    def keep(self, key: Key, fingerprint: bytes, turn: Turn) -> None:
        """Remembers a turn; of two that said the same the later one, whose answer the client has seen."""
        known = self._rollouts.setdefault(key, _Conversations())
        self._rollouts.move_to_end(key)
        known.turns[fingerprint] = turn
        size = TURN_BYTES + len(turn.suffix)
        known.size += size
        self.size += size
        while self.size > self._max_bytes:
            self.size -= self._rollouts.popitem(last=False)[1].size
