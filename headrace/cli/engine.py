"""`headrace engine`: OpenAI-compatible servers that load new weights while they serve."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal, settings_of

if TYPE_CHECKING:
    from headrace.streams.settings import Settings

app = typer.Typer(
    help="Serve a model; new weights are loaded while it serves.", no_args_is_help=True, add_completion=False
)


class InFlight(StrEnum):
    """What becomes of unfinished requests when weights are swapped."""

    wait = "wait"
    keep = "keep"
    abort = "abort"


Model = Annotated[Path, typer.Argument(help="A Hugging Face causal language model directory.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")]
Policy = Annotated[str, typer.Option(help="Policy served; also the model's name in requests.")]
Seed = Annotated[int, typer.Option(help="Seed of requests that give none.")]
AtSwap = Annotated[
    InFlight, typer.Option(help="Unfinished requests at a swap: finish first, go on with the new weights, or end.")
]
WaitModel = Annotated[float, typer.Option(min=0, help="Seconds to wait for MODEL to appear.")]
Announce = Annotated[
    bool, typer.Option("--announce/--no-announce", help="Be found by gateways through Kafka, or only by URL.")
]


@app.callback()
def group() -> None:
    """Serve a model; new weights are loaded while it serves."""


@app.command()
def builtin(
    model: Model,
    port: Port = 0,
    policy: Policy = "policy",
    seed: Seed = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    max_batch: Annotated[int, typer.Option(min=1, help="Choices generated at the same time.")] = 128,
    wait_ms: Annotated[float, typer.Option(min=0, help="How long an idle engine gathers a burst of requests.")] = 4.0,
    in_flight: AtSwap = InFlight.wait,
    wait_model: WaitModel = 0.0,
    announce: Announce = True,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
) -> None:
    """Serve with the small engine on torch, for laptops and CI; prints one JSON line when ready.

    Example: headrace engine builtin ./model --port 8001 --policy policy
    """
    settings = _settings(announce, bootstrap, prefix, registry)
    name = _name(worker_id)
    from headrace.connectors.engine.waiting import await_model
    from headrace.connectors.serving import bind

    if wait_model == 0:  # torch takes seconds to import: what is wrong is said before
        await_model(model, 0)
    bind(port).close()
    from headrace.connectors.engine.run import EngineOptions, run_builtin

    options = EngineOptions(model, port, policy, seed, threads, max_batch, wait_ms, in_flight.value, wait_model)
    run_until_signal(run_builtin(options, settings, name, lambda url: _ready(name, url, policy)))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def vllm(
    context: typer.Context,
    model: Model,
    port: Port = 0,
    policy: Policy = "policy",
    seed: Seed = 0,
    in_flight: AtSwap = InFlight.wait,
    wait_model: WaitModel = 0.0,
    start_seconds: Annotated[float, typer.Option(min=1, help="How long the server may take to start.")] = 300.0,
    announce: Announce = True,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
) -> None:
    """Serve with vLLM from its own environment (`make setup-vllm`); prints one JSON line when ready.

    Flags that are not listed go to vLLM. HEADRACE_VLLM_PYTHON names another environment's interpreter.

    Example: headrace engine vllm ./model --port 8001 --max-model-len 1024
    """
    settings = _settings(announce, bootstrap, prefix, registry)
    name = _name(worker_id)
    from headrace.connectors.vllm.command import VllmOptions
    from headrace.connectors.vllm.run import run_vllm

    extra = tuple(context.args)
    options = VllmOptions(model, port, policy, seed, in_flight.value, wait_model, start_seconds, extra)
    run_until_signal(run_vllm(options, settings, name, lambda url: _ready(name, url, policy)))


def _settings(announce: bool, bootstrap: str | None, prefix: str | None, registry: str | None) -> Settings | None:
    return settings_of(bootstrap, prefix, registry) if announce else None


def _name(worker_id: str | None) -> str:
    from headrace.streams.workers import ENGINE, new_worker_id

    return worker_id or new_worker_id(ENGINE)


def _ready(worker_id: str, url: str, policy: str) -> None:
    print_ready("engine", worker_id=worker_id, endpoint=url, policy=policy, loaded_version=0)
