"""The event loop's side as the reading threads see it: each call goes over to the loop."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Event

from headrace.streams.runner.decoding import Fetched
from headrace.streams.runner.replay import PartitionReplay


@dataclass(frozen=True, slots=True)
class LoopCalls:
    """Where a reader hands in what it has read.

    Attributes:
        call: calls a function with its arguments on the event loop, soon.
    """

    call: Callable[..., None]
    on_assigned: Callable[[dict[int, PartitionReplay]], None]
    on_revoking: "Callable[[list[int], Future[dict[int, int]]], None]"
    on_lost: Callable[[list[int]], None]
    on_fetched: Callable[[list[Fetched]], None]
    on_caught_up: Callable[[frozenset[int]], None]
    on_failed: Callable[[BaseException], None]

    def assigned(self, partitions: dict[int, PartitionReplay]) -> None:
        """Partitions are this runner's."""
        self.call(self.on_assigned, partitions)

    def revoking(self, partitions: list[int]) -> "Future[dict[int, int]]":
        """Partitions go; done when every start in flight is acknowledged, with the offsets to commit."""
        done: Future[dict[int, int]] = Future()
        self.call(self.on_revoking, partitions, done)
        return done

    def lost(self, partitions: list[int]) -> None:
        """Partitions are another's already."""
        self.call(self.on_lost, partitions)

    def fetched(self, batch: list[Fetched], taken: Event) -> None:
        """Tasks came; `taken` is set when the loop has them."""
        self.call(self._take, batch, taken)

    def caught_up(self, partitions: frozenset[int]) -> None:
        """What was handed in are all the tasks that partitions have now."""
        self.call(self.on_caught_up, partitions)

    def failed(self, error: BaseException) -> None:
        """The reader has died."""
        self.call(self.on_failed, error)

    def _take(self, batch: list[Fetched], taken: Event) -> None:
        self.on_fetched(batch)
        taken.set()
