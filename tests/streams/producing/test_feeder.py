"""The feeder on a real broker: it keeps to its bound, goes on after a restart, and stops at the goal."""

import asyncio
from collections import Counter

import msgspec
import pytest

from headrace.schemas.records import RolloutState, RunManifest, Task, TrainingStep, Trajectory, Window
from headrace.streams.codec import Codec
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.producing import Bound, Feeder, TaskSpec
from headrace.streams.producing.choosing import SkipRule, SkipSolved
from headrace.streams.producing.prompts import PLACE
from headrace.streams.settings import Settings
from tests.waiting import eventually

pytestmark = pytest.mark.kafka
DEADLINE_SECONDS = 60.0
SPECS = [TaskSpec(input=str(n)) for n in range(5)]


def tasks(settings: Settings) -> list[Task]:
    topic = settings.topic("tasks")
    messages = read_topic(settings, topic, partition_ids(settings, topic), client_id="test")
    codec = Codec(settings)
    return [codec.decode_as(Task, m.value()) for m in messages]


def step(number: int, decided: int, **metrics: float) -> TrainingStep:
    return TrainingStep(
        run_id="run",
        step=number,
        policy="policy",
        policy_version=number,
        window=Window(),
        decided=decided,
        metrics=metrics,
        started_at=0,
        ended_at=0,
    )


def state(rollout_id: str, run_id: str | None) -> RolloutState:
    return RolloutState(rollout_id=rollout_id, status="queuing", run_id=run_id, enqueued_at=0)


def trajectory(task: Task, reward: float) -> Trajectory:
    return Trajectory(
        rollout_id=task.rollout_id,
        run_id=task.run_id,
        input=task.input,
        status="succeeded",
        final_reward=reward,
        assembled_at=1,
    )


async def test_tops_up_to_the_bound_and_stops_at_the_goal(settings: Settings) -> None:
    feeder = Feeder(settings, SPECS, "run", bound=Bound(window=8, max_staleness=1), group_size=4)
    producer = AckedProducer(settings, "test-trainer", linger_ms=0)
    running = asyncio.create_task(feeder.run())
    await eventually(lambda: feeder.produced == 16)
    await producer.send(step(1, decided=9))
    await eventually(lambda: feeder.produced == 24)
    await producer.send(msgspec.structs.replace(step(2, decided=100), run_id="other"))
    await producer.send(step(2, decided=11))
    await producer.send(step(3, decided=16, goal_reached=1.0))
    produced = await asyncio.wait_for(running, DEADLINE_SECONDS)
    await producer.close()

    found = tasks(settings)
    assert len({t.rollout_id for t in found}) == len(found) == produced
    assert produced in (24, 32)  # the goal may be read before what step 3 decided is topped up
    assert {t.run_id for t in found} == {"run"}
    groups = Counter(t.group_id for t in found)
    assert set(groups.values()) == {4}
    assert {(t.group_id, t.sample_index) for t in found} == {(g, i) for g in groups for i in range(4)}
    inputs = {int(t.metadata[PLACE]): t.input for t in found}
    assert len({inputs[place] for place in range(5)}) == 5  # an epoch has every line once


async def test_a_second_start_counts_what_is_there(settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    first = Feeder(settings, SPECS, "run", bound=Bound(window=6, max_staleness=0))
    running = asyncio.create_task(first.run())
    await eventually(lambda: first.produced == 6)
    first.stop()
    await asyncio.wait_for(running, DEADLINE_SECONDS)
    # Two of them stand on the rollouts topic too, beside rollouts of other runs.
    await asyncio.gather(
        *(producer.send(state(task.rollout_id, "run")) for task in tasks(settings)[:2]),
        *(producer.send(state(f"other-{n}", None if n % 2 else "other")) for n in range(4)),
        producer.send(state("asked-for-elsewhere", "run")),
        producer.send(step(1, decided=3)),
    )
    second = Feeder(settings, SPECS, "run", bound=Bound(window=6, max_staleness=0))
    running = asyncio.create_task(second.run())
    await eventually(lambda: second.produced == 2)  # 6 + 1 - 3 undecided
    second.stop()
    await asyncio.wait_for(running, DEADLINE_SECONDS)
    await producer.close()
    assert len(tasks(settings)) == 8


async def test_takes_the_bound_from_the_manifest(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    producer = AckedProducer(settings, "test")
    feeder = Feeder(settings, SPECS, "run", group_size=2)
    running = asyncio.create_task(feeder.run())
    await eventually(lambda: "run run is one that no trainer has begun: 0 rollouts wait" in caplog.text)
    manifest = '{"window": {"groups": 3, "group_size": 2, "max_staleness": 1}}'
    await producer.send(RunManifest(run_id="run", algorithm="grpo", policy="policy", settings=manifest, created_at=0))
    await eventually(lambda: feeder.produced == 12)
    feeder.stop()
    await asyncio.wait_for(running, DEADLINE_SECONDS)
    await producer.close()


async def test_refuses_groups_of_another_size_than_the_run_trains(settings: Settings) -> None:
    producer = AckedProducer(settings, "test")
    manifest = '{"window": {"groups": 3, "group_size": 16, "max_staleness": 1}}'
    await producer.send(RunManifest(run_id="run", algorithm="grpo", policy="policy", settings=manifest, created_at=0))
    with pytest.raises(SettingsError, match="give --group-size 16, not 1"):
        await asyncio.wait_for(Feeder(settings, SPECS, "run").run(), DEADLINE_SECONDS)
    await producer.close()
    assert tasks(settings) == []


async def test_a_second_start_knows_which_prompts_are_solved(settings: Settings) -> None:
    def feeder() -> Feeder:
        chooser = SkipSolved(len(SPECS), None, SkipRule(groups=1, revisit=100))
        return Feeder(settings, SPECS, "run", bound=Bound(window=5, max_staleness=0), chooser=chooser)

    producer = AckedProducer(settings, "test")
    first = feeder()
    running = asyncio.create_task(first.run())
    await eventually(lambda: first.produced == 5)
    first.stop()
    await asyncio.wait_for(running, DEADLINE_SECONDS)
    await asyncio.gather(
        *(producer.send(trajectory(task, float(task.input in ("0", "1", "2")))) for task in tasks(settings)),
        producer.send(step(1, decided=5)),
    )
    second = feeder()
    running = asyncio.create_task(second.run())
    await eventually(lambda: second.produced == 5)
    second.stop()
    await asyncio.wait_for(running, DEADLINE_SECONDS)
    await producer.close()
    asked = sorted(tasks(settings), key=lambda task: int(task.metadata[PLACE]))[5:]
    assert [t.input for t in asked] == ["3", "4", "3", "4", "3"]
    assert [t.metadata[PLACE] for t in asked] == [
        "8",
        "9",
        "13",
        "14",
        "18",
    ]  # the places of those passed over stay free
