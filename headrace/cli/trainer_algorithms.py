"""`headrace trainer custom`, `apo` and `baseline`: algorithms that ask for rollouts and publish resources."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, print_json, print_ready, run_until_signal, settings_of

if TYPE_CHECKING:
    from headrace.streams.settings import Settings
    from headrace.trainers.custom.decorator import CustomAlgorithm
    from headrace.trainers.custom.run import CustomRun

Run = Annotated[str, typer.Option(help="Name of the run; the same again goes on where it stopped.")]
Seed = Annotated[int, typer.Option(help="Seed of the run's random numbers.")]


def custom(
    algorithm: Annotated[str, typer.Argument(metavar="MODULE_OR_FILE:NAME", help="An @algorithm coroutine.")],
    run: Run,
    train: Annotated[Path | None, typer.Option(help="Tasks as JSON Lines, for `train_dataset`.")] = None,
    val: Annotated[Path | None, typer.Option(help="Tasks as JSON Lines, for `val_dataset`.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option(metavar="NAME=JSON", help="Another parameter; may be given several times.")
    ] = None,
    seed: Seed = 0,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Run an algorithm of your own to its end; prints one JSON line when it has joined, and one with the result.

    Killed at any point and started again, it runs from the top and reads back what it has done: no task is enqueued
    twice, and nothing is published twice. Exit code 78: another process has taken over the run; do not restart this
    one.

    Example: headrace trainer custom best_prompt.py:find_best_prompt --run prompts-1 --train tasks.jsonl
    """
    from headrace.trainers.custom.decorator import Inputs
    from headrace.trainers.custom.loading import load_algorithm
    from headrace.trainers.custom.run import CustomRun

    datasets = {"train_dataset": train, "val_dataset": val}
    inputs = Inputs(
        datasets={name: read_inputs(file) for name, file in datasets.items() if file is not None},
        arguments=dict(_argument(text) for text in arg or ()),
    )
    loaded = load_algorithm(algorithm)
    _run(settings_of(bootstrap, prefix, registry_url), loaded, CustomRun(run_id=run, inputs=inputs, seed=seed))


def read_inputs(file: Path) -> list[Any]:
    """The inputs of a JSON Lines file of tasks.

    Raises:
        BadLinesError: a line makes no task.
        SettingsError: there is no such file, or no task in it.
    """
    from headrace.connectors.datasets import BadLinesError, read_task_lines
    from headrace.streams.errors import SettingsError

    try:
        with file.open("rb") as lines:
            found = read_task_lines(lines, str(file))
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    if found.bad:
        raise BadLinesError(found.bad)
    if not found.specs:
        raise SettingsError(f"{file} has no tasks: an object with `input` a line")
    for number, spec in found.specs:
        others = ("rollout_id", "group_id", "resources_id", "config")
        given = [name for name in others if getattr(spec, name) is not None]
        if given:
            raise SettingsError(f"{file}:{number}: {given[0]}: the algorithm decides it; leave it out of its dataset")
    return [json_module.loads(spec.input) for _, spec in found.specs]


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise typer.BadParameter(f"{text!r}: write NAME=JSON, such as rounds=3", param_hint="--arg")
    try:
        return name, json_module.loads(value)
    except ValueError:
        raise typer.BadParameter(
            f"{name}: {value!r} is no JSON; a text needs quotes, such as {name}='\"{value}\"'", param_hint="--arg"
        ) from None


def _run(settings: Settings, algorithm: CustomAlgorithm, run: CustomRun) -> Any:
    """Runs to the end, or until told to stop; what it returned, None if it was stopped."""
    from headrace.trainers.custom.run import run_algorithm

    results: list[Any] = []

    async def main() -> None:
        results.append(await run_algorithm(settings, algorithm, run, lambda facts: print_ready("trainer", **facts)))
        print_json({"run_id": run.run_id, "result": results[0]})

    run_until_signal(main())
    return results[0] if results else None


def baseline(
    tasks: Annotated[Path, typer.Argument(help="Tasks as JSON Lines: an object with `input` a line.")],
    run: Run,
    samples: Annotated[int, typer.Option(min=1, help="Rollouts a task; pass@k needs k of them.")] = 1,
    passing: Annotated[float, typer.Option(help="Least reward of a rollout that passes.")] = 1.0,
    mode: Annotated[str, typer.Option(help="Of the tasks: val or test.")] = "val",
    resources_id: Annotated[
        str | None, typer.Option(help="Evaluate this publication; default: the newest when each rollout starts.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, help="Seconds to wait for all of them; those left out count as missing.")
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Evaluate tasks on a running pipeline, without training: mean reward, pass@k and how rollouts ended.

    Example: headrace trainer baseline val.jsonl --run before-training --samples 4
    """
    from headrace.trainers.baseline.algorithm import baseline as algorithm
    from headrace.trainers.custom.decorator import Inputs
    from headrace.trainers.custom.run import CustomRun

    arguments: dict[str, Any] = {
        "samples": samples,
        "passing": passing,
        "mode": mode,
        "resources_id": resources_id,
        "timeout": timeout,
    }
    inputs = Inputs(datasets={"val_dataset": read_inputs(tasks)}, arguments=arguments)
    _run(settings_of(bootstrap, prefix, registry_url), algorithm, CustomRun(run_id=run, inputs=inputs))


def fast(
    agent: Annotated[str, typer.Argument(metavar="MODULE_OR_FILE:AGENT", help="A @rollout function or an Agent.")],
    tasks: Annotated[Path, typer.Argument(help="Tasks as JSON Lines: an object with `input` a line.")],
    samples: Annotated[int, typer.Option(min=1, help="Rollouts a task.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many tasks, from the first on.")] = None,
    passing: Annotated[float, typer.Option(help="Least reward of a rollout that passes.")] = 1.0,
    mode: Annotated[str, typer.Option(help="Of the rollouts: train, val or test.")] = "val",
    prompt: Annotated[Path | None, typer.Option(help="File of the `prompt_template`.")] = None,
    engine: Annotated[str, typer.Option(help="Of the prompt: f-string, jinja or poml.")] = "f-string",
    base_url: Annotated[str | None, typer.Option(help="OpenAI-compatible URL of the `llm`.")] = None,
    model: Annotated[str, typer.Option(help="Its model.")] = "policy",
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds its key.")] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Rollouts at once.")] = 8,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds of a rollout.")] = None,
) -> None:
    """Try an agent on tasks in this process, without a broker: a line a rollout as it ends, and the figures at the end.

    Exit code 1 where a rollout has failed.

    Example: headrace trainer fast my_agent.py:agent tasks.jsonl --limit 5 --base-url http://127.0.0.1:8000/v1
    """
    import asyncio

    from headrace.streams.agent.resources import LLM, PromptTemplate, Resource
    from headrace.streams.runner.loading import load_agent
    from headrace.trainers.baseline.fast import FastResult, run_fast
    from headrace.trainers.baseline.report import Sample, default_ks, report_of

    resources: dict[str, Resource] = {}
    if base_url is not None:
        resources["llm"] = LLM(base_url, model, api_key_env=api_key_env)
    if prompt is not None:
        resources["prompt_template"] = PromptTemplate(_text_of(prompt), engine)
    inputs = read_inputs(tasks)[:limit]
    loaded = load_agent(agent)

    async def main() -> list[FastResult]:
        found: list[FastResult] = []
        async for result in run_fast(
            loaded, inputs, resources, samples=samples, mode=mode, concurrency=concurrency, timeout=timeout
        ):
            error = None if result.error is None else f"{result.error.type}: {result.error.message}"
            if error is not None and "ResourceError" in error:
                error = f"{error}; here --prompt and --base-url give resources"
            print_json(
                {
                    "task": result.task,
                    "sample": result.sample,
                    "status": result.status,
                    "reward": result.reward,
                    "rewards": dict(result.rewards),
                    "spans": list(result.spans),
                    "error": error,
                }
            )
            found.append(result)
        return found

    found = sorted(asyncio.run(main()), key=lambda r: (r.task, r.sample))
    groups = [[Sample(r.status, r.reward) for r in found if r.task == number] for number in range(len(inputs))]
    print_json(report_of(groups, passing=passing, ks=default_ks(samples)))
    if any(result.error is not None for result in found):
        raise typer.Exit(1)


def apo(
    train: Annotated[Path, typer.Option(help="Tasks as JSON Lines that prompts are criticised on.")],
    val: Annotated[Path, typer.Option(help="Tasks as JSON Lines that prompts are compared on.")],
    run: Run,
    name: Annotated[str, typer.Option(help="Of the publications that agents use; the chosen prompt is the next.")] = (
        "prompt"
    ),
    prompt: Annotated[Path | None, typer.Option(help="File of the first prompt; default: what is published.")] = None,
    engine: Annotated[str, typer.Option(help="Of that prompt: f-string, jinja or poml.")] = "f-string",
    base_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible URL of both models; default: OpenAI's, with OPENAI_API_KEY.")
    ] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the key.")] = None,
    gradient_model: Annotated[str, typer.Option(help="Model that criticises.")] = "gpt-5-mini",
    edit_model: Annotated[str, typer.Option(help="Model that rewrites.")] = "gpt-4.1-mini",
    model_function: Annotated[
        str | None,
        typer.Option(metavar="MODULE_OR_FILE:NAME", help="Instead of a URL: async f(messages, *, model, temperature)."),
    ] = None,
    temperature: Annotated[float, typer.Option(min=0, help="Of both models.")] = 1.0,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the search.")] = 3,
    beam_width: Annotated[int, typer.Option(min=1, help="Prompts that a round leaves.")] = 4,
    branch_factor: Annotated[int, typer.Option(min=1, help="Rewrites a prompt of the beam.")] = 4,
    gradient_batch: Annotated[int, typer.Option(min=1, help="Rollouts that a criticism looks at.")] = 4,
    train_batch: Annotated[int, typer.Option(min=1, help="Train tasks that a prompt is tried on before it.")] = 16,
    val_batch: Annotated[int, typer.Option(min=1, help="Validation tasks that a round compares prompts on.")] = 16,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds until rollouts of a batch count as missing.")] = (
        3600.0
    ),
    missing: Annotated[str, typer.Option(help="What a rollout without a reward counts as: zero, or leave_out.")] = (
        "zero"
    ),
    initial_validation: Annotated[bool, typer.Option(help="Score the first prompt on all validation tasks.")] = True,
    report: Annotated[Path | None, typer.Option(help="Write the report to this file too.")] = None,
    seed: Seed = 0,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
) -> None:
    """Search for a better prompt (APO): criticise, rewrite, compare in real rollouts; the best one is published.

    Prints one JSON line when it has joined, and one with the report. Killed and started again it goes on.

    Example: headrace trainer apo --run prompt-1 --train train.jsonl --val val.jsonl --prompt prompt.txt
    """
    import os

    from headrace.streams.errors import SettingsError
    from headrace.streams.runner.loading import load_object
    from headrace.trainers.apo.algorithm import apo_algorithm, apo_inputs
    from headrace.trainers.apo.model import OpenAIModel
    from headrace.trainers.apo.settings import ApoSettings
    from headrace.trainers.custom.run import CustomRun

    settings = ApoSettings(
        gradient_model=gradient_model,
        edit_model=edit_model,
        temperature=temperature,
        gradient_batch_size=gradient_batch,
        train_batch_size=train_batch,
        val_batch_size=val_batch,
        beam_width=beam_width,
        branch_factor=branch_factor,
        rounds=rounds,
        timeout_seconds=timeout,
        missing=missing,
        initial_validation=initial_validation,
    )
    if api_key_env is not None and api_key_env not in os.environ:
        raise SettingsError(f"--api-key-env {api_key_env}: it is not set here")
    if model_function is None and base_url is None and api_key_env is None and "OPENAI_API_KEY" not in os.environ:
        raise SettingsError("give --base-url of an OpenAI-compatible server, or set OPENAI_API_KEY")
    model = (
        OpenAIModel(base_url, os.environ.get(api_key_env) if api_key_env else None)
        if model_function is None
        else load_object(model_function, "my_model.py:answer")
    )
    inputs = apo_inputs(
        settings,
        train=read_inputs(train),
        val=read_inputs(val),
        name=name,
        prompt=None if prompt is None else _text_of(prompt),
        engine=engine,
    )
    result = _run(
        settings_of(bootstrap, prefix, registry_url),
        apo_algorithm(model),
        CustomRun(run_id=run, inputs=inputs, seed=seed),
    )
    if report is not None and result is not None:
        report.write_text(json_module.dumps(result, ensure_ascii=False, indent=2) + "\n")


def _text_of(file: Path) -> str:
    from headrace.streams.errors import SettingsError

    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: {error}") from error
