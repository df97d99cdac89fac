"""`headrace validate`: validation rollouts of a run's versions, on a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, print_json, print_ready, settings_of
from headrace.cli.signals import stop_on_signal

app = typer.Typer(add_completion=False)


@app.command()
def validate(
    file: Annotated[Path, typer.Argument(help="JSON Lines: an object with `input` a line, as `tasks produce` reads.")],
    run: Annotated[str, typer.Option(help="The training run whose versions are validated.")],
    every: Annotated[int, typer.Option(min=1, help="Versions from one validation to the next.")] = 10,
    version: Annotated[
        list[int] | None, typer.Option(min=0, help="Only this one, published already (may be given again).")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Rollouts a task: pass@k for k = 1, 2, 4, ... up to it.")] = 1,
    passed: Annotated[float, typer.Option(help="Least reward of a solved task, for pass@k.")] = 1.0,
    patience: Annotated[
        int | None, typer.Option(min=1, help="End after so many validations without a better one (never).")
    ] = None,
    least: Annotated[float, typer.Option(min=0, help="How much higher a mean reward has to be to be better.")] = 0.0,
    round_seconds: Annotated[float, typer.Option(min=0.1, help="Rollouts that take longer are left out.")] = 600.0,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Validate a run: its newest version, then every so many, and its last; prints one JSON line a version.

    The ready line names the version that it begins with; null waits for the first one. The tasks have the mode val and
    are trained by nobody. The command ends with the run, with --patience before, or after each --version.

    Example: headrace validate held-out.jsonl --run run-1 --every 20 --samples 4 --patience 5
    """
    stop = stop_on_signal()
    settings = settings_of(bootstrap, prefix, registry_url)
    from headrace.connectors.datasets import BadLinesError, read_task_lines
    from headrace.streams.errors import SettingsError
    from headrace.streams.producing import TaskFieldError
    from headrace.trainers.validation.scores import EarlyStop, Score
    from headrace.trainers.validation.validator import Validator

    def accept(spec: Any) -> None:
        for name in ("rollout_id", "group_id", "resources_id"):
            if getattr(spec, name) is not None:
                raise TaskFieldError(name, "cannot come again with each version; leave it out")

    try:
        with file.open("rb") as lines:
            found = read_task_lines(lines, str(file), accept)
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    if found.bad:
        raise BadLinesError(found.bad)
    if not found.specs:
        raise SettingsError(f"{file} has no tasks: an object with `input` a line")
    early = EarlyStop(patience, least)

    def told(score: Score) -> None:
        print_json({"version": score.version, **score.metrics()})

    validator = Validator(
        settings,
        [spec for _, spec in found.specs],
        run,
        every=every,
        samples=samples,
        passed=passed,
        stop_early=early,
        told=told,
        round_seconds=round_seconds,
        versions=version or None,
    )
    first = version[0] if version else None

    def ready(newest: int | None) -> None:
        print_ready("validator", run_id=run, tasks=len(found.specs), version=newest if first is None else first)

    validator.run(stop, ready)
    best = early.best
    print_json({"validated": early.seen, "best": None if best is None else best.version})
