"""The search's bookkeeping: batches, parents, scores, and who stays in the beam. Pure."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Score:
    """How a prompt did on a batch of tasks.

    Attributes:
        mean: of the rewards; -inf where there is none.
        tasks: asked for.
        rewarded: of them, those that gave a reward.
        unfinished: of them, those that had not ended in time.
    """

    mean: float
    tasks: int
    rewarded: int
    unfinished: int


def score_of(rewards: Sequence[float | None], tasks: int, missing: str) -> Score:
    """The score of a batch.

    Args:
        rewards: of the rollouts that have ended.
        tasks: rollouts that were asked for.
        missing: `zero` counts a rollout without a reward as 0; `leave_out` does not count it.
    """
    values = [reward for reward in rewards if reward is not None]
    count = tasks if missing == "zero" else len(values)
    mean = sum(values) / count if count else float("-inf")
    return Score(mean, tasks, len(values), tasks - len(rewards))


@dataclass(slots=True)
class Candidate:
    """A prompt of the search.

    Attributes:
        version: v0 is the prompt that the search began with.
        parent: the version that it was made from.
        resources_id: under which it is published.
        scores: means by what they were measured on: `round-N`, or `val` for all validation tasks.
    """

    version: str
    template: str
    parent: str | None
    resources_id: str = ""
    scores: dict[str, Score] = field(default_factory=dict[str, Score])

    def facts(self) -> dict[str, Any]:
        """For the report."""
        return {
            "version": self.version,
            "parent": self.parent,
            "template": self.template,
            "resources_id": self.resources_id,
            "scores": {name: asdict(score) for name, score in self.scores.items()},
        }


class Batches:
    """An endless row of batches: every item once before any comes again, shuffled anew each time."""

    def __init__(self, items: Sequence[Any], size: int, rng: random.Random) -> None:
        self._items = items
        self._size = size
        self._rng = rng
        self._left: list[int] = []

    def next(self) -> list[Any]:
        """A batch without repeats; all items where they are no more than a batch."""
        if self._size >= len(self._items):
            return list(self._items)
        batch, self._left = self._left[: self._size], self._left[self._size :]
        if len(batch) < self._size:
            order = list(range(len(self._items)))
            self._rng.shuffle(order)
            # Nothing that is in this batch already; it comes again later.
            taken = [index for index in order if index not in batch][: self._size - len(batch)]
            self._left = [index for index in order if index not in taken]
            batch += taken
        return [self._items[index] for index in batch]


def parents_of(beam: Sequence[Candidate], width: int, rng: random.Random) -> list[Candidate]:
    """`width` parents: a sample of the beam, or its members in turn where they are fewer."""
    if len(beam) > width:
        return rng.sample(list(beam), width)
    return [beam[index % len(beam)] for index in range(width)]


def best_of(candidates: Iterable[Candidate], measure: str, width: int) -> list[Candidate]:
    """The `width` best by a measure, best first; of equals those that came first."""
    ranked = sorted(candidates, key=lambda c: -c.scores[measure].mean)
    return ranked[:width]
