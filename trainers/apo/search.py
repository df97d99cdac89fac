"""Agent Lightning's APO as a custom algorithm: beam search with textual gradients (ProTeGi, arXiv:2305.03495).

A round criticises and rewrites the prompts of the beam, and compares old and new ones on one batch of validation tasks.
Every candidate is published, and tried in rollouts that pin it.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from headrace.schemas.records import PromptTemplate
from headrace.streams.errors import SettingsError
from headrace.trainers.apo.beam import Batches, Candidate, Score, best_of, parents_of, score_of
from headrace.trainers.apo.model import Model
from headrace.trainers.apo.prompts import CRITIQUE, EDIT, Experiment, critique_messages, edit_messages
from headrace.trainers.apo.settings import ApoSettings
from headrace.trainers.apo.templates import TemplateError, refusal_of, unfenced, variables_of
from headrace.trainers.custom.context import Context, RolloutResult
from headrace.trainers.custom.publications import Resource

log = logging.getLogger(__name__)

MODE = "val"  # no trainer of weights learns from the search
ALL = "val"
"""The measure on all validation tasks."""


class Search:
    """One search.

    Args:
        named: the resources that agents get; the first prompt template among them is tuned, the others stay.
        name: of the publications that agents use; the candidates stand under `<name>.candidates`.
        live_id: the newest publication of `name`, if `named` comes from it.

    Raises:
        SettingsError: there is no prompt template, its engine cannot read it, or there are no tasks.
    """

    def __init__(
        self,
        ctx: Context,
        settings: ApoSettings,
        model: Model,
        *,
        named: dict[str, Resource],
        name: str,
        train: Sequence[Any],
        val: Sequence[Any],
        live_id: str | None = None,
    ) -> None:
        key = next((key for key, resource in named.items() if isinstance(resource, PromptTemplate)), None)
        if key is None:
            raise SettingsError(
                f"there is no prompt template among {', '.join(named) or 'no resources'}; give --prompt"
            )
        if not train or not val:
            raise SettingsError("the search needs train and validation tasks")
        seed = named[key]
        assert isinstance(seed, PromptTemplate)
        try:
            variables_of(seed.template, seed.engine)
        except TemplateError as error:
            raise SettingsError(f"the prompt is no {seed.engine} template: {error}") from error
        self._ctx, self._settings, self._model = ctx, settings, model
        self._named, self._key, self._name = named, key, name
        self._seed, self._engine = seed, seed.engine
        self._live_id = live_id
        self._train = Batches(train, settings.train_batch_size, ctx.branch("train-batches").random)
        self._batches = Batches(val, settings.val_batch_size, ctx.branch("val-batches").random)
        self._val = list(val)
        self._candidates = [Candidate("v0", seed.template, None)]
        self._dropped: list[dict[str, Any]] = []

    async def run(self) -> dict[str, Any]:
        """Searches; the report: the best prompt, and all candidates with their scores."""
        settings, seed = self._settings, self._candidates[0]
        await self._publish(seed)
        if settings.initial_validation:
            await self._measure(self._ctx.branch("initial"), seed, ALL, self._val)
        best = seed
        beam = [seed]
        rounds: list[dict[str, Any]] = []
        for number in range(1, settings.rounds + 1):
            ctx = self._ctx.branch(f"round-{number}")
            fresh = await self._expand(ctx, beam)
            measure = f"round-{number}"
            batch = self._batches.next()
            compared = [*beam, *fresh]
            await asyncio.gather(
                *(self._measure(ctx.branch(f"compare-{c.version}"), c, measure, batch) for c in compared)
            )
            beam = best_of(compared, measure, settings.beam_width)
            leader = beam[0]
            if ALL not in leader.scores:
                await self._measure(ctx.branch("leader"), leader, ALL, self._val)
            if ALL not in best.scores or leader.scores[ALL].mean > best.scores[ALL].mean:
                best = leader
            rounds.append({"round": number, "new": [c.version for c in fresh], "beam": [c.version for c in beam]})
            log.info(
                "round %d: %s leads with %.4f; %s is best",
                number,
                leader.version,
                leader.scores[ALL].mean,
                best.version,
            )
        return await self._finish(best, rounds)

    async def _finish(self, best: Candidate, rounds: list[dict[str, Any]]) -> dict[str, Any]:
        live_id = self._live_id
        if best is not self._candidates[0] or live_id is None:
            live_id = await self._ctx.publish(self._resources(best), name=self._name)
        seed = self._candidates[0].scores.get(ALL)
        return {
            "best": {
                "version": best.version,
                "template": best.template,
                "engine": self._engine,
                "score": best.scores[ALL].mean,
                "resources_id": live_id,
            },
            "seed_score": None if seed is None else seed.mean,
            "rounds": rounds,
            "candidates": [c.facts() for c in self._candidates],
            "dropped": self._dropped,
        }

    async def _expand(self, ctx: Context, beam: Sequence[Candidate]) -> list[Candidate]:
        """New candidates of this round, in the order of their parents and branches."""
        jobs: list[Any] = []
        parents: list[Candidate] = []
        for place, parent in enumerate(parents_of(beam, self._settings.beam_width, ctx.random)):
            for branch in range(self._settings.branch_factor):
                # Batches are dealt here, in order, not in the order in which branches come to need them.
                jobs.append(self._rewrite(ctx.branch(f"parent-{place}-{branch}"), parent, self._train.next()))
                parents.append(parent)
        fresh: list[Candidate] = []
        for parent, template in zip(parents, await asyncio.gather(*jobs), strict=True):
            reason = "no_criticism" if template is None else refusal_of(template, parent.template, self._engine)
            if reason is None and any(c.template == template for c in self._candidates):
                reason = "duplicate"
            if reason is not None:
                self._dropped.append({"parent": parent.version, "reason": reason, "template": template})
                continue
            assert template is not None
            candidate = Candidate(f"v{len(self._candidates)}", template, parent.version)
            self._candidates.append(candidate)
            await self._publish(candidate)
            fresh.append(candidate)
        return fresh

    async def _rewrite(self, ctx: Context, parent: Candidate, batch: Sequence[Any]) -> str | None:
        """Tries a parent on a train batch, has it criticised, and rewritten; None without a criticism."""
        settings = self._settings
        results = await self._roll_out(ctx, parent, batch)
        sample = ctx.random.sample(results, min(settings.gradient_batch_size, len(results)))
        # Drawn outside the steps: a run that goes on does not call them again, and has to draw the same.
        critique, edit = ctx.random.choice(CRITIQUE), ctx.random.choice(EDIT)
        criticism = await ctx.step(f"criticise {parent.version}", self._criticise, ctx, parent, sample, critique)
        if not criticism.strip():
            return None
        messages = edit_messages(parent.template, self._engine, criticism, edit)
        answer = await ctx.step(f"rewrite {parent.version}", self._ask, messages, settings.edit_model)
        return unfenced(answer)

    async def _criticise(
        self, ctx: Context, parent: Candidate, sample: Sequence[RolloutResult], instruction: str
    ) -> str:
        if not sample:
            return ""
        told = await ctx.conversations(sample)
        experiments = [Experiment(r.input, r.status, r.reward, c) for r, c in zip(sample, told, strict=True)]
        messages = critique_messages(parent.template, experiments, self._settings.transcript_chars, instruction)
        return await self._ask(messages, self._settings.gradient_model)

    async def _ask(self, messages: Any, model: str) -> str:
        return await self._model(messages, model=model, temperature=self._settings.temperature)

    async def _measure(self, ctx: Context, candidate: Candidate, measure: str, tasks: Sequence[Any]) -> Score:
        results = await self._roll_out(ctx, candidate, tasks)
        score = score_of([r.reward for r in results], len(tasks), self._settings.missing)
        candidate.scores[measure] = score
        return score

    async def _roll_out(self, ctx: Context, candidate: Candidate, tasks: Sequence[Any]) -> list[RolloutResult]:
        ids = await ctx.enqueue(tasks, mode=MODE, resources_id=candidate.resources_id)
        return await ctx.trajectories(ids, timeout=self._settings.timeout_seconds)

    async def _publish(self, candidate: Candidate) -> None:
        candidate.resources_id = await self._ctx.publish(self._resources(candidate), name=f"{self._name}.candidates")

    def _resources(self, candidate: Candidate) -> dict[str, Resource]:
        return {**self._named, self._key: msgspec.structs.replace(self._seed, template=candidate.template)}
