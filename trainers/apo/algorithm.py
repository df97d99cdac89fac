"""APO as an algorithm that can be run."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from headrace.schemas.records import PromptTemplate
from headrace.trainers.apo.model import Model
from headrace.trainers.apo.search import Search
from headrace.trainers.apo.settings import ApoSettings
from headrace.trainers.custom.context import Context
from headrace.trainers.custom.decorator import CustomAlgorithm, Inputs, algorithm
from headrace.trainers.custom.publications import Resource

PROMPT = "prompt_template"


def apo_algorithm(model: Model) -> CustomAlgorithm:
    """The search with a model; see `apo_inputs` for what it is called with."""

    @algorithm(name="apo")
    async def apo(
        ctx: Context,
        train_dataset: Sequence[Any],
        val_dataset: Sequence[Any],
        name: str,
        settings: dict[str, Any],
        prompt: str | None = None,
        engine: str = "f-string",
    ) -> dict[str, Any]:
        live = await ctx.resources(name)
        named: dict[str, Resource] = dict(live.resources) if live is not None else {}
        live_id = live.resources_id if live is not None else None
        if prompt is not None:
            key = next((key for key, resource in named.items() if isinstance(resource, PromptTemplate)), PROMPT)
            given = PromptTemplate(template=prompt, engine=engine)
            if named.get(key) != given:
                live_id = None
            named[key] = given
        search = Search(
            ctx,
            ApoSettings(**settings),
            model,
            named=named,
            name=name,
            train=train_dataset,
            val=val_dataset,
            live_id=live_id,
        )
        return await search.run()

    return apo


def apo_inputs(
    settings: ApoSettings,
    *,
    train: Sequence[Any],
    val: Sequence[Any],
    name: str = "prompt",
    prompt: str | None = None,
    engine: str = "f-string",
) -> Inputs:
    """What the search is called with.

    Args:
        train: inputs of the tasks that prompts are criticised on.
        val: inputs of those that they are compared on.
        name: of the publications that agents use; the chosen prompt is the next version of it.
        prompt: to begin with; None takes that of the newest publication of `name`.
        engine: of `prompt`.
    """
    arguments = {"name": name, "settings": asdict(settings), "prompt": prompt, "engine": engine}
    return Inputs(datasets={"train_dataset": list(train), "val_dataset": list(val)}, arguments=arguments)
