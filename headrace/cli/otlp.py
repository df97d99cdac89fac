"""`headrace otlp`: takes the traces of instrumented agents."""

from typing import Annotated

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal

app = typer.Typer(add_completion=False)


@app.command()
def otlp(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 4318 is OTLP's own, 0 takes a free one.")
    ] = 4318,
    broker_wait: Annotated[
        float | None, typer.Option(min=0, help="Seconds for the brokers' acknowledgement, then 503.")
    ] = None,
    worker_id: WorkerId = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
) -> None:
    """Take traces by OTLP/HTTP at /v1/traces: point any OpenTelemetry exporter here (protobuf or JSON, no gRPC).

    Example: headrace otlp --port 4318
    """
    from headrace.connectors.otlp.run import run_otlp
    from headrace.connectors.otlp.settings import OtlpSettings
    from headrace.streams.settings import load_settings_as

    settings = load_settings_as(
        OtlpSettings, bootstrap=bootstrap, prefix=prefix, registry=registry, otlp_broker_wait=broker_wait
    )
    run_until_signal(
        run_otlp(
            settings,
            port=port,
            worker_id=worker_id,
            ready=lambda url, worker: print_ready("otlp", url=url, worker_id=worker),
        )
    )
