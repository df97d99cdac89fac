"""`headrace gateway`: the OpenAI-compatible gateway that records every call."""

from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal

app = typer.Typer(add_completion=False)


@app.command()
def gateway(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="Address; one that others reach needs keys.")] = "127.0.0.1",
    url: Annotated[str | None, typer.Option(help="By which agents reach it, if that is another.")] = None,
    policy: Annotated[str | None, typer.Option(help="Call only engines of this policy.")] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help="Call the engine at this URL instead of those announced (repeatable).")
    ] = None,
    engine_wait: Annotated[float | None, typer.Option(min=0, help="Seconds to wait for an engine, then 503.")] = None,
    engine_timeout: Annotated[float | None, typer.Option(min=0, help="Seconds for an answer, then 504.")] = None,
    broker_wait: Annotated[float | None, typer.Option(min=0, help="Seconds for a span's ack, then 503.")] = None,
    keys: Annotated[
        Path | None, typer.Option(help="File of `headrace keys`: only who has one is let in [HEADRACE_GATEWAY_KEYS].")
    ] = None,
    token_in: Annotated[
        bool | None,
        typer.Option(help="Prompts go on from the ids of the turn before [HEADRACE_GATEWAY_TOKEN_IN]."),
    ] = None,
    worker_id: WorkerId = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Run the gateway: agents call it as they would OpenAI, and a span of each call is written before its answer.

    Example: headrace gateway --port 8080 --policy policy
    """
    from headrace.connectors.gateway.run import run_gateway
    from headrace.connectors.gateway.settings import GatewaySettings
    from headrace.streams.settings import load_settings_as

    settings = load_settings_as(
        GatewaySettings,
        bootstrap=bootstrap,
        prefix=prefix,
        registry=registry,
        gateway_engine_wait=engine_wait,
        gateway_engine_timeout=engine_timeout,
        gateway_broker_wait=broker_wait,
        gateway_keys=keys,
        gateway_token_in=token_in,
    )
    run_until_signal(
        run_gateway(
            settings,
            port=port,
            host=host,
            url=url,
            policy=policy,
            engine_urls=engine or (),
            worker_id=worker_id,
            ready=lambda url, worker: print_ready("gateway", url=url, worker_id=worker),
        )
    )
