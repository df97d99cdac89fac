"""Which records of the tasks topic nobody needs any more, and their deletion: time alone deletes none of them."""

import logging
from collections.abc import Iterable, Mapping
from datetime import timedelta

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.reading import BEGINNING
from headrace.streams.lifecycle.store import PartitionStore

log = logging.getLogger(__name__)

TASKS = "tasks"
RUNNER = "runner"
READERS = frozenset({RUNNER, "lifecycle"})
"""Groups that must have read a task: where one has committed nothing, nothing is deleted."""
LOOK_SECONDS = 600.0


def first_kept(committed: Mapping[str, int], first_open_task: int | None, first_young: int) -> int:
    """The offset below which a partition of tasks may be deleted.

    Args:
        committed: by group, what it has committed of the partition.
        first_open_task: the lowest offset of the Task of an open rollout.
        first_young: the first offset that is not older than the retention.
    """
    if not committed.keys() >= READERS:
        return 0
    open_task = first_young if first_open_task is None else first_open_task
    return min(first_young, open_task, *committed.values())


def first_open_task(store: PartitionStore) -> int | None:
    """The lowest offset of the Task of an open rollout."""
    offsets = (rollout.state.task_offset for rollout in store.open.values())
    return min((offset for offset in offsets if offset is not None), default=None)


def unfinished_since(log_reader: LogReader, partitions: Iterable[int], now: int) -> int:
    """When the oldest task that the runners have not finished was appended, `now` if there is none (microseconds).

    Only a task that comes later than this can still repeat a rollout.

    Raises:
        BrokerUnavailableError: no answer.
    """
    numbers = list(partitions)
    finished = log_reader.committed(TASKS, numbers).get(RUNNER, {})
    since = now
    for (_, number), end in log_reader.ends([(TASKS, number) for number in numbers]).items():
        start = finished.get(number, 0)
        if start < end:
            first = next(iter(log_reader.stretch(TASKS, number, start or BEGINNING, end)), None)
            if first is not None:  # else there are marks of transactions alone
                since = min(since, first.timestamp()[1] * 1000)
    return since


class TaskCleaner:
    """Deletes old tasks of the partitions at hand every ten minutes. Times are log time in microseconds."""

    def __init__(self, log_reader: LogReader, retention: timedelta) -> None:
        self._log = log_reader
        self._retention = int(retention.total_seconds() * 1e6)
        self._deleted: dict[int, int] = {}
        self._next_look = 0

    def due(self, now: int) -> bool:
        """Whether it is time to look."""
        return now >= self._next_look

    def clean(self, stores: Iterable[PartitionStore], now: int) -> int:
        """Deletes what may be deleted; of how many partitions something was."""
        self._next_look = now + int(LOOK_SECONDS * 1e6)
        of_partition = {store.number: store for store in stores}
        limit_ms = (now - self._retention) // 1000
        try:
            young = self._log.first_since({(TASKS, number): limit_ms for number in of_partition})
            if all(offset <= self._deleted.get(number, 0) for (_, number), offset in young.items()):
                return 0
            committed = self._log.committed(TASKS, of_partition)
            wanted: dict[int, int] = {}
            for number, store in of_partition.items():
                groups = {group: offsets[number] for group, offsets in committed.items() if number in offsets}
                offset = first_kept(groups, first_open_task(store), young[TASKS, number])
                if offset > self._deleted.get(number, 0):
                    wanted[number] = offset
            if wanted:
                self._log.delete_before(TASKS, wanted)
                self._deleted |= wanted
        except BrokerUnavailableError as error:
            log.warning("old tasks stay for now: %s", error)
            return 0
        return len(wanted)
