"""`headrace sync`: loads published weights into the engines."""

from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal, settings_of

app = typer.Typer(add_completion=False)


@app.command()
def sync(
    policy: Annotated[str | None, typer.Option(help="Only engines of this policy.")] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="The engine at this URL instead of those announced (repeatable).")
    ] = None,
    worker_id: WorkerId = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Load each newly published version of the weights into every engine that serves its policy.

    Example: headrace sync --policy policy
    """
    from headrace.connectors.sync.run import run_sync

    run_until_signal(
        run_sync(
            settings_of(bootstrap, prefix, registry),
            policy=policy,
            engine_urls=engine or (),
            worker_id=worker_id,
            ready=lambda worker: print_ready("sync", worker_id=worker),
        )
    )
