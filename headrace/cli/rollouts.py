"""`headrace rollouts`: how rollouts stand, as the rollouts topic tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, print_table, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.schemas.records import RolloutState
    from headrace.streams.settings import Settings

app = typer.Typer(help="See how rollouts stand.", no_args_is_help=True, add_completion=False)
Status = Annotated[list[str] | None, typer.Option("--status", help="Only these; may be given several times.")]
STATUSES = ("queuing", "preparing", "running", "succeeded", "failed", "requeuing", "cancelled")
WATCH_SECONDS = 0.5
WATCHED = 15
"""Rollouts that the live table shows, the last that changed."""


@app.callback()
def group() -> None:
    """See how rollouts stand."""


@app.command("list")
def list_(
    status: Status = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The newest so many.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """List the newest state of every rollout, in the order in which they were asked for.

    Example: headrace rollouts list --status failed --limit 20 --json
    """
    wanted = _checked(status)
    found = [s for s in _newest(settings_of(bootstrap, prefix, registry_url)) if not wanted or s.status in wanted]
    found.sort(key=lambda s: (s.enqueued_at, s.rollout_id))
    if limit is not None:
        found = found[-limit:]
    if json:
        for state in found:
            print_json(_plain(state))
        return
    print_table(_table(found))


@app.command()
def show(
    rollout_id: Annotated[str, typer.Argument(help="Which rollout.")],
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Show one rollout with its attempts; exit code 1 if the rollouts topic does not have it.

    Example: headrace rollouts show ro-1f0c2a --json
    """
    from headrace.streams.errors import HeadraceError
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.partitioner import partition_of

    settings = settings_of(bootstrap, prefix, registry_url)
    count = len(partition_ids(settings, settings.topic("rollouts")))
    states = _newest(settings, [partition_of(rollout_id, count)], rollout_id)
    state = next((s for s in states if s.rollout_id == rollout_id), None)
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
    from headrace.streams.kafka.messages import Message
    from headrace.streams.kafka.reading import TopicFollower

    wanted = _checked(status)
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
            _watch_table(changes)
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


def _watch_table(changes: Any) -> None:
    import time
    from collections import Counter

    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    states: dict[str, RolloutState] = {}
    with Live(refresh_per_second=4) as live:
        while True:
            while not changes.empty():
                state = changes.get()
                states.pop(state.rollout_id, None)  # so that the last that changed stands last
                states[state.rollout_id] = state
            counts = Counter(s.status for s in states.values())
            line = "  ".join(f"{name} {counts[name]}" for name in STATUSES if counts[name])
            live.update(Group(Text(line or "no rollouts yet"), _table(list(states.values())[-WATCHED:])))
            time.sleep(WATCH_SECONDS)


def _checked(status: list[str] | None) -> set[str]:
    unknown = [s for s in status or [] if s not in STATUSES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r}; there are {', '.join(STATUSES)}", param_hint="--status")
    return set(status or [])


def _newest(settings: Settings, partitions: Iterable[int] | None = None, only: str | None = None) -> list[RolloutState]:
    """The last state of every rollout; what cannot be read is named on stderr by the log."""
    import logging

    from headrace.schemas.records import RolloutState
    from headrace.streams.codec import Codec, DecodeError
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.reading import read_topic

    topic = settings.topic("rollouts")
    if partitions is None:
        partitions = partition_ids(settings, topic)
    last: dict[bytes, bytes] = {}
    for message in read_topic(settings, topic, partitions, client_id="rollouts-list"):
        key, value = message.key() or b"", message.value()
        if only is not None and key != only.encode():
            continue
        if value is None:
            last.pop(key, None)
        else:
            last[key] = value
    codec = Codec(settings)
    states: list[RolloutState] = []
    for key, value in last.items():
        try:
            states.append(codec.decode_as(RolloutState, value))
        except DecodeError as error:
            logging.getLogger(__name__).warning("%s: state of %r cannot be read: %s", topic, key, error)
    return states


def _plain(state: RolloutState) -> dict[str, Any]:
    import msgspec

    return msgspec.to_builtins(state)


def _table(states: list[RolloutState]) -> Any:
    from datetime import UTC, datetime

    from rich.table import Table

    def clock(at: int | None) -> str:
        return datetime.fromtimestamp(at / 1e6, UTC).strftime("%H:%M:%S.%f")[:-3] if at else ""

    table = Table("rollout", "status", "mode", "run", "group", "attempts", "enqueued", "ended (UTC)", "error")
    for s in states:
        error = next((a.error for a in reversed(s.attempts) if a.error), None)
        table.add_row(
            s.rollout_id,
            s.status,
            s.mode or "",
            s.run_id or "",
            f"{s.group_id} {s.sample_index + 1}/{s.group_size}" if s.group_id else "",
            str(len(s.attempts)),
            clock(s.enqueued_at),
            clock(s.ended_at),
            f"{error.type}: {error.message}"[:80] if error else "",
        )
    return table
