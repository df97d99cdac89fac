"""Rewards that come after the close: each new one gives the next revision of the trajectory."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from headrace.schemas.records import Assembled
from headrace.streams.assembly.closed import Assembler, Closed
from headrace.streams.assembly.records import LoggedReward, RolloutRecords
from headrace.streams.assembly.sources import Found, SourceReader
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.log_reader import LogReader
from headrace.streams.kafka.transactional import LogEntry
from headrace.streams.settings import Settings

SOURCE_EXPIRED = "source_expired"
LateRewards = Mapping[int, Mapping[str, list[LoggedReward]]]
"""By partition and rollout_id."""


class Revised(msgspec.Struct):
    """What became of late rewards."""

    written: list[Closed] = []
    refused: list[tuple[LogEntry, str, str]] = []
    counters: Counter[str] = msgspec.field(default_factory=Counter[str])


class Revisions:
    """Re-reads what the former revision was made of, adds the rewards, and assembles again."""

    def __init__(self, settings: Settings, log: LogReader, sources: SourceReader, assembler: Assembler) -> None:
        self._log = log
        self._sources = sources
        self._assembler = assembler
        self._codec = Codec(settings)

    def revise(self, late: LateRewards, places: Mapping[tuple[int, str], int], now: int) -> Revised:
        """The next revisions; `places` are the offsets of each rollout's Assembled."""
        result = Revised()
        former = self.former(places)
        fresh: dict[tuple[int, str], list[LoggedReward]] = {}
        for number, rollouts in late.items():
            for rollout_id, rewards in rollouts.items():
                assembled = former.get((number, rollout_id))
                if assembled is None:
                    self._refuse(number, rewards, result)
                    continue
                seen = set(assembled.reward_ids)
                new = {r.record.reward_id: r for r in reversed(rewards) if r.record.reward_id not in seen}
                result.counters["duplicate_rewards"] += len(rewards) - len(new)
                if new:
                    fresh[number, rollout_id] = sorted(new.values(), key=lambda reward: reward.offset)
        found = self._sources.find(former[key].source for key in fresh)
        for key, rewards in fresh.items():
            self._revise(former[key], rewards, found, now, result)
        return result

    def former(self, places: Mapping[tuple[int, str], int]) -> dict[tuple[int, str], Assembled]:
        """What is remembered of closed rollouts, by partition and rollout_id; `places` are the offsets."""
        offsets: dict[int, list[int]] = {}
        for (number, _), offset in places.items():
            offsets.setdefault(number, []).append(offset)
        found = self._log.at({("assembled", number): places for number, places in offsets.items()})
        former: dict[tuple[int, str], Assembled] = {}
        for (number, rollout_id), offset in places.items():
            message = found.get(("assembled", number, offset))
            if message is not None and message.value() is not None:
                with suppress(DecodeError):  # it was read once: its schema, or its value, can no longer be had
                    former[number, rollout_id] = self._codec.decode_as(Assembled, message.value())
        return former

    def _revise(self, former: Assembled, rewards: list[LoggedReward], found: Found, now: int, result: Revised) -> None:
        number = former.source.partition
        records = RolloutRecords(former.rollout_id, number)
        missing = self._sources.add(records, former.source, found)
        if missing:
            self._refuse(number, rewards, result)
            return
        for reward in rewards:
            records.add_reward(reward.record, reward.offset, reward.at)
        trajectory = self._assembler(records, now, revision=former.revision + 1, supersedes=former.trajectory)
        reward_ids = [*former.reward_ids, *(reward.record.reward_id for reward in rewards)]
        result.written.append(Closed(trajectory, number, reward_ids, former.traces))
        result.counters["revisions"] += 1

    def _refuse(self, number: int, rewards: list[LoggedReward], result: Revised) -> None:
        for entry in self._sources.entries("rewards", number, [reward.offset for reward in rewards]):
            result.refused.append((entry, SOURCE_EXPIRED, "the records of its rollout are no longer kept"))
