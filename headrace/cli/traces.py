"""`headrace traces`: what rollouts did, span by span."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, print_table, settings_of
from headrace.cli.sources import AnyOf, Database, Limit, Offset, Order, since_us, source_of
from headrace.cli.trainer_sft import export

if TYPE_CHECKING:
    from headrace.streams.view.source import Fields

app = typer.Typer(help="See what rollouts did, span by span.", no_args_is_help=True, add_completion=False)
RolloutId = Annotated[str, typer.Argument(help="Which rollout.")]
TAIL_SECONDS = 0.5


@app.callback()
def group() -> None:
    """See what rollouts did, span by span."""


@app.command()
def show(
    rollout_id: RolloutId,
    database: Database = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Show a rollout as a tree: attempts, spans below each other, token counts, rewards, durations.

    Example: headrace traces show ro-1f0c2a
    """
    from headrace.streams.view.trace import trace_of

    settings = settings_of(bootstrap, prefix, registry_url)
    with source_of(settings, database, "traces-show") as source:
        state = source.rollout(rollout_id)
        spans, rewards = source.spans(rollout_id), source.rewards(rollout_id)
        trajectory = source.trajectory(rollout_id, state.group_id if state is not None else None)
    if state is None and not spans:
        raise _unknown(rollout_id)
    trace = trace_of(rollout_id, state, spans, rewards, trajectory)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(trace))
        return
    from headrace.cli.trace_tree import trace_tree

    print_table(trace_tree(trace))


@app.command()
def spans(
    rollout_id: RolloutId,
    attempt: Annotated[str | None, typer.Option(help="Of this attempt; `latest` is the newest.")] = None,
    name: Annotated[str | None, typer.Option(help="Of this name.")] = None,
    name_contains: Annotated[str | None, typer.Option(help="A part of the name.")] = None,
    trace_id: Annotated[str | None, typer.Option(help="Of this trace.")] = None,
    trace_id_contains: Annotated[str | None, typer.Option(help="A part of the trace's id.")] = None,
    span_id: Annotated[str | None, typer.Option(help="This span.")] = None,
    span_id_contains: Annotated[str | None, typer.Option(help="A part of the span's id.")] = None,
    parent_id: Annotated[str | None, typer.Option(help="Right below this span.")] = None,
    parent_id_contains: Annotated[str | None, typer.Option(help="A part of the parent's id.")] = None,
    any_of: AnyOf = False,
    sort_by: Annotated[str, typer.Option(help="A column of the view's spans.")] = "log_offset",
    order: Annotated[Order, typer.Option(help="Which end comes first.")] = Order.asc,
    limit: Limit = None,
    offset: Offset = 0,
    database: Database = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """List the spans of a rollout, in the log's order.

    Example: headrace traces spans ro-1f0c2a --attempt latest --name-contains chat --json
    """
    from headrace.streams.view import tables
    from headrace.streams.view.selection import Condition, Selection, select_from
    from headrace.streams.view.source import LATEST, SPAN_TIES, latest_attempt, span_field

    columns = [c.name for c in tables.spans.columns]
    if sort_by not in columns:
        raise typer.BadParameter(f"{sort_by!r}; there are {', '.join(columns)}", param_hint="--sort-by")
    same = {"name": name, "trace_id": trace_id, "span_id": span_id, "parent_id": parent_id}
    part = {
        "name": name_contains,
        "trace_id": trace_id_contains,
        "span_id": span_id_contains,
        "parent_id": parent_id_contains,
    }
    conditions = [Condition(field, "in", (value,)) for field, value in same.items() if value is not None]
    conditions += [Condition(field, "contains", value) for field, value in part.items() if value is not None]
    selection = Selection(
        conditions=tuple(conditions),
        logic="or" if any_of else "and",
        sort_by=sort_by,
        ties=SPAN_TIES,
        descending=order is Order.desc,
        limit=limit,
        offset=offset,
    )
    with source_of(settings_of(bootstrap, prefix, registry_url), database, "traces-spans") as source:
        state = source.rollout(rollout_id)
        found = source.spans(rollout_id)
    if state is None and not found:
        raise _unknown(rollout_id)
    if attempt is not None:
        attempt_id = latest_attempt(state, found) if attempt == LATEST else attempt
        found = [span for span in found if span["attempt_id"] == attempt_id]
    _print_spans(select_from(found, selection, span_field), json)


@app.command()
def tail(
    rollout: Annotated[list[str] | None, typer.Option(help="Only of these; may be given several times.")] = None,
    agent: Annotated[str | None, typer.Option(help="Regular expression, searched in the agent's name.")] = None,
    since: Annotated[str, typer.Option(help="Begin so far back: 90s, 5m, 1h, 2d, or a time.")] = "0s",
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Follow spans as they come, until Ctrl-C.

    Example: headrace traces tail --since 5m --agent 'planner|writer'
    """
    import re
    import signal
    from queue import Empty, SimpleQueue

    from headrace.streams.kafka.clock import wall_us
    from headrace.streams.view.tail import follow_spans

    try:
        re.compile(agent or "")
    except re.error as error:
        raise typer.BadParameter(f"{agent!r} is no regular expression: {error}", param_hint="--agent") from error
    settings = settings_of(bootstrap, prefix, registry_url)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    came: SimpleQueue[Fields] = SimpleQueue()
    since_ms = since_us(since, wall_us()) // 1000
    follower = follow_spans(settings, came.put, rollout_ids=rollout or (), agent=agent, since_ms=since_ms)
    try:
        follower.start_later()
        while True:
            try:
                span = came.get(timeout=TAIL_SECONDS)
            except Empty:
                continue
            _print_spans([span], json)
    except KeyboardInterrupt:
        return
    finally:
        follower.close()


@app.command()
def assemble(
    case: Annotated[Path, typer.Argument(help="Directory with otlp.jsonl, events.jsonl and case.json.")],
    json: Json = False,
) -> None:
    """Replay recorded traces, without a broker, and print the trajectories they make.

    Example: headrace traces assemble tests/cases/cut-stream --json
    """
    from headrace.cli.answers import replay_directory

    found = replay_directory(case)
    if json:
        print_json(found)
        return
    for trajectory in found["trajectories"]:
        typer.echo(
            f"{trajectory['rollout_id']}  {trajectory['status']}  triplets {len(trajectory['triplets'])}  "
            f"reward {trajectory['final_reward']}  dropped {trajectory['dropped']}"
        )
    typer.echo(f"refused {found['rejected']}  dead letters {found['dead_letters']}  counters {found['counters']}")


app.command()(export)


def _print_spans(found: list[Fields], json: bool) -> None:
    from headrace.cli.trace_tree import span_line

    for span in found:
        if json:
            print_json(span)
        else:
            print(span_line(span), flush=True)


def _unknown(rollout_id: str) -> Exception:
    from headrace.streams.errors import HeadraceError

    return HeadraceError(
        f"nothing is known of rollout {rollout_id!r}; `headrace rollouts list` names those that are there"
    )
