"""A closed rollout on its way into the log: its trajectory, and what the assembler remembers of it."""

import logging
from collections import Counter
from collections.abc import Callable

import msgspec

from headrace.schemas.records import Assembled, Diagnostics, LogPosition, Source, Trajectory
from headrace.streams.assembly.records import Positions, RolloutRecords
from headrace.streams.assembly.segments import number_of
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble

log = logging.getLogger(__name__)

CLOSED = "closed"
ASSEMBLY_FAILED = "assembly_failed"


class Closed(msgspec.Struct):
    """A trajectory that is to be written, and the ids of the rewards in it.

    Attributes:
        traces: hashes of an external rollout's, packed.
    """

    trajectory: Trajectory
    partition: int  # of the rollout
    reward_ids: list[str]
    traces: bytes = b""

    def assembled(self, position: LogPosition, now: int) -> Assembled:
        """The assembler's memory of the rollout, once the trajectory has its place."""
        trajectory = self.trajectory
        return Assembled(
            rollout_id=trajectory.rollout_id,
            state=CLOSED,
            attempt_id=trajectory.attempt_id,
            trajectory=position,
            revision=trajectory.revision,
            reward_ids=self.reward_ids,
            source=trajectory.source or Source(partition=self.partition),
            segment=number_of(trajectory.rollout_id),
            traces=self.traces,
            at=now,
        )


class Assembler:
    """Assembles with fixed settings; a trace that the code cannot take gives a trajectory without triplets."""

    def __init__(self, settings: AssemblySettings, count: Callable[[str, int], None]) -> None:
        self._settings = settings
        self._count = count

    def __call__(
        self,
        records: RolloutRecords,
        now: int,
        *,
        limit: Positions | None = None,
        revision: int = 0,
        supersedes: LogPosition | None = None,
    ) -> Trajectory:
        counters: Counter[str] = Counter()
        try:
            trajectory = assemble(
                records,
                self._settings,
                assembled_at=now,
                limit=limit,
                revision=revision,
                supersedes=supersedes,
                counters=counters,
            )
        except Exception:  # `assembly_failed`: a trace of outside code must not stop the rollouts behind it
            log.exception("%s: its trace cannot be assembled", records.rollout_id)
            self._count(ASSEMBLY_FAILED, 1)
            bare = RolloutRecords(records.rollout_id, records.partition, judge=records.judge)
            trajectory = assemble(bare, self._settings, assembled_at=now, revision=revision, supersedes=supersedes)
            trajectory.source = records.source(limit)
            calls = len(records.spans_before(limit))
            trajectory.diagnostics = Diagnostics(calls=calls, kept=0, dropped={ASSEMBLY_FAILED: calls})
        for name, number in counters.items():
            self._count(name, number)
        return trajectory


def leave_out(trajectory: Trajectory, reason: str) -> None:
    """Takes the triplets out of a trajectory that cannot be written with them."""
    diagnostics = trajectory.diagnostics
    dropped = dict(diagnostics.dropped)
    dropped[reason] = dropped.get(reason, 0) + diagnostics.kept
    trajectory.diagnostics = Diagnostics(calls=diagnostics.calls, kept=0, dropped=dropped)
    trajectory.triplets = []
    trajectory.conversations = None


def leave_out_all(trajectory: Trajectory) -> None:
    """Takes out whatever users' code may have made large; what is left says that there was a rollout, and its end."""
    trajectory.rewards = {}
    trajectory.input = "null"
