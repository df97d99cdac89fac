"""`headrace trainer diff`: where two runs differ."""

from typing import Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, settings_of

SAID = {
    "only_first": "{} samples that only the first run has trained",
    "only_second": "{} samples that only the other has",
    "rewards": "rewards of {} samples",
    "call_rewards": "calls' rewards of {} samples",
    "tokens": "tokens of {} samples",
    "order": "order of the samples",
}


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
    from headrace.trainers.replay.beginning import history_of
    from headrace.trainers.replay.diff import manifest_differences, positions_of, step_differences
    from headrace.trainers.replay.distance import distance
    from headrace.trainers.replay.facts import read_facts

    first, second = history_of(settings, run), history_of(there, other)
    assert first.manifest is not None
    assert second.manifest is not None
    lines = manifest_differences(first.manifest, second.manifest)
    facts = None
    if settings.prefix != there.prefix:  # their positions are places in different topics
        facts = read_facts(settings, positions_of(first)), read_facts(there, positions_of(second))
    steps = list(step_differences(first, second, facts, distance))
    differing = [s for s in steps if s["weights"] is False or s["only"]]
    if json_:
        print_json({"manifest": lines, "steps": steps})
    else:
        for line in lines:
            print(line)
        for step in steps:
            if said := _said(step):
                print(f"step {step['number']}: {said}")
        print(f"{len(steps)} steps, {len(differing)} with other weights or missing in one of the runs")
    if differing:
        raise typer.Exit(1)


def _said(step: dict[str, Any]) -> str:
    if step["only"]:
        return "only one of the runs has it"
    how: dict[str, int] = step["trajectories"]
    told = [SAID[name].format(count) for name, count in how.items()]
    if step["samples"] is False and not how:
        told.append("samples")
    if step["weights"] is False:
        apart: float | None = step["distance"]
        told.append("weights" if apart is None else f"weights by {apart:.2g} at most")
    if step["samples"] is None or step["weights"] is None:
        unknown = [name for name in ("samples", "weights") if step[name] is None]
        told.append(f"{' and '.join(unknown)} not known any more")
    return ", ".join(told + step["metrics"])
