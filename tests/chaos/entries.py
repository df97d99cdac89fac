"""What the checker looks at: decoded records with their places. Nothing of the pipeline is imported."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True)
class Entry:
    """A committed record of a topic.

    Attributes:
        at: append time, milliseconds since the epoch.
        value: field values by name; None for a tombstone.
    """

    partition: int
    offset: int
    at: int
    key: str
    value: dict[str, Any] | None

    @property
    def place(self) -> Place:
        """Where it stands."""
        return self.partition, self.offset

    def __getitem__(self, name: str) -> Any:
        return (self.value or {}).get(name)


@dataclass(frozen=True)
class Disturbance:
    """Something that was done to a process.

    Attributes:
        what: kill, stop or leave.
        name: the member; its worker id.
        since, until: milliseconds since the epoch, from the blow until it was started or woken again.
    """

    what: str
    name: str
    since: int
    until: int

    @property
    def part(self) -> str:
        """The part of the member."""
        return self.name.split("-")[0]


@dataclass(frozen=True)
class Violation:
    """A promise that was not kept.

    Attributes:
        kind: see `checker.KINDS`.
        id: the rollout, or whatever else it is about.
    """

    kind: str
    id: str
    detail: str = ""


@dataclass
class Log:
    """The topics of a drained pipeline, in the order of their offsets."""

    tasks: list[Entry] = field(default_factory=list[Entry])
    attempts: list[Entry] = field(default_factory=list[Entry])
    spans: list[Entry] = field(default_factory=list[Entry])
    rewards: list[Entry] = field(default_factory=list[Entry])
    rollouts: list[Entry] = field(default_factory=list[Entry])
    assembled: list[Entry] = field(default_factory=list[Entry])
    triplets: list[Entry] = field(default_factory=list[Entry])
    training: list[Entry] = field(default_factory=list[Entry])
    resources: list[Entry] = field(default_factory=list[Entry])
    workers: list[Entry] = field(default_factory=list[Entry])

    def add(self, topic: str, entries: Iterable[Entry]) -> None:
        """Appends what was read of a topic."""
        of_topic: list[Entry] = getattr(self, topic)
        of_topic.extend(entries)


def by_key(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    """The entries of each key, in their order."""
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.key, []).append(entry)
    return found
