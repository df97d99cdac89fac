"""Trajectories made again from the records that their `source` names, by the assembler's own functions."""

from collections.abc import Iterable, Sequence

import msgspec

from headrace.schemas.packing import unpack_offsets
from headrace.schemas.records import Reward, Source, Trajectory
from headrace.streams.assembly.closed import Assembler
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.sources import TOPICS, Found, SourceReader
from headrace.streams.graders.trajectory import GradedTrajectory
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import start_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.settings import Settings
from headrace.trainers.replay.changes import Changes
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.reader import CLIENT, Recorded

NOT_COMPARED = ("assembled_at", "supersedes", "source", "conversations", "diagnostics")
"""Fields of a trajectory that say when and how it was made; nothing is trained on them."""


class ReplayedTrajectory(GradedTrajectory):
    """What a reward function judges: what a grader gets, and the spans.

    Attributes:
        spans: all spans of the rollout, in the log's order; each names its attempt.
    """

    def __init__(self, record: Trajectory, records: RolloutRecords) -> None:
        super().__init__(record)
        self.spans = [logged.record for logged in records.spans.values()]


class Kept:
    """From which offset on the sources' topics are still there."""

    def __init__(self, settings: Settings) -> None:
        admin = make_admin(settings, CLIENT)
        names = {settings.topic(name): name for name in TOPICS}
        partitions = [(topic, p) for topic in names for p in partition_ids(settings, topic, admin)]
        starts = start_offsets(admin, partitions)
        self._starts = {(names[topic], p): start for (topic, p), start in starts.items()}

    def gone(self, source: Source | None) -> list[str]:
        """The topics of which records of a source are gone; all of them where there is none."""
        if source is None or not source.attempts:
            return list(TOPICS)
        gone: list[str] = []
        for topic in TOPICS:
            offsets = unpack_offsets(getattr(source, topic))
            if offsets and offsets[0] < self._starts.get((topic, source.partition), 0):
                gone.append(topic)
        return gone


class Reassembler:
    """Makes trajectories again."""

    def __init__(self, settings: Settings, changes: Changes) -> None:
        self._log = LogReader(settings, CLIENT)
        self._sources = SourceReader(settings, self._log)
        self._changes = changes
        self._assemblers: dict[AssemblySettings, Assembler] = {}

    def find(self, recorded: Iterable[Recorded]) -> Found:
        """The messages that all of them were made of, in one pass over the log."""
        return self._sources.find(r.trajectory.source for r in recorded if r.trajectory.source is not None)

    def make(self, recorded: Recorded, found: Found, rewards: Sequence[Reward] | None = None) -> Trajectory:
        """One trajectory.

        Args:
            rewards: stand in place of its primary rewards, after all of its calls.

        Raises:
            ReplayError: records that it was made of are gone.
        """
        records = self._records(recorded, found)
        if rewards is not None:
            _replace_rewards(records, rewards)
        return self._assemble(recorded, records, self._changes.of(recorded.assembly))

    def subject(self, recorded: Recorded, found: Found) -> ReplayedTrajectory:
        """What a reward function is asked about: as `make`, with the conversations.

        Raises:
            ReplayError: records that it was made of are gone.
        """
        records = self._records(recorded, found)
        told = msgspec.structs.replace(self._changes.of(recorded.assembly), conversations=True)
        return ReplayedTrajectory(self._assemble(recorded, records, told), records)

    def close(self) -> None:
        """Lets the clients go."""
        self._log.close()

    def _records(self, recorded: Recorded, found: Found) -> RolloutRecords:
        trajectory = recorded.trajectory
        source = trajectory.source
        assert source is not None, "its rollout was surveyed"
        records = RolloutRecords(trajectory.rollout_id, source.partition)
        missing = self._sources.add(records, source, found)
        if missing or not records.judge.closed:
            raise ReplayError(
                f"{missing or 'some'} records of rollout {trajectory.rollout_id} went meanwhile, or cannot be "
                "decoded; begin again"
            )
        return records

    def _assemble(self, recorded: Recorded, records: RolloutRecords, settings: AssemblySettings) -> Trajectory:
        assembler = self._assemblers.get(settings)
        if assembler is None:
            assembler = self._assemblers[settings] = Assembler(settings, lambda name, number: None)
        return assembler(records, wall_us(), revision=recorded.trajectory.revision)


def differing(recorded: Trajectory, made: Trajectory) -> list[str]:
    """The fields in which a trajectory has come out otherwise."""
    names = [name for name in recorded.__struct_fields__ if name not in NOT_COMPARED]
    return [name for name in names if getattr(recorded, name) != getattr(made, name)]


def _replace_rewards(records: RolloutRecords, rewards: Sequence[Reward]) -> None:
    kept = {key: logged for key, logged in records.rewards.items() if not logged.record.primary}
    offset = 1 + max((logged.offset for logged in records.rewards.values()), default=-1)
    records.rewards = kept
    for number, reward in enumerate(rewards):
        records.rewards.pop(reward.reward_id, None)  # of a grader of the same name
        records.add_reward(reward, offset + number, records.closed_at or 0)
