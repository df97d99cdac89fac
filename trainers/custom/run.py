"""A run of a custom algorithm: from the top, with all that it has done before read back."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from platform import python_version
from typing import Any

from headrace.schemas.records import JournalEntry, RunManifest
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clock import wall_us
from headrace.streams.settings import Settings
from headrace.trainers.custom import journal as j
from headrace.trainers.custom.context import Context
from headrace.trainers.custom.decorator import CustomAlgorithm, Inputs
from headrace.trainers.custom.journal import json_of
from headrace.trainers.custom.pipeline import Pipeline

log = logging.getLogger(__name__)

Joined = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, kw_only=True)
class CustomRun:
    """One run.

    Attributes:
        inputs: what the algorithm is called with; a run goes on with the same only.
        seed: of `ctx.random`.
    """

    run_id: str
    inputs: Inputs = field(default_factory=lambda: Inputs(datasets={}, arguments={}))
    seed: int = 0

    def __post_init__(self) -> None:
        name = self.run_id
        if not name or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name) or name[0] == ".":
            raise SettingsError(f"--run {name!r}: use letters, digits, '.', '_' and '-', not '.' at the start")


async def run_algorithm(
    settings: Settings, algorithm: CustomAlgorithm, run: CustomRun, joined: Joined = lambda facts: None
) -> Any:
    """Runs to the end; what the algorithm returned, as JSON gives it back. A run that has ended is not run again.

    Args:
        joined: called with facts for the ready line.

    Raises:
        FencedError: another process has taken over the run.
        BrokerUnavailableError: no broker answers at the start; later ones are waited for.
        SettingsError: the run was begun by another algorithm, or with other inputs.
        NondeterminismError: it does not go as its journal says.
        Exception: whatever the algorithm raises; the run goes on from there when it is started again.
    """
    algorithm.check(run.inputs)
    # Says at once that there is no broker, or no topic.
    await asyncio.to_thread(partition_ids, settings, settings.topic("training"))
    pipeline = Pipeline(settings, run.run_id)
    try:
        await pipeline.join()
        manifest = _manifest(algorithm, run)
        if pipeline.log.manifest is None:
            await pipeline.begin(manifest)
        else:
            _check(pipeline.log.manifest, manifest)
        pipeline.follow()
        journal = pipeline.log.journal
        joined({"run_id": run.run_id, "algorithm": algorithm.name, "replayed": len(journal)})
        ended = journal.returned
        if ended is not None:
            log.info("run %s has ended before; begin a new one with another --run", run.run_id)
            return json.loads(ended.result)
        ctx = Context(run.run_id, journal, pipeline, seed=run.seed)
        result = await algorithm.run(ctx, run.inputs)
        journal.check_end()
        entry = JournalEntry(
            run_id=run.run_id,
            place=j.END,
            kind=j.RETURNED,
            result=json_of(result, algorithm.name),
            at=wall_us(),
        )
        return json.loads((await pipeline.commit(entry, ())).result)
    finally:
        await pipeline.close()


def _manifest(algorithm: CustomAlgorithm, run: CustomRun) -> RunManifest:
    settings = {
        "arguments": run.inputs.arguments,
        "datasets": {name: _sha256(values) for name, values in run.inputs.datasets.items()},
    }
    return RunManifest(
        run_id=run.run_id,
        algorithm=algorithm.name,
        policy="",  # it trains no weights
        settings=json.dumps(settings, sort_keys=True),
        seed=run.seed,
        versions={"python": python_version(), "headrace": version("headrace")},
        created_at=wall_us(),
    )


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _check(before: RunManifest, now: RunManifest) -> None:
    former, wanted = json.loads(before.settings), json.loads(now.settings)
    changed = [f"{name} was {a!r}, is {b!r}" for name, a, b in _facts(before, now) if a != b]
    changed += [
        f"{part}.{name} has changed"
        for part in wanted
        for name in sorted({*former.get(part, {}), *wanted[part]})
        if former.get(part, {}).get(name) != wanted[part].get(name)
    ]
    if changed:
        raise SettingsError(
            f"run {now.run_id} was begun otherwise: {'; '.join(changed)}. Give it the same again, or begin a new run "
            "with another --run"
        )


def _facts(before: RunManifest, now: RunManifest) -> list[tuple[str, Any, Any]]:
    return [("the algorithm", before.algorithm, now.algorithm), ("--seed", before.seed, now.seed)]
