"""Effects happen once, wherever the process dies; what does not go as the journal says is refused."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import headrace
from headrace.schemas.records import JournalEntry
from headrace.streams.agent.resources import PromptTemplate
from headrace.streams.errors import SettingsError
from headrace.streams.producing import TaskFieldError
from headrace.trainers.custom import Context, CustomAlgorithm, NondeterminismError, algorithm
from headrace.trainers.custom.decorator import Inputs
from headrace.trainers.custom.journal import Journal, JsonResultError
from tests.trainers.custom.memory import KilledError, MemoryWorld

Body = Callable[[Context], Awaitable[Any]]
PROMPTS = ("bad {task}", "good {task}", "fair {task}")
REWARDS = {"bad {task}": 0.1, "good {task}": 0.9, "fair {task}": 0.5}


async def best_prompt(ctx: Context) -> Any:
    """Agent Lightning's first algorithm, with a branch a prompt."""
    order = list(PROMPTS)
    ctx.random.shuffle(order)

    async def score(branch: Context, prompt: str) -> tuple[float, str]:
        resources_id = await branch.publish(PromptTemplate(prompt), name="prompt.candidates")
        ids = await branch.enqueue(["a", "b"], mode="val", resources_id=resources_id, group_size=2)
        results = await branch.trajectories(ids)
        assert [r.rollout_id for r in results] == ids
        noise = branch.random.random()
        judged = await branch.step("judge", lambda: [r.reward for r in results])
        return sum(judged) / len(judged) + 0 * noise, prompt

    found = await asyncio.gather(*(score(ctx.branch(f"prompt-{i}"), p) for i, p in enumerate(order)))
    best = max(found)[1]
    await ctx.publish(PromptTemplate(best), name="prompt")
    return {"best": best, "order": order}


def world() -> MemoryWorld:
    return MemoryWorld(lambda task, prompt: REWARDS[prompt.template] if prompt else None)


async def run(body: Body, world: MemoryWorld) -> Any:
    """One process: the coroutine from the top on what the log has."""
    journal = Journal("run", world.entries)
    result = await body(Context("run", journal, world, seed=7))
    journal.check_end()
    return result


async def until_done(body: Body, world: MemoryWorld) -> Any:
    while True:
        try:
            return await run(body, world)
        except KilledError:
            await world.restart()


async def test_an_algorithm_runs() -> None:
    pipeline = world()
    result = await run(best_prompt, pipeline)
    assert result["best"] == "good {task}"
    assert [u.name for u in pipeline.published].count("prompt.candidates") == 3
    assert [u.version for u in pipeline.published if u.name == "prompt.candidates"] == [0, 1, 2]
    assert len({t.group_id for t in pipeline.tasks}) == 6
    assert [t.sample_index for t in pipeline.tasks[:4]] == [0, 1, 0, 1]
    assert {t.mode for t in pipeline.tasks} == {"val"}
    assert {t.run_id for t in pipeline.tasks} == {"run"}


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
async def test_killed_at_every_commit_it_ends_the_same(written: bool) -> None:
    undisturbed = world()
    wanted = await run(best_prompt, undisturbed)
    for dies_at in range(undisturbed.commits):
        pipeline = world()
        pipeline.dies_at, pipeline.written = dies_at, written
        assert await until_done(best_prompt, pipeline) == wanted, dies_at
        assert sorted(t.rollout_id for t in pipeline.tasks) == sorted(t.rollout_id for t in undisturbed.tasks)
        assert Counter(u.name for u in pipeline.published) == Counter(u.name for u in undisturbed.published)
        assert max(Counter(e.place for e in pipeline.entries).values()) == 1


async def test_a_finished_step_is_not_called_again() -> None:
    calls: list[int] = []

    async def body(ctx: Context) -> Any:
        first = await ctx.step("count", calls.append, 1)
        second = await ctx.step("pair", lambda: (1, {2: "b"}))
        return first, second

    pipeline = world()
    assert await run(body, pipeline) == await run(body, pipeline) == (None, [1, {"2": "b"}])
    assert calls == [1]
    assert [json.loads(e.result) for e in pipeline.entries] == [None, [1, {"2": "b"}]]


async def test_steps_may_be_coroutines_and_what_they_raise_is_not_kept() -> None:
    tries: list[int] = []

    async def flaky(value: int) -> int:
        tries.append(value)
        if len(tries) == 1:
            raise ConnectionError("away")
        return value * 2

    async def body(ctx: Context) -> Any:
        return await ctx.step("double", flaky, 21)

    pipeline = world()
    with pytest.raises(ConnectionError):
        await run(body, pipeline)
    assert await run(body, pipeline) == 42


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (lambda ctx: ctx.step("other", int), "was enqueue 'val', and is step 'other' now"),
        (lambda ctx: ctx.enqueue([2], mode="val"), "other arguments"),
        (lambda ctx: ctx.enqueue([1], mode="train"), "is enqueue 'train' now"),
        (lambda ctx: asyncio.sleep(0), "returned without asking for effect 0"),
    ],
    ids=["another kind", "other inputs", "another mode", "left out"],
)
async def test_a_replay_that_asks_for_something_else_is_refused(changed: Body, word: str) -> None:
    pipeline = world()
    await run(lambda ctx: ctx.enqueue([1], mode="val"), pipeline)
    with pytest.raises(NondeterminismError, match=word) as refused:
        await run(changed, pipeline)
    assert "--run" in str(refused.value)
    assert len(pipeline.tasks) == 1


async def test_what_branches_draw_and_do_depends_on_no_order() -> None:
    async def body(ctx: Context) -> Any:
        async def one(branch: Context, turns: int) -> list[Any]:
            for _ in range(turns):
                await asyncio.sleep(0)
            return [branch.random.random(), await branch.enqueue([1])]

        return await asyncio.gather(*(one(ctx.branch(f"b{i}"), turns[i]) for i in range(3)))

    turns = (0, 5, 9)
    first = await run(body, world())
    turns = (9, 5, 0)
    assert await run(body, world()) == first


async def test_resources_are_those_of_the_first_time() -> None:
    pipeline = world()
    await run(lambda ctx: ctx.publish({"p": PromptTemplate("one")}, name="prompt"), pipeline)
    pipeline.entries.clear()
    first = await run(lambda ctx: ctx.resources("prompt"), pipeline)
    other = Journal("other")
    await Context("other", other, pipeline).publish({"p": PromptTemplate("two")}, name="prompt")
    pipeline.entries.pop()
    again = await run(lambda ctx: ctx.resources("prompt"), pipeline)
    assert first is not None
    assert again is not None
    assert again.resources_id == first.resources_id
    assert await run(lambda ctx: ctx.resources("none"), world()) is None


async def test_mistakes_are_said() -> None:
    ctx = Context("run", Journal("run"), world())
    with pytest.raises(JsonResultError, match="'set' returned what JSON cannot hold"):
        await ctx.step("set", lambda: {1, 2})
    with pytest.raises(TaskFieldError, match="mode"):
        await ctx.enqueue([1], mode="training")
    with pytest.raises(TaskFieldError, match="group_size"):
        await ctx.enqueue([1], group_size=0)
    with pytest.raises(SettingsError, match="engine 'mustache'"):
        await ctx.publish(PromptTemplate("x", "mustache"))
    ctx.branch("a")
    with pytest.raises(SettingsError, match="made before"):
        ctx.branch("a")
    with pytest.raises(SettingsError, match="neither empty"):
        ctx.branch("7")


async def test_the_decorator() -> None:
    @algorithm
    async def tune(ctx: Context, train_dataset: list[Any], rounds: int = 2) -> Any:
        """Tunes."""
        return [len(train_dataset), rounds, ctx.run_id]

    assert isinstance(tune, CustomAlgorithm)
    assert headrace.algorithm is algorithm
    assert (tune.name, tune.__doc__) == ("tune", "Tunes.")
    ctx = Context("run", Journal("run"), world())
    assert await tune.run(ctx, Inputs(datasets={"train_dataset": [1, 2]}, arguments={"rounds": 3})) == [2, 3, "run"]
    with pytest.raises(SettingsError, match="needs train_dataset"):
        tune.check(Inputs(datasets={}, arguments={}))
    with pytest.raises(SettingsError, match="does not ask for val_dataset"):
        tune.check(Inputs(datasets={"train_dataset": [], "val_dataset": []}, arguments={}))
    with pytest.raises(SettingsError, match="async def"):
        algorithm(lambda ctx: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(SettingsError, match="must ask for `ctx`"):

        @algorithm
        async def no_context(train_dataset: list[Any]) -> None: ...


def test_the_first_entry_of_a_place_counts() -> None:
    def entry(result: str) -> JournalEntry:
        return JournalEntry(run_id="run", place="0", kind="step", name="n", result=result, at=0)

    journal = Journal("run", [entry("1"), entry("2")])
    found = journal.find("0", "step", "n", "")
    assert found is not None
    assert found.result == "1"
    assert journal.add(entry("3")).result == "1"
