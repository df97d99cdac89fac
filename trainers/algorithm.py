"""What an algorithm is to the loop that feeds it windows and publishes what it learns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from headrace.trainers.checkpoint import State
from headrace.trainers.groups import Group
from headrace.trainers.window import Windows


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a step has done.

    Attributes:
        metrics: figures by metric name.
        rewards: final rewards of the trained samples, in their order.
        staleness: number of trained samples by staleness.
    """

    metrics: dict[str, float]
    rewards: list[float]
    staleness: Mapping[int, int]


class Algorithm(Protocol):
    """Learns from windows; holds the weights. A step depends on the state, the window and its order alone."""

    name: str

    def settings(self) -> dict[str, Any]:
        """All that a step's arithmetic depends on, as JSON values."""
        ...

    def load(self, directory: Path) -> None:
        """Takes the weights of a Hugging Face directory, and a fresh optimizer."""
        ...

    def train(self, groups: Sequence[Group], windows: Windows) -> Trained | None:
        """One step. Every undecided member goes to `windows.train` or `windows.drop`; None where none is trained."""
        ...

    def weights(self) -> dict[str, Tensor]:
        """The tensors to publish, under the names of their checkpoint."""
        ...

    def adapter(self) -> dict[str, Any] | None:
        """Its configuration in peft's format, where the weights are those of an adapter to the base weights."""
        ...

    def state(self) -> State:
        """The optimizer's tensors and facts."""
        ...

    def restore(self, weights: Path, state: State) -> None:
        """Goes on where `state` was taken; `weights` is the directory published with it."""
        ...
