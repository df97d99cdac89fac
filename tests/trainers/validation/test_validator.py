"""Validation on a real broker: tasks that pin a version, its score, and the end when it gets no better."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from headrace.schemas.records import Record, ResourcesUpdate, Task, Trajectory, VersionRange
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.producing import TaskSpec
from headrace.streams.settings import Settings
from headrace.trainers.metrics.follower import MetricsFollower
from headrace.trainers.metrics.names import is_fixed
from headrace.trainers.validation.scores import EarlyStop, Score
from headrace.trainers.validation.validator import Validator
from tests.trainers.pipeline import produce

pytestmark = pytest.mark.kafka
NAMES = {"val/reward", "val/pass@1", "val/pass@2", "val/rollouts", "val/unrewarded", "val/exact"}
SPECS = [TaskSpec(input='"easy"'), TaskSpec(input='"hard"')]


class Shown:
    """What a curve is drawn of, by step."""

    def __init__(self) -> None:
        self.found: dict[int, dict[str, float]] = {}

    def write(self, values: Mapping[str, float], step: int, seconds: float) -> None:
        assert step not in self.found
        self.found[step] = dict(values)

    def close(self) -> None:
        """Nothing is open."""


def publish(settings: Settings, version: int, run_id: str = "run") -> None:
    made = ResourcesUpdate(
        resources_id=f"{run_id}-{version}", name="policy", version=version, resources={}, run_id=run_id, created_at=0
    )
    produce(settings, [made])


@contextmanager
def agents(settings: Settings, reward: Callable[[int, Task], float]) -> Iterator[list[Task]]:
    """What runners and the assembler make of each task, at once; `reward` of the pinned version."""
    seen: list[Task] = []
    producer, make = make_producer(settings, "test", linger_ms=0), MessageMaker(settings)

    def handle(record: Record, message: Message) -> None:
        assert isinstance(record, Task)
        seen.append(record)
        version = int((record.resources_id or "").rpartition("-")[2])
        ended = Trajectory(
            rollout_id=record.rollout_id,
            group_id=record.group_id,
            group_size=record.group_size,
            sample_index=record.sample_index,
            mode=record.mode,
            status="succeeded",
            final_reward=reward(version, record),
            resources_id=record.resources_id,
            policy_version=VersionRange(min=version, max=version),
            assembled_at=0,
        )
        answer = make(ended)
        producer.produce(answer.topic, answer.value, answer.key)
        producer.poll(0)

    follower = TopicFollower(settings, "tasks", handle, client_id="test", partitions=range(settings.partitions))
    follower.start()
    try:
        yield seen
    finally:
        follower.close()
        assert producer.flush(10) == 0


def validator(settings: Settings, told: Callable[[Score], None], **options: object) -> Validator:
    values: dict[str, object] = {"every": 2, "samples": 2, "passed": 1.0, "stop_early": EarlyStop(), "told": told}
    return Validator(settings, SPECS, "run", **(values | options))  # pyright: ignore[reportArgumentType]


def test_from_the_newest_version_until_it_gets_no_better(settings: Settings) -> None:
    """The hard task is solved in one of two samples from version 6 on."""

    def reward(version: int, task: Task) -> float:
        return 1.0 if "easy" in task.input else float(version >= 6 and task.sample_index == 0)

    scores: list[Score] = []
    newest: list[int | None] = []

    def told(score: Score) -> None:
        scores.append(score)
        for version in (score.version + 1, score.version + 2):  # the first of them is not due
            publish(settings, version)

    for version in (3, 4):
        publish(settings, version)
    publish(settings, 90, run_id="other")
    with agents(settings, reward) as tasks:
        validator(settings, told, stop_early=EarlyStop(patience=1)).run(threading.Event(), newest.append)
        assert newest == [4]
        assert [s.version for s in scores] == [4, 6, 8]
        assert [s.reward for s in scores] == [0.5, 0.75, 0.75]
        assert [s.passes for s in scores] == [{1: 0.5, 2: 0.5}, {1: 0.75, 2: 1.0}, {1: 0.75, 2: 1.0}]
        assert all(s.exact == 1.0 and (s.tasks, s.rollouts) == (2, 4) for s in scores)
        assert {t.mode for t in tasks} == {"val"}
        assert {t.run_id for t in tasks} == {None}
        shown = Shown()
        assert MetricsFollower(settings, "run", [shown], passed=1.0).run(threading.Event(), once=True)
        assert shown.found == {s.version: s.metrics() for s in scores}
        assert {name for values in shown.found.values() for name in values} == NAMES
        assert all(is_fixed(name) for name in NAMES)
        again: list[Score] = []
        validator(settings, again.append, versions=[6, 4, 6]).run(threading.Event())
        assert [(s.version, s.reward) for s in again] == [(6, 0.75), (4, 0.5)]
    with pytest.raises(SettingsError, match="has not published version 90: the newest is 10"):
        validator(settings, again.append, versions=[4, 90]).run(threading.Event())
