"""The rollouts of one partition: open ones whole, ended ones as hashes. A cache of the rollouts topic."""

from collections.abc import Iterable, Iterator

import msgspec

from headrace.schemas.records import AttemptEvent, RolloutState, Task
from headrace.streams.hashed_ids import HashedIds
from headrace.streams.kafka.transactional import LogEntry
from headrace.streams.lifecycle.machine import Rollout, restored

SIGNS_SECONDS = 30.0  # a heartbeat alone is published that late; a successor reads as far back


class Held(msgspec.Struct):
    """Events of a rollout whose Task has not been read yet."""

    events: list[tuple[AttemptEvent, LogEntry]]
    until: int | None = None  # end of the tasks partition, noted after the first of them was read


class PartitionStore(msgspec.Struct):
    """What lifecycle knows of a partition."""

    number: int
    open: dict[str, Rollout] = msgspec.field(default_factory=dict[str, Rollout])  # in the order they came
    running: dict[str, Rollout] = msgspec.field(default_factory=dict[str, Rollout])  # with an attempt under way
    ended: HashedIds = msgspec.field(default_factory=HashedIds)  # with the end's append time, milliseconds
    changed: dict[str, Rollout] = msgspec.field(default_factory=dict[str, Rollout])  # to be published
    removed: list[str] = msgspec.field(default_factory=list[str])  # to be forgotten in the log too
    signs: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict[str, tuple[int, int]])
    held: dict[str, Held] = msgspec.field(default_factory=dict[str, Held])
    # By rollout, kind of timer and attempt_id.
    fired: dict[str, set[tuple[str, str | None]]] = msgspec.field(
        default_factory=dict[str, set[tuple[str, str | None]]]
    )

    def restore(self, state: RolloutState) -> None:
        """Takes an open state of the rollouts topic; a later record of the same rollout replaces it."""
        self.put(restored(state))

    def restore_ended(self, rollout_id: str, at: int) -> None:
        """Takes a terminal state, published at an append time in milliseconds."""
        self.open.pop(rollout_id, None)
        self.running.pop(rollout_id, None)
        self.ended.add(rollout_id, at)

    def restore_removed(self, rollout_id: str) -> None:
        """Takes a tombstone."""
        self.open.pop(rollout_id, None)
        self.running.pop(rollout_id, None)
        self.ended.discard(rollout_id)

    def restored(self) -> None:
        """All records are taken: the open rollouts come into the order they came in."""
        self.open = dict(sorted(self.open.items(), key=lambda item: item[1].state.enqueued_at))

    def put(self, rollout: Rollout) -> None:
        """Keeps a rollout that is open."""
        rollout_id = rollout.state.rollout_id
        self.open[rollout_id] = rollout
        self._sort_in(rollout)

    def state_changed(self, rollout: Rollout) -> None:
        """Notes that a rollout is to be published, and how it stands now."""
        rollout_id = rollout.state.rollout_id
        self.changed[rollout_id] = rollout
        self.signs.pop(rollout_id, None)
        if rollout.terminal:
            self.open.pop(rollout_id, None)
            self.running.pop(rollout_id, None)
            self.fired.pop(rollout_id, None)
            self.ended.add(rollout_id, (rollout.state.ended_at or 0) // 1000)
        else:
            self._sort_in(rollout)

    def _sort_in(self, rollout: Rollout) -> None:
        if rollout.live is not None:
            self.running[rollout.state.rollout_id] = rollout
        else:
            self.running.pop(rollout.state.rollout_id, None)

    def sign_changed(self, rollout: Rollout, entry: LogEntry) -> None:
        """Notes a sign of life, which waits for the next change or for a while to be published."""
        rollout_id = rollout.state.rollout_id
        if rollout_id not in self.changed:
            self.signs.setdefault(rollout_id, (entry.offset, entry.at))

    def publish_old_signs(self, now: int) -> None:
        """Makes the signs that have waited long enough due."""
        limit = now - int(SIGNS_SECONDS * 1_000_000)
        for rollout_id, (_, at) in list(self.signs.items()):
            if at > limit:
                return  # the others are younger
            del self.signs[rollout_id]
            self.changed[rollout_id] = self.open[rollout_id]

    def first_unpublished(self) -> int | None:
        """The first offset of attempts that is in no published state yet."""
        signs = next(iter(self.signs.values()))[0] if self.signs else None
        held = min((h.events[0][1].offset for h in self.held.values()), default=None)
        return min((o for o in (signs, held) if o is not None), default=None)

    def oldest_open(self) -> Iterator[Rollout]:
        """The open rollouts, those that came first first."""
        return iter(self.open.values())

    def expire(self, rollout_ids: Iterable[str], limit_ms: int) -> None:
        """Of these rollouts those that ended before a time (milliseconds) are to be removed."""
        for rollout_id in rollout_ids:
            ended_at = self.ended.get(rollout_id)
            if ended_at is not None and ended_at < limit_ms and rollout_id not in self.changed:
                self.ended.discard(rollout_id)
                self.removed.append(rollout_id)


class Reread(msgspec.Struct):
    """An output that needs the Task of a rollout, by its offset.

    `event` is the event that is to carry the facts of the task; without one, the Task is enqueued again.
    """

    rollout: Rollout
    task_offset: int | None
    event: AttemptEvent | None = None


def retry_of(task: Task, attempt: int, now: int) -> Task:
    """The Task of the next attempt."""
    return msgspec.structs.replace(task, attempt=attempt, enqueued_at=now)
