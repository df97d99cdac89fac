"""What the store benchmark checks: each task stands in some span of its rollout, each final reward is that given."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from headrace.bench.scenarios import FINAL_REWARD, Scenario, work_of
from headrace.schemas.records import Span, Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

SUCCEEDED = "succeeded"


@dataclass
class Verdict:
    """What is wrong, and how much there was.

    Attributes:
        spans: that the agents wrote.
        rewards: that the agents gave.
        failed: rollouts without a success.
        untold: rollouts whose task stands in none of their spans.
        wrong_reward: rollouts whose final reward is none from 1 to 2, or not the one that the agent gave.
        missing_spans: how many spans less there are than the agents wrote.
        doubled: rollouts with two trajectories.
    """

    spans: int = 0
    rewards: int = 0
    failed: list[str] = field(default_factory=list[str])
    untold: list[str] = field(default_factory=list[str])
    wrong_reward: list[str] = field(default_factory=list[str])
    missing_spans: int = 0
    doubled: list[str] = field(default_factory=list[str])

    @property
    def clean(self) -> bool:
        """Nothing is wrong."""
        return not (self.failed or self.untold or self.wrong_reward or self.missing_spans or self.doubled)


def check(
    settings: Settings, scenario: Scenario, trajectories: Mapping[str, Trajectory], doubled: list[str]
) -> Verdict:
    """Reads the spans of a finished run and judges its trajectories."""
    verdict = Verdict(doubled=doubled)
    told, spans = _told(settings)
    for number in range(scenario.tasks):
        name = scenario.task(number)
        work = work_of(name, scenario.max_rounds, scenario.sleep)
        verdict.spans += work.spans
        verdict.rewards += 1 + sum(reward is not None for reward in work.rewards)
        trajectory = trajectories.get(name)
        if trajectory is None or trajectory.status != SUCCEEDED:
            verdict.failed.append(name)
            continue
        reward = trajectory.final_reward
        if reward is None or not FINAL_REWARD[0] <= reward <= FINAL_REWARD[1] or reward != work.final_reward:
            verdict.wrong_reward.append(name)
        if told.get(name) != name:
            verdict.untold.append(name)
        verdict.missing_spans += max(0, work.spans - spans.get(name, 0))
    return verdict


def _told(settings: Settings) -> tuple[dict[str, str], dict[str, int]]:
    """The task that the spans of each rollout name, and how many spans it has."""
    topic = settings.topic("spans")
    codec = Codec(settings)
    told: dict[str, str] = {}
    spans: dict[str, int] = {}
    for message in read_topic(settings, topic, partition_ids(settings, topic), client_id="bench-check"):
        span = codec.decode_as(Span, message.value())
        spans[span.rollout_id] = spans.get(span.rollout_id, 0) + 1
        if '"task":' in span.attributes:
            attributes = cast(dict[str, Any], json.loads(span.attributes))
            told[span.rollout_id] = str(attributes.get("task"))
    return told, spans
