"""`headrace workers`: which processes of a pipeline are there, and what they say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, print_table, settings_of

if TYPE_CHECKING:
    from headrace.schemas.records import WorkerState

app = typer.Typer(help="See which processes are there.", no_args_is_help=True, add_completion=False)
COUNTERS_SHOWN = 6


@app.callback()
def group() -> None:
    """See which processes are there."""


@app.command("list")
def list_(
    kind: Annotated[list[str] | None, typer.Option(help="runner, gateway, engine, ...; again for more.")] = None,
    id_contains: Annotated[str | None, typer.Option(help="A part of the id.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those that have left, or have fallen silent.")] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """List the processes that have given a sign of life within three heartbeats, with their counters.

    Example: headrace workers list --kind runner --json
    """
    import time

    import msgspec

    from headrace.schemas.records import WorkerState
    from headrace.streams.codec import Codec, DecodeError
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.reading import read_topic
    from headrace.streams.workers import GONE, MISSED_HEARTBEATS

    settings = settings_of(bootstrap, prefix, registry_url)
    codec = Codec(settings)
    topic = settings.topic("workers")
    found: dict[bytes, tuple[WorkerState, float]] = {}
    for message in read_topic(settings, topic, partition_ids(settings, topic), client_id="workers-list"):
        key = message.key() or b""
        found.pop(key, None)
        if message.value() is None:
            continue
        try:
            state = codec.decode_as(WorkerState, message.value())
        except DecodeError:
            continue
        found[key] = state, max(0.0, time.time() - message.timestamp()[1] / 1000)
    silence = settings.heartbeat.total_seconds() * MISSED_HEARTBEATS
    rows = [
        (state, silent, state.status != GONE and silent < silence)
        for state, silent in sorted(found.values(), key=lambda f: (f[0].kind, f[0].started_at, f[0].worker_id))
        if (not kind or state.kind in kind) and (id_contains is None or id_contains in state.worker_id)
    ]
    shown = [row for row in rows if all_ or row[2]]
    if json:
        for state, silent, alive in shown:
            print_json({**msgspec.to_builtins(state), "alive": alive, "silent_seconds": round(silent, 1)})
        return
    print_table(_table(shown))


def _table(rows: list[tuple[WorkerState, float, bool]]) -> Any:
    from rich.table import Table

    table = Table("worker", "kind", "status", "policy", "endpoint", "heard of", "counters")
    for state, silent, alive in rows:
        version = "" if state.loaded_version is None else f" v{state.loaded_version}"
        counted = [f"{name} {count}" for name, count in state.counters.items() if count]
        left = f", and {len(counted) - COUNTERS_SHOWN} more" if len(counted) > COUNTERS_SHOWN else ""
        table.add_row(
            state.worker_id,
            state.kind,
            state.status if alive or state.status == "gone" else "silent",
            f"{state.policy or ''}{version}",
            state.endpoint or "",
            f"{silent:.0f} s ago",
            ", ".join(counted[:COUNTERS_SHOWN]) + left,
        )
    return table
