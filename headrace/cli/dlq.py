"""`headrace dlq`: what readers could not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, print_table, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headrace.streams.kafka.dead_letters import DeadLetter
    from headrace.streams.settings import Settings

app = typer.Typer(help="Read dead letters.", no_args_is_help=True, add_completion=False)


@app.callback()
def group() -> None:
    """Read dead letters: records that a reader could not use, with the reason, their original bytes and headers."""


@app.command("list")
def list_(
    topic: Annotated[str | None, typer.Option(help="Only of this topic, by its short or full name.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only with this reason.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """List dead letters, oldest first.

    Example: headrace dlq list --topic spans --json
    """
    settings = settings_of(bootstrap, prefix)
    letters = [d for d in _letters(settings, topic) if reason is None or d.reason == reason]
    letters.sort(key=lambda d: (d.at, d.topic, d.partition, d.offset))
    if json:
        for letter in letters:
            print_json(_facts(letter))
        return
    from rich.table import Table

    table = Table("dead letter", "reason", "source", "bytes", "detail")
    for d in letters:
        place = f"{d.topic} {d.partition} {d.offset}"
        source = f"{d.source_topic}[{d.source_partition}]@{d.source_offset}"
        table.add_row(place, d.reason, source, str(len(d.value or b"")), d.detail[:80])
    print_table(table)


@app.command()
def show(
    topic: Annotated[str, typer.Argument(help="As `dlq list` names it, or the source's short or full name.")],
    partition: Annotated[int, typer.Argument(min=0, help="Of the dead letter.")],
    offset: Annotated[int, typer.Argument(min=0, help="Of the dead letter.")],
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Show one dead letter whole: headers, key and value, decoded where that is possible now.

    Example: headrace dlq show headrace.spans.v1.dlq 0 17 --json
    """
    from headrace.streams.errors import HeadraceError
    from headrace.streams.kafka.dead_letters import parse
    from headrace.streams.kafka.reading import read_to_end

    settings = settings_of(bootstrap, prefix, registry_url)
    (name,) = _topics(settings, topic)
    at = (name, partition)
    messages = read_to_end(settings, {at: offset}, client_id="dlq-show", ends={at: offset + 1})
    letter = next((parse(m) for m in messages if m.offset() == offset), None) if _has(settings, at, offset) else None
    if letter is None:
        raise HeadraceError(f"{name}[{partition}] has no record at offset {offset}; `headrace dlq list` names them")
    whole = _whole(settings, letter)
    if json:
        print_json(whole)
        return
    from rich.console import Console

    Console().print_json(data=whole)


def _topics(settings: Settings, topic: str | None) -> list[str]:
    """The full names of dead-letter topics."""
    from headrace.streams.errors import SettingsError
    from headrace.streams.topics import TOPICS, dead_letter_topic

    every = {name: dead_letter_topic(settings.topic(name)) for name in TOPICS}
    if topic is None:
        return list(every.values())
    for name, full in every.items():
        if topic in (name, settings.topic(name), full):
            return [full]
    raise SettingsError(f"{topic!r} is no topic of prefix {settings.prefix!r}; there are {', '.join(every)}")


def _letters(settings: Settings, topic: str | None) -> Iterator[DeadLetter]:
    from headrace.streams.kafka.admin import describe
    from headrace.streams.kafka.dead_letters import parse
    from headrace.streams.kafka.reading import BEGINNING, read_to_end

    there = describe(settings)
    starts = {(t, p): BEGINNING for t in _topics(settings, topic) if t in there for p in there[t].partitions}
    return map(parse, read_to_end(settings, starts, client_id="dlq-list"))


def _has(settings: Settings, at: tuple[str, int], offset: int) -> bool:
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.barrier import end_offsets
    from headrace.streams.kafka.clients import make_admin

    return at[1] in partition_ids(settings, at[0]) and offset < end_offsets(make_admin(settings), [at])[at]


def _facts(letter: DeadLetter) -> dict[str, Any]:
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "at": letter.at,
        "reason": letter.reason,
        "source_topic": letter.source_topic,
        "source_partition": letter.source_partition,
        "source_offset": letter.source_offset,
        "bytes": len(letter.value or b""),
    }


def _whole(settings: Settings, letter: DeadLetter) -> dict[str, Any]:
    import base64

    import msgspec

    from headrace.streams.codec import Codec, DecodeError

    def text(value: str | bytes | None) -> str | None:
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value

    record: Any = None
    try:
        decoded = Codec(settings).decode(letter.value)
    except DecodeError as error:
        undecoded = str(error)
    else:
        undecoded = None
        record = {"type": decoded.SCHEMA, **msgspec.to_builtins(decoded)}
    value = letter.value
    return {
        **_facts(letter),
        "detail": letter.detail,
        "reader": letter.reader,
        "key": text(letter.key),
        "headers": [[name, text(header)] for name, header in letter.headers],
        "record": record,
        "undecoded": undecoded,
        "value_base64": base64.b64encode(value).decode() if value is not None else None,
    }
