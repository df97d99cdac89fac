"""`headrace replay`: a run trained again from the log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, settings_of
from headrace.cli.signals import stop_on_signal

if TYPE_CHECKING:
    from headrace.trainers.replay.steps import Outcome, Replayed
    from headrace.trainers.replay.survey import Survey

app = typer.Typer(add_completion=False)
EXIT_FAILED = 1
CHECKPOINTS = Path("replay-checkpoints")


@app.command()
def replay(
    run: Annotated[str, typer.Argument(help="The run of `trainer grpo`, as the topics of --prefix know it.")],
    into: Annotated[str, typer.Option(metavar="PREFIX", help="Prefix of the topics that the new run is written to.")],
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="OFFSETS", help="Where the traffic begins, in triplets (the run's first step)."),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="OFFSETS", help="Where it ends, not included (the last step).")
    ] = None,
    reward: Annotated[
        str | None,
        typer.Option(metavar="MODULE_OR_FILE:FUNCTION", help="Another reward: gets a trajectory, gives a number."),
    ] = None,
    assembler_setting: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Assemble otherwise, such as agent_match=planner (again for more)."),
    ] = None,
    run_name: Annotated[str | None, typer.Option("--run", help="Name of the new run (the same).")] = None,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Where its versions are written (replay-checkpoints/PREFIX).")
    ] = None,
    primary_key: Annotated[
        str | None, typer.Option(help="Of a reward with several dimensions: which is the final one.")
    ] = None,
    reward_timeout: Annotated[float, typer.Option(min=0.01, help="Seconds for one reward.")] = 60.0,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Train trajectories as they stand, without assembling them again.")
    ] = False,
    from_base: Annotated[
        bool, typer.Option("--from-base", help="Begin with the base weights, whatever --from is (offline).")
    ] = False,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Go on without what retention has taken.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be trained and what is missing, and write nothing.")
    ] = False,
    until: Annotated[int | None, typer.Option(min=1, metavar="STEP", help="The last step to train (all).")] = None,
    keep: Annotated[int, typer.Option(min=2, help="Newest versions that stay on disk.")] = 2,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    json_: Json = False,
) -> None:
    """Train the windows of a run again, in their order and with its settings, and compare the weights of each step.

    OFFSETS: earliest, latest, PARTITION:OFFSET,..., step:N, or a time as 2026-01-31T12:00 (UTC).

    Says first what of all that it needs is not in the log any more. With --reward or --assembler-setting the new run is
    an offline run on the same traffic, and tells how many on-policy samples it was worth. Exit code 1: a step's weights
    differ from those of the first run, though nothing was to change.

    Example: headrace replay run-1 --into replay-1 --to step:50 --reward my_rewards.py:brief
    """
    stop = stop_on_signal()
    from headrace.trainers.replay.changes import parse_changes
    from headrace.trainers.replay.offsets import parse_bound
    from headrace.trainers.replay.settings import ReplaySettings

    told = ReplaySettings(
        run_id=run,
        into_run=run_name,
        checkpoints=checkpoints or CHECKPOINTS / into,
        start=None if start is None else parse_bound(start, "--from"),
        end=None if end is None else parse_bound(end, "--to"),
        until=until,
        keep=keep,
        reward=reward,
        reward_seconds=reward_timeout,
        primary_key=primary_key,
        changes=parse_changes(assembler_setting or []),
        recorded=recorded,
        from_base=from_base,
        allow_missing=allow_missing,
    )
    settings = settings_of(bootstrap, prefix, registry)
    target = settings_of(bootstrap, into, registry)
    from headrace.trainers.replay.replay import Replay

    def surveyed(found: Survey, outcome: Outcome) -> None:
        if json_:
            print_json({"survey": found.facts(), "offline": outcome.offline, "cut": list(outcome.cut)})
        else:
            lines = found.lines()
            print("\n".join(lines if found.whole or allow_missing else lines[:1]))  # the error says the rest

    def trained(done: Replayed) -> None:
        if json_:
            print_json(_facts(done))
        else:
            print(_told(done), flush=True)

    outcome = Replay(settings, target, told).run(surveyed, trained, stop.is_set, dry_run=dry_run)
    if dry_run:
        return
    if json_:
        print_json(
            {
                "run_id": told.name,
                "into": into,
                "offline": outcome.offline,
                "steps": outcome.steps,
                "samples": outcome.samples,
                "different": outcome.different,
                "distance": outcome.distance,
                "empty": outcome.empty,
                "otherwise": dict(outcome.otherwise),
                "ess": outcome.ess,
                "stopped": outcome.stopped,
            }
        )
    else:
        print(_said(outcome))
    if outcome.stopped:
        print("headrace: stopped before the last step; begin again with another --into or --run", file=sys.stderr)
    if outcome.different or outcome.stopped:
        raise typer.Exit(EXIT_FAILED)


def _facts(done: Replayed) -> dict[str, Any]:
    own = {"ess": done.ess} if done.ess is not None else {"identical": done.identical, "distance": done.distance}
    return {"step": done.step, "version": done.version, "samples": done.samples, **own}


def _told(done: Replayed) -> str:
    if done.samples == 0:
        return f"step {done.step}: nothing of its window is trained"
    told = f"step {done.step}: {done.samples} samples"
    if done.ess is not None:
        return f"{told} worth {done.ess:.1f} on-policy ones"
    if done.identical is None:
        return f"{told}; the first run's weights are not known any more"
    if done.identical:
        return f"{told}, the same weights"
    return f"{told}, OTHER WEIGHTS" + ("" if done.distance is None else f", apart by {done.distance:.2g} at most")


def _said(outcome: Outcome) -> str:
    if outcome.offline:
        ess = outcome.ess or 0.0
        empty = f"; nothing of {len(outcome.empty)} windows was trained" if outcome.empty else ""
        return (
            f"{outcome.steps} steps of an offline run: {outcome.samples} samples worth {ess:.1f} on-policy "
            f"ones ({ess / max(1, outcome.samples):.1%}){empty}"
        )
    if outcome.different:
        why = ", ".join(f"{name} of {n}" for name, n in outcome.otherwise.items())
        apart = "" if outcome.distance is None else f"; weights differ by {outcome.distance:.2g} at most"
        return (
            f"{len(outcome.different)} of {outcome.steps} steps have other weights, the first is step "
            f"{outcome.different[0]}{apart}" + (f"; trajectories came out otherwise: {why}" if why else "")
        )
    return f"{outcome.steps} steps, and the weights are the same bit for bit"
