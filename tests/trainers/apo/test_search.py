"""The search for a prompt with a scripted model and scripted rewards."""

from typing import Any

import pytest

from headrace.schemas.records import PromptTemplate
from headrace.streams.agent.resources import PromptTemplate as AgentPrompt
from headrace.streams.errors import SettingsError
from headrace.trainers.apo.algorithm import apo_algorithm, apo_inputs
from headrace.trainers.apo.model import Messages
from headrace.trainers.apo.prompts import EDIT, Experiment, critique_messages
from headrace.trainers.apo.settings import ApoSettings
from headrace.trainers.apo.templates import placeholders_of
from headrace.trainers.custom import Context
from headrace.trainers.custom.journal import Journal
from tests.trainers.custom.memory import KilledError, MemoryWorld

SEED = "Answer {question}."
WORDS = ("briefly", "exactly", "kindly")
SMALL = ApoSettings(
    beam_width=2, branch_factor=2, rounds=3, gradient_batch_size=2, train_batch_size=2, val_batch_size=3
)


def reward(task: Any, prompt: PromptTemplate | None) -> float | None:
    """A third for each of the words in the prompt; one task gives no reward."""
    assert prompt is not None
    return None if task == "mute" else sum(word in prompt.template for word in WORDS) / len(WORDS)


class ScriptedModel:
    """Names what is missing; its rewrite follows the criticism, or goes wrong in every way that there is."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def __call__(self, messages: Messages, *, model: str, temperature: float) -> str:
        self.calls.append(model)
        asked = messages[1]["content"]
        template = asked.split("\n\n")[1]
        missing = [word for word in WORDS if word not in template]
        if model == "critic":
            return f"say {missing[0]}" if missing else ""
        word = asked.rsplit(" ", 1)[-1]
        if messages[0]["content"].startswith(EDIT[1]):
            return f"```\n{template} {word}\n```"
        return f"{template} {word} {{name}}" if len(template) % 2 else f"{template} {word} thus"


def settings(**changes: Any) -> ApoSettings:
    values = {name: getattr(SMALL, name) for name in SMALL.__dataclass_fields__}
    return ApoSettings(**{**values, "gradient_model": "critic", "edit_model": "editor", **changes})


async def search(world: MemoryWorld, model: ScriptedModel | None = None, seed: int = 0, **changes: Any) -> Any:
    inputs = {"train": ["a", "b", "c"], "val": ["d", "e", "f", "g"], "prompt": SEED} | {
        name: changes.pop(name) for name in ("train", "val", "prompt", "engine") if name in changes
    }
    algorithm = apo_algorithm(model or ScriptedModel())
    journal = Journal("run", world.entries)
    return await algorithm.run(Context("run", journal, world, seed=seed), apo_inputs(settings(**changes), **inputs))


@pytest.mark.parametrize("seed", [0, 1, 2])
async def test_the_right_prompt_is_found_and_published(seed: int) -> None:
    world, model = MemoryWorld(reward), ScriptedModel()
    report = await search(world, model, seed)
    assert all(word in report["best"]["template"] for word in WORDS)
    assert (report["best"]["score"], report["seed_score"]) == (1.0, 0.0)
    assert "{name}" not in report["best"]["template"]
    live = await world.newest("prompt")
    assert live is not None
    assert live.resources_id == report["best"]["resources_id"]
    assert live.resources == {"prompt_template": PromptTemplate(template=report["best"]["template"])}
    assert {u.name for u in world.published} == {"prompt", "prompt.candidates"}
    assert {t.mode for t in world.tasks} == {"val"}
    assert all(t.resources_id for t in world.tasks)
    assert {d["reason"] for d in report["dropped"]} <= {"placeholders", "duplicate", "no_criticism"}
    assert set(model.calls) == {"critic", "editor"}
    templates = [c["template"] for c in report["candidates"]]
    assert len(templates) == len(set(templates))


async def test_killed_again_and_again_the_report_is_the_same() -> None:
    undisturbed = MemoryWorld(reward)
    wanted = await search(undisturbed)
    world, model = MemoryWorld(reward), ScriptedModel()
    world.dies_at, world.written, report = 3, True, None
    while report is None:
        try:
            report = await search(world, model)
        except KilledError:
            await world.restart(world.commits + 7, written=not world.written)
    assert report["candidates"] == wanted["candidates"]
    assert report["best"]["template"] == wanted["best"]["template"]
    assert sorted(t.rollout_id for t in world.tasks) == sorted(t.rollout_id for t in undisturbed.tasks)
    assert len(world.published) == len(undisturbed.published)


async def test_a_search_that_finds_nothing_better_leaves_what_is_live() -> None:
    world = MemoryWorld(lambda task, prompt: 0.5)
    ctx = Context("before", Journal("before"), world)
    live_id = await ctx.publish(
        {"p": PromptTemplate(template=SEED), "q": PromptTemplate(template="other")}, name="prompt"
    )
    world.entries.clear()
    report = await search(world, prompt=None, rounds=1)
    assert report["best"]["version"] == "v0"
    assert report["best"]["resources_id"] == live_id
    newest = await world.newest("prompt")
    assert newest is not None
    assert newest.resources_id == live_id
    candidates = [u for u in world.published if u.name == "prompt.candidates"]
    assert {u.resources["q"].template for u in candidates} == {"other"}  # type: ignore[union-attr]


async def test_a_rollout_without_a_reward_counts_as_told() -> None:
    tasks = {"train": ["a"], "val": ["mute", "b"], "rounds": 1, "branch_factor": 1, "beam_width": 1}
    zero = await search(MemoryWorld(lambda t, p: None if t == "mute" else 1.0), **tasks)
    left_out = await search(MemoryWorld(lambda t, p: None if t == "mute" else 1.0), **tasks, missing="leave_out")
    assert (zero["seed_score"], left_out["seed_score"]) == (0.5, 1.0)
    assert zero["candidates"][0]["scores"]["val"]["rewarded"] == 1


class CarelessModel(ScriptedModel):
    """Its rewrites follow the criticism, lose the placeholder, or cannot be parsed, in turn."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        self._broken = broken

    async def __call__(self, messages: Messages, *, model: str, temperature: float) -> str:
        if model == "critic":
            return await super().__call__(messages, model=model, temperature=temperature)
        self.calls.append(model)
        asked = messages[1]["content"]
        template, word = asked.split("\n\n")[1], asked.rsplit(" ", 1)[-1]
        return [f"{template} {word}", word, template + self._broken][len(self.calls) % 3]


@pytest.mark.parametrize(
    ("engine", "prompt", "broken"),
    [("jinja", "Answer {{ question }}.", "{% if %}"), ("poml", "<task>Answer {{ question }}.</task>", "<p>")],
)
async def test_prompts_of_other_engines_keep_their_placeholders(engine: str, prompt: str, broken: str) -> None:
    report = await search(MemoryWorld(reward), CarelessModel(broken), prompt=prompt, engine=engine)
    templates = [candidate["template"] for candidate in report["candidates"]]
    assert len(templates) > 3
    assert all(placeholders_of(template, engine) == placeholders_of(prompt, engine) for template in templates)
    assert {"placeholders", "unreadable"} <= {dropped["reason"] for dropped in report["dropped"]}
    assert report["best"]["engine"] == engine
    assert report["best"]["score"] > report["seed_score"]
    if engine == "jinja":
        assert all("why" in AgentPrompt(template, engine).format(question="why") for template in templates)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"prompt": None}, "no prompt template"),
        ({"prompt": "{"}, "no f-string template"),
        ({"engine": "mustache"}, "no engine .mustache."),
        ({"val": []}, "needs train"),
    ],
)
async def test_what_cannot_be_searched_is_said(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        await search(MemoryWorld(reward), **changes)


def test_a_critic_sees_tasks_rewards_and_what_was_said() -> None:
    told = [{"messages": [{"role": "user", "content": "1" * 900}, {"role": "assistant", "content": "two"}]}]
    experiment = Experiment({"question": "1 + 1"}, "succeeded", 0.25, told)
    _, asked = critique_messages("T {question}", [experiment, Experiment("x", "failed", None, [])], 300, "Be strict.")
    text = asked["content"]
    for part in ('Task: {"question": "1 + 1"}', "Reward: 0.25 (succeeded)", "assistant: two", "[...]", "Reward: none"):
        assert part in text
    assert len(text) < 1000
