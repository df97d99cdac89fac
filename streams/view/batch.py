"""What one SQL transaction is to write: rows by table, collected from records."""

from collections.abc import Callable
from typing import Any, NamedTuple

from headrace.schemas.records import Record, RolloutState
from headrace.streams.view import tables
from headrace.streams.view.rows import Place, Row, attempt_rows, resources_row, reward_row, rollout_row, worker_row
from headrace.streams.view.span_rows import span_row
from headrace.streams.view.training_rows import run_row, step_row, trajectory_row

TOPICS = ("rollouts", "spans", "rewards", "triplets", "resources", "training", "workers")
"""What the view reads."""

RowOf = Callable[[Any, Place], Row]
APPENDED: dict[str, tuple[str, RowOf]] = {
    "Span": (tables.spans.name, span_row),
    "Reward": (tables.rewards.name, reward_row),
    "Trajectory": (tables.trajectories.name, trajectory_row),
    "TrainingStep": (tables.training_steps.name, step_row),
    "RunManifest": (tables.runs.name, run_row),
}
"""Table and row of the records that stay as they were written; of two with one identity the first counts."""

KEPT: dict[str, tuple[str, RowOf]] = {
    "RolloutState": (tables.rollouts.name, rollout_row),
    "ResourcesUpdate": (tables.resources.name, resources_row),
    "WorkerState": (tables.workers.name, worker_row),
}
"""Those of compacted topics: the last of a key counts."""

UNKEPT = frozenset({"JournalEntry"})
"""Records without a table."""

TABLE_OF_TOPIC = {"resources": tables.resources.name, "workers": tables.workers.name}
"""Tables from which a tombstone removes a row."""


class Written(NamedTuple):
    """A row that is to be in its table, and the record that it comes from."""

    topic: str
    place: Place
    row: Row


class Batch:
    """Rows in the order of the log. Keys of different partitions differ, so partitions need no order among them.

    Attributes:
        appended: by table.
        kept: by table and key; None where the key is removed.
        attempts: by rollout, all of its rows.
    """

    def __init__(self) -> None:
        self.appended: dict[str, list[Written]] = {}
        self.kept: dict[str, dict[str, Written | None]] = {}
        self.attempts: dict[str, list[Row]] = {}

    def __bool__(self) -> bool:
        return bool(self.appended or self.kept)

    def add(self, topic: str, record: Record, place: Place) -> None:
        """Takes a record of a topic (short name); those without a table are passed over."""
        found = APPENDED.get(record.SCHEMA)
        if found is not None:
            table, row_of = found
            self.appended.setdefault(table, []).append(Written(topic, place, row_of(record, place)))
            return
        if record.SCHEMA in UNKEPT:
            return
        table, row_of = KEPT[record.SCHEMA]
        row = row_of(record, place)
        self.kept.setdefault(table, {})[row[0]] = Written(topic, place, row)
        if isinstance(record, RolloutState):
            self.attempts[record.rollout_id] = attempt_rows(record)

    def remove(self, topic: str, key: str) -> None:
        """Takes a tombstone of a compacted topic; rollouts that the topic forgets stay, until they are pruned."""
        table = TABLE_OF_TOPIC.get(topic)
        if table is not None:
            self.kept.setdefault(table, {})[key] = None

    def without(self, refused: set[tuple[str, Place]]) -> "Batch":
        """The rows that come from other records than these."""
        left = Batch()
        for table, rows in self.appended.items():
            left.appended[table] = [w for w in rows if (w.topic, w.place) not in refused]
        for table, by_key in self.kept.items():
            left.kept[table] = {k: w for k, w in by_key.items() if w is None or (w.topic, w.place) not in refused}
        states = left.kept.get(tables.rollouts.name, {})
        left.attempts = {key: rows for key, rows in self.attempts.items() if key in states}
        return left
