"""`headrace trainer diff`: where two runs differ."""

from typing import Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, settings_of


def diff(
    run: Annotated[str, typer.Argument(help="A run.")],
    other: Annotated[str, typer.Argument(help="Another, or the same under --other-prefix.")],
    other_prefix: Annotated[
        str | None, typer.Option(help="Prefix of the other run's topics (that of the first).")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json_: Json = False,
) -> None:
    """Say where two runs differ: settings, versions and base weights; then samples, weights and metrics step by step.

    Exit code 1: their weights differ in a step, or a step is missing in one of them.

    Example: headrace trainer diff run-1 run-1 --other-prefix replay-1
    """
    settings = settings_of(bootstrap, prefix, registry_url)
    there = settings_of(bootstrap, other_prefix or prefix, registry_url)
    from headrace.streams.errors import SettingsError
    from headrace.trainers.history import History, read_history
    from headrace.trainers.replay.diff import manifest_differences, step_differences

    def history_of(where: Any, run_id: str) -> History:
        manifest = read_history(where, run_id, "").manifest
        if manifest is None:
            raise SettingsError(f"the log knows no run {run_id} under prefix {where.prefix!r}")
        return read_history(where, run_id, manifest.policy)

    first, second = history_of(settings, run), history_of(there, other)
    assert first.manifest is not None
    assert second.manifest is not None
    lines = manifest_differences(first.manifest, second.manifest)
    steps = list(step_differences(first, second))
    differing = [s for s in steps if s["weights"] is False or s["samples"] is None]
    if json_:
        print_json({"manifest": lines, "steps": steps})
    else:
        for line in lines:
            print(line)
        for step in steps:
            told = [name for name in ("samples", "weights") if step[name] is False] + step["metrics"]
            if step["samples"] is None:
                print(f"step {step['number']}: only one of the runs has it")
            elif told:
                print(f"step {step['number']}: {', '.join(told)}")
        print(f"{len(steps)} steps, {len(differing)} with other weights or missing in one of the runs")
    if differing:
        raise typer.Exit(1)
