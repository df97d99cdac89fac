"""The records of one rollout as they are read from the log, and what of them belongs together."""

import msgspec

from headrace.schemas.packing import pack_offsets
from headrace.schemas.records import AttemptEvent, Reward, Source, Span
from headrace.streams.ends import EndJudge, Verdict

MEANT = frozenset({Verdict.STARTED, Verdict.COUNTS, Verdict.CLOSES})
"""What events do that a trajectory tells of: folding these alone gives the same attempts and ends."""


class LoggedSpan(msgspec.Struct, gc=False):
    """A span and where it stands in the log."""

    record: Span
    offset: int
    at: int  # append time, milliseconds


class LoggedReward(msgspec.Struct, gc=False):
    """A reward and where it stands in the log."""

    record: Reward
    offset: int
    at: int  # append time, milliseconds


class Positions(msgspec.Struct, frozen=True, gc=False):
    """Next offsets to read in a rollout's partition of spans and of rewards."""

    spans: int
    rewards: int

    def reaches(self, other: "Positions") -> bool:
        return self.spans >= other.spans and self.rewards >= other.rewards


class RolloutRecords(msgspec.Struct, gc=False):
    """All that was read of one rollout, duplicates left out: of records with one identity the first wins.

    A span's identity is (attempt_id, trace_id, span_id) within the rollout, a reward's is its reward_id. Append times
    are milliseconds, as Kafka stamps them.
    """

    rollout_id: str
    partition: int = 0
    judge: EndJudge = msgspec.field(default_factory=EndJudge)
    spans: dict[tuple[str | None, str, str], LoggedSpan] = msgspec.field(
        default_factory=dict[tuple[str | None, str, str], LoggedSpan]
    )
    rewards: dict[str, LoggedReward] = msgspec.field(default_factory=dict[str, LoggedReward])
    attempt_offsets: list[int] = msgspec.field(default_factory=list[int])
    started_at: dict[str, int] = msgspec.field(default_factory=dict[str, int])  # append time of `started`, milliseconds
    closed_at: int | None = None  # append time of the closing end, milliseconds
    closed_offset: int | None = None  # of the closing end, in attempts

    def add_event(self, event: AttemptEvent, offset: int, at: int) -> Verdict:
        """Fold an attempt event. Returns what it does to the rollout; only events that do something are kept."""
        facts = self.judge.facts
        verdict = self.judge.read(event, offset)
        if verdict in MEANT or self.judge.facts is not facts:
            self.attempt_offsets.append(offset)
        if verdict is Verdict.STARTED and event.attempt_id is not None:
            self.started_at[event.attempt_id] = at
        elif verdict is Verdict.CLOSES:
            self.closed_at, self.closed_offset = at, offset
        return verdict

    def add_span(self, span: Span, offset: int, at: int) -> bool:
        """Returns False for a span that is known."""
        identity = (span.attempt_id, span.trace_id, span.span_id)
        if identity in self.spans:
            return False
        self.spans[identity] = LoggedSpan(span, offset, at)
        return True

    def add_reward(self, reward: Reward, offset: int, at: int) -> bool:
        """Returns False for a reward that is known."""
        if reward.reward_id in self.rewards:
            return False
        self.rewards[reward.reward_id] = LoggedReward(reward, offset, at)
        return True

    def forget_facts(self) -> None:
        """Lets go what events say beyond which attempt they are of, to be read again."""
        self.judge.facts = None
        for attempt in self.judge.attempts.values():
            attempt.started = _bare(attempt.started)
            attempt.end = _bare(attempt.end)

    @property
    def size(self) -> int:
        """How many spans and rewards are known."""
        return len(self.spans) + len(self.rewards)

    def spans_before(self, limit: Positions | None) -> list[LoggedSpan]:
        """The spans that a trajectory closed at `limit` may hold, in the log's order."""
        spans = self.spans.values()
        return list(spans) if limit is None else [span for span in spans if span.offset < limit.spans]

    def rewards_before(self, limit: Positions | None) -> list[LoggedReward]:
        """The rewards that a trajectory closed at `limit` may hold, in the log's order."""
        rewards = self.rewards.values()
        return list(rewards) if limit is None else [reward for reward in rewards if reward.offset < limit.rewards]

    def source(self, limit: Positions | None = None) -> Source:
        """The offsets of the records that a trajectory closed at `limit` is made of."""
        return Source(
            partition=self.partition,
            attempts=pack_offsets(self.attempt_offsets),
            spans=pack_offsets([span.offset for span in self.spans_before(limit)]),
            rewards=pack_offsets([reward.offset for reward in self.rewards_before(limit)]),
        )


def _bare(event: AttemptEvent | None) -> AttemptEvent | None:
    if event is None or (event.task is None and event.error is None):
        return event
    return msgspec.structs.replace(event, task=None, error=None)
