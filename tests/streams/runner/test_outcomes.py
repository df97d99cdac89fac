"""What becomes of an attempt, by what its agent does. Real topics, no model."""

import asyncio
import math
import sys
import threading
import time
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from headrace import Agent, emit_message, emit_reward, operation, rollout
from headrace.schemas.records import AttemptEvent, Task
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.runner.executing import CROWD
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.kafka


async def test_returned_numbers_are_rewards(pipeline) -> None:
    @rollout
    async def agent(task: Any) -> Any:
        return task

    ids = pipeline.tasks(0.5, 1, True, None)
    async with pipeline.runner(agent):
        judges = await pipeline.closed(ids)
    assert {r: j.closing.type for r, j in judges.items()} == dict.fromkeys(ids, "succeeded")
    assert all(j.closing.final and j.closing.complete for j in judges.values())
    rewards = {r.rollout_id: r for r in pipeline.rewards()}
    assert {k: r.value for k, r in rewards.items()} == {"r0": 0.5, "r1": 1.0, "r2": 1.0}
    assert rewards["r0"].primary
    assert rewards["r0"].reward_id == "r0-1/return"
    assert rewards["r0"].source == "agent"


async def test_started_carries_the_facts_of_the_task(pipeline) -> None:
    @rollout
    async def agent(task: Any, rollout: Any) -> None:
        assert rollout.metadata == {"k": "v"}
        assert rollout.input == task
        assert rollout.attempt_id == "r0-1"

    ids = pipeline.tasks({"q": "ä"}, group_id="g", group_size=2, sample_index=1, mode="train", metadata={"k": "v"})
    async with pipeline.runner(agent):
        await pipeline.closed(ids)
    started, ended = pipeline.events("r0")
    assert started.type == "started"
    assert (started.task.group_id, started.task.group_size, started.task.sample_index) == ("g", 2, 1)
    assert (started.task.mode, started.task.input, started.task.offset) == ("train", '{"q": "\\u00e4"}', 0)
    assert ended.type == "succeeded"


GARBAGE: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "non_finite_reward"),
    "infinite": (math.inf, "non_finite_reward"),
    "text": ("1.0", "non_numeric_reward"),
    "list": ([1.0], "non_numeric_reward"),
}


@pytest.mark.parametrize("sync", [False, True])
async def test_garbage_fails_the_attempt_with_a_reason(pipeline, sync: bool) -> None:
    def plain(task: Any) -> Any:
        return GARBAGE[task][0]

    async def coroutine(task: Any) -> Any:
        return GARBAGE[task][0]

    ids = pipeline.tasks(*GARBAGE)
    async with pipeline.runner(rollout(plain if sync else coroutine)):
        judges = await pipeline.closed(ids)
    for rollout_id, (_, word) in zip(ids, GARBAGE.values(), strict=True):
        closing = judges[rollout_id].closing
        assert closing.type == "failed"
        assert "InvalidRewardError" in closing.error.type
        assert word in closing.error.message
    assert pipeline.rewards() == []


@pytest.mark.parametrize("sync", [False, True])
async def test_what_an_agent_raises_ends_its_attempt_and_nothing_else(pipeline, sync: bool) -> None:
    def work(task: Any) -> float:
        if task == "exit":
            sys.exit(3)
        if task == "raise":
            raise ValueError("no such thing")
        return 1.0

    async def work_async(task: Any) -> float:
        return work(task)

    ids = pipeline.tasks("exit", "raise", "fine")
    async with pipeline.runner(rollout(work if sync else work_async)):
        judges = await pipeline.closed(ids)
    assert [judges[r].closing.type for r in ids] == ["failed", "failed", "succeeded"]
    assert judges["r0"].closing.error.type == "SystemExit"
    error = judges["r1"].closing.error
    assert (error.type, error.message) == ("ValueError", "no such thing")
    assert "in work" in error.stacktrace


async def test_a_spawned_task_that_exits_ends_itself_and_nothing_else(pipeline) -> None:
    async def exits() -> None:
        sys.exit(3)

    async def work(task: Any) -> float:
        if task == "fine":
            return 1.0
        spawned = asyncio.create_task(exits())
        if task == "awaited":
            await spawned
        await asyncio.wait([spawned])
        return 0.5

    ids = pipeline.tasks("awaited", "left alone", "fine")
    async with pipeline.runner(rollout(work)):
        judges = await pipeline.closed(ids)
    assert [judges[r].closing.type for r in ids] == ["failed", "succeeded", "succeeded"]
    error = judges["r0"].closing.error
    assert "ExitedError" in error.type
    assert "sys.exit(3)" in error.message


@pytest.mark.parametrize("sync", [False, True])
async def test_a_hanging_agent_times_out_and_its_slot_is_freed(pipeline, sync: bool) -> None:
    release = threading.Event()
    refused: list[str] = []

    def hang(task: Any) -> float:
        if task == "hang":
            release.wait(30)
            try:
                emit_reward(1.0)
            except Exception as error:
                refused.append(type(error).__name__)
        return 1.0

    async def hang_async(task: Any) -> float:
        if task == "hang":
            try:
                await asyncio.sleep(30)
            finally:
                try:
                    emit_reward(1.0)
                except Exception as error:
                    refused.append(type(error).__name__)
        return 1.0

    ids = pipeline.tasks("hang", "hang", config={"timeout_seconds": 0.5})
    ids += pipeline.tasks(*[0] * 30, first=2)
    async with pipeline.runner(rollout(hang if sync else hang_async), concurrency=2):
        judges = await pipeline.closed(ids)
        release.set()
        await pipeline.until(lambda: len(refused) == 2)
    assert [judges[r].closing.type for r in ids] == ["timeout"] * 2 + ["succeeded"] * 30
    assert refused == ["AttemptOverError"] * 2
    assert len(pipeline.rewards()) == 30


async def test_an_agent_that_swallows_its_cancellation_frees_its_slot(pipeline) -> None:
    @rollout
    async def agent(task: Any) -> float:
        end = time.monotonic() + 3
        while task == "stubborn" and time.monotonic() < end:
            try:
                await asyncio.sleep(0.5)
            except asyncio.CancelledError:
                continue
        return 1.0

    ids = pipeline.tasks("stubborn", config={"timeout_seconds": 0.2})
    ids += pipeline.tasks(*[0] * 5, first=1)
    async with pipeline.runner(agent, concurrency=1):
        judges = await pipeline.closed(ids)
    assert [judges[r].closing.type for r in ids] == ["timeout"] + ["succeeded"] * 5


async def test_the_retry_rule_makes_an_end_that_is_not_final(pipeline) -> None:
    @rollout
    async def agent(task: Any) -> None:
        raise RuntimeError

    pipeline.tasks(1, config={"max_attempts": 2, "retry_condition": ["failed"]})
    async with pipeline.runner(agent):
        await pipeline.until(lambda: len(pipeline.events("r0")) >= 2)
        assert not pipeline.events("r0")[1].final
        second = next(t for t in pipeline.records("tasks"))
        second.attempt = 2
        pipeline.produce([second])
        judges = await pipeline.closed(["r0"])
    assert [e.attempt_id for e in pipeline.events("r0")] == ["r0-1", "r0-1", "r0-2", "r0-2"]
    assert judges["r0"].closing.attempt == 2


async def test_emitters_write_before_the_end(pipeline) -> None:
    @rollout
    def agent(task: Any) -> None:
        emit_message("hello")
        with operation("search", query="x") as step:
            emit_message("inside")
            step.set(found=float("nan"))
        emit_reward({"accuracy": 1, "style": 0.5}, primary_key="accuracy", span_id=step.span_id)

    ids = pipeline.tasks(1)
    async with pipeline.runner(agent):
        await pipeline.closed(ids)
    spans = {s.name: s for s in pipeline.spans()}
    inside = next(s for s in pipeline.spans() if "inside" in s.attributes)
    assert inside.parent_id == spans["search"].span_id
    assert '"found": {"doubleValue": "NaN"}' in spans["search"].attributes
    assert {s.trace_id for s in pipeline.spans()} == {inside.trace_id}
    rewards = {r.name: r for r in pipeline.rewards()}
    assert {k: (r.value, r.primary) for k, r in rewards.items()} == {"accuracy": (1.0, True), "style": (0.5, False)}
    assert rewards["style"].span_id == spans["search"].span_id


async def test_the_class_form_by_mode(pipeline) -> None:
    class Both(Agent):
        uses_llm = False

        def training_rollout(self, task: Any, resources: Any, rollout: Any) -> float:
            return 1.0

        def validation_rollout(self, task: Any, resources: Any, rollout: Any) -> float:
            return 0.0

    modes = {"a": "train", "b": "val", "c": None}
    for rollout_id, mode in modes.items():
        one = _task(rollout_id)
        one.mode = mode
        pipeline.produce([one])
    async with pipeline.runner(Both()):
        await pipeline.closed(modes)
    assert {r.rollout_id: r.value for r in pipeline.rewards()} == {"a": 1.0, "b": 0.0, "c": 0.0}


async def test_unreadable_tasks_are_dead_letters_and_the_rest_goes_on(pipeline) -> None:
    @rollout
    async def agent(task: Any) -> float:
        return 1.0

    topic = pipeline.settings.topic("tasks")
    pipeline.producer.produce(topic, b"garbage", b"x")
    pipeline.producer.produce(topic, b"", b"y")
    pipeline.producer.flush()
    ids = pipeline.tasks(*range(6))
    misplaced = pipeline.message(_task("z"))
    wrong = (_partition(pipeline, "z") + 1) % pipeline.settings.partitions
    pipeline.producer.produce(topic, misplaced.value, misplaced.key, wrong)
    pipeline.producer.flush()
    async with pipeline.runner(agent) as runner:
        judges = await pipeline.closed(ids)
        await pipeline.until(lambda: runner.counters["dead_letters"] == 3)
    letters = [parse(m) for m in pipeline.raw(f"{topic}.dlq")]
    assert sorted(x.reason for x in letters) == ["empty", "unknown_framing", "wrong_partition"]
    assert {x.value for x in letters} >= {b"garbage"}
    assert "z" not in judges


async def test_an_input_that_is_no_json_fails_the_attempt(pipeline) -> None:
    @rollout
    async def agent(task: Any) -> float:
        return 1.0

    bad = _task("bad")
    bad.input = "{no json"
    pipeline.produce([bad])
    async with pipeline.runner(agent):
        judges = await pipeline.closed(["bad"])
    assert judges["bad"].closing.type == "failed"
    assert "no JSON" in judges["bad"].closing.error.message


async def test_of_repeated_tasks_one_is_run(pipeline) -> None:
    runs: list[Any] = []

    @rollout
    async def agent(task: Any) -> float:
        runs.append(task)
        await asyncio.sleep(0.05)
        return 1.0

    pipeline.tasks(*range(20))
    pipeline.tasks(*range(20))
    ids = pipeline.tasks(*range(20))
    async with pipeline.runner(agent, concurrency=100):
        await pipeline.closed(ids)
    async with pipeline.runner(agent):
        pipeline.tasks(*range(20))
        await pipeline.until(lambda: pipeline.committed() == 80)
    assert sorted(runs) == list(range(20))


async def test_a_cancelled_task_is_withdrawn_and_a_running_one_stopped(pipeline) -> None:
    began = asyncio.Event()

    @rollout
    async def agent(task: Any) -> float:
        began.set()
        await asyncio.sleep(600)
        return 1.0

    pipeline.tasks(1, 2)
    async with pipeline.runner(agent, concurrency=1):
        await asyncio.wait_for(began.wait(), PATIENCE_SECONDS)
        pipeline.produce(AttemptEvent(rollout_id=r, attempt=0, type="cancel_requested", at=0) for r in ("r0", "r1"))
        judges = await pipeline.closed(["r0", "r1"])
    assert {j.closing.type for j in judges.values()} == {"cancelled"}


async def test_a_drained_runner_gives_back_what_it_cannot_finish(pipeline) -> None:
    began = asyncio.Event()

    @rollout
    async def slow(task: Any) -> float:
        began.set()
        await asyncio.sleep(600)
        return 1.0

    @rollout
    async def fast(task: Any) -> float:
        return 1.0

    ids = pipeline.tasks(1)
    async with pipeline.runner(slow, drain=timedelta(seconds=0.2)):
        await asyncio.wait_for(began.wait(), PATIENCE_SECONDS)
    assert [e.lost_reason for e in pipeline.events("r0") if e.type == "lost"] == ["given_back"]
    async with pipeline.runner(fast):
        judges = await pipeline.closed(ids)
    assert judges["r0"].closing.delivery == 2


async def test_many_at_once(pipeline) -> None:
    most = now = 0
    full = asyncio.Event()

    @rollout
    async def agent(task: Any) -> float:
        nonlocal most, now
        now += 1
        most = max(most, now)
        if now == 500:
            full.set()
        await full.wait()
        now -= 1
        return 1.0

    ids = pipeline.tasks(*range(1500))
    async with pipeline.runner(agent, concurrency=500):
        judges = await pipeline.closed(ids)
    assert len(judges) == 1500
    assert most == 500


async def test_in_a_crowd_each_attempt_keeps_its_order(pipeline) -> None:
    """The first ones speak at once, those that start in the crowd in batches; neither does both."""

    @rollout
    async def agent(task: int) -> None:
        for number in range(4):
            with operation(f"step{number}"):
                await asyncio.sleep(0.02)
            emit_reward(float(number))

    ids = pipeline.tasks(*range(3 * CROWD))
    async with pipeline.runner(agent, concurrency=2 * CROWD):
        await pipeline.closed(ids)
    for of_one, told in ((pipeline.rewards(), lambda r: r.value), (pipeline.spans(), lambda s: s.name)):
        by_rollout: dict[str, list[Any]] = {}
        for record in of_one:
            by_rollout.setdefault(record.rollout_id, []).append(told(record))
        assert by_rollout.keys() == set(ids)
        assert all(len(order) == 4 and order == sorted(order) for order in by_rollout.values())


async def test_heartbeats_and_activity(pipeline, make_settings) -> None:
    enough = asyncio.Event()

    @rollout
    async def agent(task: Any) -> float:
        while not enough.is_set():
            await asyncio.sleep(0.05)
            await emit_message("still here")
        return 1.0

    def said(kind: str) -> list[int]:
        return [e.at for e in pipeline.events("r0") if e.type == kind]

    pipeline.settings = pipeline.settings.model_copy(update={"heartbeat": timedelta(seconds=0.5)})
    ids = pipeline.tasks(1, config={"unresponsive_seconds": 1.5})
    async with pipeline.runner(agent):
        async with asyncio.timeout(PATIENCE_SECONDS):
            for kind in ("heartbeat", "activity"):
                while len(await asyncio.to_thread(said, kind)) < 2:  # noqa: ASYNC110  # it is the log that says so
                    await asyncio.sleep(0.2)
        enough.set()
        await pipeline.closed(ids)
    activities = said("activity")
    assert len(activities) < len(pipeline.spans())
    assert min(later - one for one, later in pairwise(activities)) > 300_000  # at most one in a third of the silence


def _task(rollout_id: str) -> Any:
    return Task(rollout_id=rollout_id, input="1", enqueued_at=0)


def _partition(pipeline: Any, rollout_id: str) -> int:
    return partition_of(rollout_id, pipeline.settings.partitions)
