"""Several processes that take one step together: each computes some of its micro-batches, all have the same weights."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

import torch
from torch import Tensor

from headrace.streams.errors import HeadraceError

# Ranks wait for a window as long as there is none; one that has died is noticed by its closed connections.
PATIENCE = timedelta(days=365)


class RankLostError(HeadraceError):
    """A process of the same trainer has gone; start the trainer again, and it goes on after its last step."""


@contextmanager
def _together() -> Generator[None]:
    try:
        yield
    except RuntimeError as error:  # all that torch.distributed says of a closed connection
        raise RankLostError(f"another rank of this trainer has gone ({error}); start the trainer again") from error


class Ranks:
    """One process alone; what several do, see `GlooRanks`."""

    rank = 0
    size = 1

    def share(self, value: Any) -> Any:
        """What rank 0 has given, on every rank."""
        return value

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Every rank's gradients become their sum."""

    def add(self, figures: Sequence[float]) -> list[float]:
        """The sum over ranks of each figure."""
        return list(figures)

    def gather(self, value: Any) -> list[Any]:
        """What each rank has given, by rank."""
        return [value]

    def close(self) -> None:
        """Leaves."""


class GlooRanks(Ranks):
    """Processes joined by torch's gloo backend, on the CPU.

    The result is the sum over micro-batches, as in one process; the order of the sum is another, so that it may differ
    in the last bits, and is the same bits again for the same number of ranks.

    Args:
        store: path of a file that does not exist yet, or is that of the same group.
    """

    def __init__(self, rank: int, size: int, store: str) -> None:
        from torch import distributed

        self._distributed: Any = cast(Any, distributed)
        self.rank, self.size = rank, size
        with _together():
            self._distributed.init_process_group(
                "gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=PATIENCE
            )

    def share(self, value: Any) -> Any:
        """What rank 0 has given, on every rank."""
        box = [value]
        with _together():
            self._distributed.broadcast_object_list(box, src=0)
        return box[0]

    def add_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Every rank's gradients become their sum, in one message."""
        every = list(parameters)
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in every])
        with _together():
            self._distributed.all_reduce(flat)
        parts = cast("tuple[Tensor, ...]", flat.split([p.numel() for p in every]))
        for parameter, part in zip(every, parts, strict=True):
            parameter.grad = part.view_as(parameter)

    def add(self, figures: Sequence[float]) -> list[float]:
        """The sum over ranks of each figure."""
        sums = torch.tensor(figures, dtype=torch.float64)
        with _together():
            self._distributed.all_reduce(sums)
        return cast("list[float]", sums.tolist())

    def gather(self, value: Any) -> list[Any]:
        """What each rank has given, by rank."""
        found: list[Any] = [None] * self.size
        with _together():
            self._distributed.all_gather_object(found, value)
        return found

    def close(self) -> None:
        """Leaves."""
        self._distributed.destroy_process_group()
