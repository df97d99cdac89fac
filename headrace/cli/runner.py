"""`headrace runner`: runs an agent on tasks."""

import asyncio
from datetime import timedelta
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal, settings_of
from headrace.streams.runner.options import HOOK_SECONDS, Isolation, ObserverOptions, RunnerOptions
from headrace.streams.tracing.names import TracerName, names_of

app = typer.Typer(add_completion=False)


@app.command()
def runner(
    agent: Annotated[str, typer.Argument(metavar="MODULE_OR_FILE:AGENT", help="A @rollout function or an Agent.")],
    concurrency: Annotated[int, typer.Option(min=1, help="Rollouts at once.")] = 64,
    isolation: Annotated[
        Isolation, typer.Option(help="Where agents run: in this process, or each rollout in a child process.")
    ] = Isolation.THREAD,
    policy: Annotated[str, typer.Option(help="The model's name where no resources are published.")] = "policy",
    resources: Annotated[
        str | None, typer.Option(help="Name of the publications for tasks that pin none; default: the newest of all.")
    ] = None,
    gateway: Annotated[str | None, typer.Option(help="The gateway's URL [HEADRACE_GATEWAY]; default: found.")] = None,
    drain: Annotated[float, typer.Option(min=0, help="Seconds that running rollouts may take after a stop.")] = 30.0,
    tracer: Annotated[
        TracerName, typer.Option(help="Who records the spans of the agent's libraries; needs no change to the agent.")
    ] = TracerName.NONE,
    instrument: Annotated[
        str | None,
        typer.Option(metavar="NAME[,NAME]", help="Libraries to instrument: openai, litellm, langchain, ... or all."),
    ] = None,
    hook: Annotated[
        list[str] | None, typer.Option(metavar="MODULE_OR_FILE:NAME", help="A headrace.Hook; may be given again.")
    ] = None,
    hook_timeout: Annotated[
        float, typer.Option(min=0.01, help="Seconds that one callback of a hook may take.")
    ] = HOOK_SECONDS,
    static: Annotated[
        bool, typer.Option("--static", help="Keep this worker id's partitions over a restart within session_timeout.")
    ] = False,
    share_group: Annotated[
        bool, typer.Option("--share-group", help="Refused, with the reason: what the client lacks.")
    ] = False,
    worker_id: WorkerId = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Run an agent on tasks; prints one JSON line when ready.

    Example: headrace runner my_agent.py:agent --concurrency 64 --tracer otel --instrument openai
    """
    names = names_of(instrument)
    if names and tracer is TracerName.NONE:
        raise typer.BadParameter("there is nobody to record it: add --tracer otel", param_hint="--instrument")
    options = RunnerOptions(
        concurrency=concurrency,
        policy=policy,
        resources=resources,
        worker_id=worker_id,
        drain=timedelta(seconds=drain),
        isolation=isolation,
        spec=agent,
        static=static,
        share_group=share_group,
        observers=ObserverOptions(tracer, names, tuple(hook or ()), hook_timeout),
    )
    from headrace.streams.runner.loading import load_agent
    from headrace.streams.runner.runner import Runner

    settings = settings_of(bootstrap, prefix, registry, gateway=gateway)
    loaded = load_agent(agent)

    async def main() -> None:
        worker = Runner(settings, loaded, options)
        await worker.start()
        try:
            print_ready("runner", worker_id=worker.worker_id, agent=agent, concurrency=concurrency)
            await worker.run()
        except asyncio.CancelledError:
            await worker.drain()
        finally:
            await worker.close()

    run_until_signal(main())
