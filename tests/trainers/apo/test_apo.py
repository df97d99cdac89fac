"""APO on a real pipeline: a runner, lifecycle and assembler; the model that criticises is scripted."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace import PromptTemplate, emit_message, rollout
from headrace.schemas.records import ResourcesUpdate, Trajectory
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.runner.options import RunnerOptions
from headrace.streams.runner.runner import Runner
from headrace.streams.settings import Settings
from headrace.trainers.apo.algorithm import apo_algorithm, apo_inputs
from headrace.trainers.apo.model import Messages
from headrace.trainers.apo.settings import ApoSettings
from headrace.trainers.custom.run import CustomRun, run_algorithm

pytestmark = pytest.mark.kafka


@rollout(uses_llm=False)
async def room(task: Any, prompt_template: PromptTemplate) -> float:
    """Picks the smallest room that fits, if its prompt says so, else the first one."""
    prompt = prompt_template.format(people=task["people"])
    await emit_message(prompt)
    fitting = [size for size in task["rooms"] if size >= task["people"]]
    picked = min(fitting) if "smallest" in prompt else fitting[0] if "fit" in prompt else task["rooms"][0]
    return float(picked == min(fitting))


async def scripted(messages: Messages, *, model: str, temperature: float) -> str:
    asked = messages[1]["content"]
    if model == "critic":
        assert "Reward: 0" in asked
        return "does not say fit" if "fit" not in asked.split("# Experiments")[0] else "does not say smallest"
    template = asked.split("\n\n")[1]
    return f"{template} It must {asked.rsplit(' ', 1)[-1]}."


@contextmanager
def processors(settings: Settings) -> Iterator[None]:
    """Lifecycle and assembler, each on a thread."""
    loops = [
        TransactionalLoop(settings, make(settings, name), name)
        for make, name in ((LifecycleProcessor, "lifecycle"), (AssemblyProcessor, "assembler"))
    ]
    threads = [threading.Thread(target=loop.run, daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.stop()
        for thread in threads:
            thread.join(90)


async def test_the_right_prompt_is_chosen_and_reaches_the_agent(settings: Settings) -> None:
    # The first room never fits; of every other task the first one that fits is also the smallest.
    tasks = [{"people": n, "rooms": [n - 1, n + 4 * (n % 2), n + 4 - 4 * (n % 2)]} for n in range(3, 7)]
    inputs = apo_inputs(
        ApoSettings(
            gradient_model="critic", edit_model="editor", beam_width=1, branch_factor=1, rounds=2, train_batch_size=2,
            gradient_batch_size=2,
        ),
        train=tasks[:2],
        val=tasks[2:],
        prompt="A room for {people} people.",
    )  # fmt: skip
    with processors(settings):
        runner = Runner(settings, room, RunnerOptions(resources="prompt"))
        await runner.start()
        work = asyncio.create_task(runner.run())
        try:
            report = await run_algorithm(settings, apo_algorithm(scripted), CustomRun(run_id="apo", inputs=inputs))
            await runner.drain()
        finally:
            work.cancel()
            await runner.close()
    assert report["best"]["template"] == "A room for {people} people. It must fit. It must smallest."
    assert (report["seed_score"], report["best"]["score"]) == (0.0, 1.0)
    assert [c["version"] for c in report["candidates"]] == ["v0", "v1", "v2"]
    codec, topic = Codec(settings), settings.topic("triplets")
    found = [
        codec.decode_as(Trajectory, m.value())
        for m in read_topic(settings, topic, partition_ids(settings, topic), client_id="test")
    ]
    by_prompt = {c["resources_id"]: c["version"] for c in report["candidates"]}
    assert {by_prompt[t.resources_id] for t in found if t.resources_id} == {"v0", "v1", "v2"}
    assert {t.mode for t in found} == {"val"}
    updates = read_topic(settings, settings.topic("resources"), [0], client_id="test")
    newest = [codec.decode_as(ResourcesUpdate, m.value()) for m in updates][-1]
    assert (newest.name, newest.resources_id) == ("prompt", report["best"]["resources_id"])
    assert json.dumps(report)
