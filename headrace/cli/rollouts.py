"""`headrace rollouts`: how rollouts stand, as the rollouts topic or the view tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, print_table, settings_of
from headrace.cli.rollout_table import STATUSES, WATCH_SECONDS, rollout_table, watch_table
from headrace.cli.sources import AnyOf, Database, Limit, Offset, Order, since_us, source_of

if TYPE_CHECKING:
    from headrace.schemas.records import RolloutState

app = typer.Typer(help="See how rollouts stand, and cancel them.", no_args_is_help=True, add_completion=False)
Status = Annotated[list[str] | None, typer.Option("--status", help="Only these; may be given several times.")]
Some = list[str] | None


@app.callback()
def group() -> None:
    """See how rollouts stand, and cancel them."""


@app.command("list")
def list_(
    status: Status = None,
    since: Annotated[str | None, typer.Option(help="Asked for or ended since: 90s, 5m, 1h, 2d, or a time.")] = None,
    id: Annotated[Some, typer.Option("--id", help="Only these; may be given several times.")] = None,
    id_contains: Annotated[str | None, typer.Option(help="A part of the id.")] = None,
    mode: Annotated[Some, typer.Option(help="train, val or test.")] = None,
    run: Annotated[Some, typer.Option(help="Of these runs.")] = None,
    in_group: Annotated[Some, typer.Option("--group", help="Of these groups.")] = None,
    any_of: AnyOf = False,
    sort_by: Annotated[str | None, typer.Option(help="A field, from one end of its order.")] = None,
    order: Annotated[Order, typer.Option(help="Which end of --sort-by comes first.")] = Order.asc,
    limit: Limit = None,
    offset: Offset = 0,
    database: Database = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """List the newest state of every rollout, in the order in which they were asked for.

    Without --sort-by, --limit takes the newest ones and --offset leaves out newer ones, so that pages go back in time.

    Example: headrace rollouts list --status failed --since 1h --limit 20 --json
    """
    from headrace.streams.kafka.clock import wall_us
    from headrace.streams.view.selection import Condition, Selection
    from headrace.streams.view.source import CHANGED_AT, ROLLOUT_FIELDS, ROLLOUT_TIES

    _check_status(status)
    if sort_by is not None and sort_by not in ROLLOUT_FIELDS:
        raise typer.BadParameter(f"{sort_by!r}; there are {', '.join(ROLLOUT_FIELDS)}", param_hint="--sort-by")
    named = {"status": status, "rollout_id": id, "mode": mode, "run_id": run, "group_id": in_group}
    conditions = [Condition(field, "in", tuple(values)) for field, values in named.items() if values]
    if id_contains is not None:
        conditions.append(Condition("rollout_id", "contains", id_contains))
    if since is not None:
        conditions.append(Condition(CHANGED_AT, "since", since_us(since, wall_us())))
    selection = Selection(
        conditions=tuple(conditions),
        logic="or" if any_of else "and",
        sort_by=sort_by or "enqueued_at",
        ties=ROLLOUT_TIES,
        descending=sort_by is None or order is Order.desc,
        limit=limit,
        offset=offset,
    )
    settings = settings_of(bootstrap, prefix, registry_url)
    with source_of(settings, database, "rollouts-list") as source:
        found = source.rollouts(selection)
    if sort_by is None:
        found.reverse()
    if json:
        for state in found:
            print_json(_plain(state))
        return
    print_table(rollout_table(found))


@app.command()
def show(
    rollout_id: Annotated[str, typer.Argument(help="Which rollout.")],
    database: Database = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Show one rollout with its attempts; exit code 1 if the rollouts topic does not have it.

    Example: headrace rollouts show ro-1f0c2a --json
    """
    from headrace.streams.errors import HeadraceError

    settings = settings_of(bootstrap, prefix, registry_url)
    with source_of(settings, database, "rollouts-show") as source:
        state = source.rollout(rollout_id)
    if state is None:
        raise HeadraceError(
            f"no rollout {rollout_id!r} on {settings.topic('rollouts')}; `headrace rollouts list` names those "
            "that are there (a task that lifecycle has not taken is none yet)"
        )
    if json:
        print_json(_plain(state))
        return
    from rich.console import Console

    Console().print_json(data=_plain(state))


@app.command()
def cancel(
    rollout_ids: Annotated[list[str], typer.Argument(help="Which rollouts.")],
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Ask for the end of rollouts: waiting ones are cancelled by lifecycle, running ones by their runners.

    One that nobody has asked for is an error, and then nothing is cancelled.

    Example: headrace rollouts cancel ro-1f0c2a ro-77b01d
    """
    from headrace.streams.producing.cancelling import cancel_rollouts

    for outcome in cancel_rollouts(settings_of(bootstrap, prefix, registry_url), rollout_ids):
        if json:
            print_json({"rollout_id": outcome.rollout_id, "status": outcome.status, "requested": outcome.requested})
        elif outcome.requested:
            print(f"{outcome.rollout_id} is {outcome.status or 'not taken yet'}: asked to cancel")
        else:
            print(f"{outcome.rollout_id} is {outcome.status}: {outcome.reason}")


@app.command()
def watch(
    status: Status = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Follow rollouts until Ctrl-C: every new state a line, or a live table on a terminal.

    Example: headrace rollouts watch --json
    """
    import signal
    import sys
    from queue import Empty, SimpleQueue

    from headrace.schemas.records import Record, RolloutState
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.follower import TopicFollower
    from headrace.streams.kafka.messages import Message

    wanted = _check_status(status)
    settings = settings_of(bootstrap, prefix, registry_url)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    changes: SimpleQueue[RolloutState] = SimpleQueue()

    def changed(record: Record, message: Message) -> None:
        if isinstance(record, RolloutState) and (not wanted or record.status in wanted):
            changes.put(record)

    partitions = partition_ids(settings, settings.topic("rollouts"))
    follower = TopicFollower(settings, "rollouts", changed, client_id="rollouts-watch", partitions=partitions)
    try:
        if sys.stdout.isatty() and not json:
            follower.start()
            watch_table(changes)
            return
        follower.start_later()
        while True:
            try:
                state = changes.get(timeout=WATCH_SECONDS)
            except Empty:
                continue
            if json:
                print_json(_plain(state))
            else:
                print(f"{state.rollout_id} {state.status}", flush=True)
    except KeyboardInterrupt:
        return
    finally:
        follower.close()


def _check_status(status: list[str] | None) -> set[str]:
    unknown = [s for s in status or [] if s not in STATUSES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r}; there are {', '.join(STATUSES)}", param_hint="--status")
    return set(status or [])


def _plain(state: RolloutState) -> dict[str, Any]:
    import msgspec

    return msgspec.to_builtins(state)
