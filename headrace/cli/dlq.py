"""`headrace dlq`: what readers could not use, and how it is put back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Json, Prefix, Registry, print_json, print_table, settings_of
from headrace.cli.rollout_table import moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.streams.kafka.dead_letters import DeadLetter, Place
    from headrace.streams.kafka.dead_letters.ledger import LetterState
    from headrace.streams.settings import Settings

app = typer.Typer(help="Read and replay dead letters.", no_args_is_help=True, add_completion=False)
Topic = Annotated[
    str | None, typer.Option(help="Only of this topic, by its short or full name, or of a Collector's topic.")
]
Reason = Annotated[str | None, typer.Option(help="Only with this reason.")]
EXIT_FAILED = 1


@app.callback()
def group() -> None:
    """Read and replay dead letters: records that a reader could not use, with the reason, their bytes and headers."""


@app.command("list")
def list_(
    topic: Topic = None,
    reason: Reason = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """List dead letters, oldest first; of several readers' letters of one record the first.

    Example: headrace dlq list --topic spans --json
    """
    settings = settings_of(bootstrap, prefix)
    states = [s for s in _states(settings, topic) if reason is None or s.letter.reason == reason]
    states.sort(key=lambda s: (s.letter.at, s.letter.topic, s.letter.partition, s.letter.offset))
    if json:
        for state in states:
            print_json(_facts(state))
        return
    from rich.table import Table

    from headrace.streams.kafka.clock import wall_us

    now = wall_us()
    table = Table("id", "at (UTC)", "reason", "reader", "state", "bytes", "detail")
    for s in states:
        d = s.letter
        states = ([] if s.replayed else [s.state]) + ([f"replayed {s.replays}x"] if s.replays else [])
        detail = d.detail.removeprefix(f"{d.reason}: ")[:80]
        table.add_row(str(d.place), moment(d.at, now), d.reason, d.reader, ", ".join(states), str(d.size), detail)
    print_table(table)


@app.command()
def count(topic: Topic = None, bootstrap: Bootstrap = None, prefix: Prefix = None, json: Json = False) -> None:
    """Count the dead letters of each topic, by reason and by state.

    Example: headrace dlq count --json
    """
    from collections import Counter

    settings = settings_of(bootstrap, prefix)
    of_topic: dict[str, list[LetterState]] = {}
    for state in _states(settings, topic):
        of_topic.setdefault(state.letter.topic, []).append(state)
    rows: list[dict[str, Any]] = [
        {
            "topic": name,
            "letters": len(states),
            "dead": sum(not s.replayed for s in states),
            "replayed": sum(s.replayed for s in states),
            "reasons": dict(sorted(Counter(s.letter.reason for s in states).items())),
        }
        for name, states in sorted(of_topic.items())
    ]
    if json:
        for row in rows:
            print_json(row)
        return
    from rich.table import Table

    table = Table("topic", "letters", "dead", "replayed", "reasons")
    for row in rows:
        reasons = ", ".join(f"{name} {n}" for name, n in row["reasons"].items())
        table.add_row(row["topic"], str(row["letters"]), str(row["dead"]), str(row["replayed"]), reasons)
    print_table(table)


@app.command()
def show(
    topic: Annotated[str, typer.Argument(help="An id as `dlq list` shows it; or a topic, with partition and offset.")],
    partition: Annotated[int | None, typer.Argument(min=0, help="Of the dead letter.")] = None,
    offset: Annotated[int | None, typer.Argument(min=0, help="Of the dead letter.")] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry_url: Registry = None,
    json: Json = False,
) -> None:
    """Show one dead letter whole: headers, key and value, decoded where that is possible now.

    Of several letters of one record an id means the first.

    Example: headrace dlq show headrace.spans.v1/3/17 --json
    """
    from dataclasses import replace

    from headrace.streams.errors import HeadraceError
    from headrace.streams.kafka.dead_letters import is_marker, parse
    from headrace.streams.kafka.dead_letters.ledger import LetterState
    from headrace.streams.kafka.rereading import Rereader

    settings = settings_of(bootstrap, prefix, registry_url)
    if partition is None or offset is None:
        (place,) = _places(settings, [topic])
        source = place.topic
        found = next((s.letter for s in _states(settings, source) if s.letter.place == place), None)
        if found is None:
            raise HeadraceError(f"there is no dead letter {place}; `headrace dlq list` names them")
        partition, offset = found.partition, found.offset
    else:
        (source,) = _topics(settings, topic)
    name = _dead(source)
    at = (name, partition)
    message = None
    if _has(settings, at, offset):
        message = Rereader(settings, "dlq-show").read({at: [offset]}).get((*at, offset))
    if message is None or is_marker(message):
        raise HeadraceError(f"{name}[{partition}] has no letter at offset {offset}; `headrace dlq list` names them")
    letter = parse(message)
    states = {s.letter.place: s for s in _states(settings, source)}
    state = replace(states.get(letter.place, LetterState(letter)), letter=letter)
    whole = {**_facts(state), **_whole(settings, letter)}
    if json:
        print_json(whole)
        return
    from rich.console import Console

    Console().print_json(data=whole)


@app.command()
def replay(
    topic: Topic = None,
    reason: Reason = None,
    id: Annotated[list[str] | None, typer.Option(help="TOPIC/PARTITION/OFFSET of a record; again for more.")] = None,
    all: Annotated[bool, typer.Option("--all", help="All that was not replayed yet.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be replayed, and write nothing.")] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    json: Json = False,
) -> None:
    """Put records back into the partitions that they came from, with a mark of it, in one transaction.

    Those that were replayed already are passed over, unless --id names them; none is replayed more than three times.
    Exit code 1 if one that was named or selected cannot be replayed.

    Example: headrace dlq replay --topic spans --reason unknown_schema
    """
    from headrace.streams.kafka.dead_letters.replay import replay as replay_letters

    settings = settings_of(bootstrap, prefix)
    if not (topic or reason or id or all):
        raise typer.BadParameter("name letters with --id, choose them with --topic and --reason, or give --all")
    places = _places(settings, id or [])
    sources = _topics(settings, topic) if not places else sorted({place.topic for place in places})
    left = set(places)

    def wanted(state: LetterState) -> bool:
        place = state.letter.place
        left.discard(place)
        if places and place not in places:
            return False
        return (bool(places) or not state.replayed) and (reason is None or state.letter.reason == reason)

    problems = 0
    for source in sources:
        for done in replay_letters(settings, source, wanted, dry_run=dry_run):
            if done.problem is not None:
                problems += 1
                print(f"headrace: {done.problem}", file=sys.stderr)
                continue
            if json:
                facts = {**_facts(done.state), "replays": done.count, "replayed_offset": done.offset}
                print_json({**facts, "state": done.state.state if dry_run else "replayed"})
            else:
                where = "would be replayed" if dry_run else f"replayed to offset {done.offset}"
                print(f"{done.state.letter.place}: {where}")
    for place in sorted(left):
        problems += 1
        print(f"headrace: there is no dead letter {place}; `headrace dlq list` names them", file=sys.stderr)
    if problems:
        raise typer.Exit(EXIT_FAILED)


def _topics(settings: Settings, topic: str | None) -> list[str]:
    """The full names of topics whose dead letters are meant: of the pipeline, or a Collector's that has some."""
    from headrace.streams.errors import SettingsError
    from headrace.streams.kafka.admin import describe
    from headrace.streams.topics import TOPICS

    every = {name: settings.topic(name) for name in TOPICS}
    if topic is None:
        return list(every.values())
    for name, full in every.items():
        if topic in (name, full, _dead(full)):
            return [full]
    source = topic.removesuffix(_dead(""))
    if describe(settings, names=[_dead(source)]):
        return [source]
    raise SettingsError(
        f"{topic!r} is no topic of prefix {settings.prefix!r}, and {_dead(source)} is none either; there are "
        + ", ".join(every)
    )


def _dead(topic: str) -> str:
    from headrace.streams.topics import dead_letter_topic

    return dead_letter_topic(topic)


def _places(settings: Settings, ids: Sequence[str]) -> set[Place]:
    from headrace.streams.kafka.dead_letters import Place

    places: set[Place] = set()
    for text in ids:
        place = Place.parsed(text)
        if place is None:
            raise typer.BadParameter(f"{text!r}: an id is TOPIC/PARTITION/OFFSET, as `headrace dlq list` shows it")
        places.add(place._replace(topic=_topics(settings, place.topic)[0]))
    return places


def _states(settings: Settings, topic: str | None) -> list[LetterState]:
    from headrace.streams.kafka.dead_letters.ledger import fold
    from headrace.streams.kafka.dead_letters.replay import read_letters

    return fold(read_letters(settings, _topics(settings, topic), "dlq-list"))


def _has(settings: Settings, at: tuple[str, int], offset: int) -> bool:
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.barrier import end_offsets
    from headrace.streams.kafka.clients import make_admin

    return at[1] in partition_ids(settings, at[0]) and offset < end_offsets(make_admin(settings), [at])[at]


def _facts(state: LetterState) -> dict[str, Any]:
    letter = state.letter
    return {
        "topic": letter.topic,
        "partition": letter.partition,
        "offset": letter.offset,
        "at": letter.at,
        "reason": letter.reason,
        "source_topic": letter.source_topic,
        "source_partition": letter.source_partition,
        "source_offset": letter.source_offset,
        "bytes": letter.size,
        "id": str(letter.place),
        "reader": letter.reader,
        "state": state.state,
        "replays": state.replays,
        "replay_of": [str(place) for place in letter.replays],
    }


def _whole(settings: Settings, letter: DeadLetter) -> dict[str, Any]:
    import base64

    import msgspec

    from headrace.streams.codec import Codec, DecodeError
    from headrace.streams.errors import UnavailableError

    def text(value: str | bytes | None) -> str | None:
        return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value

    record: Any = None
    try:
        decoded = Codec(settings).decode(letter.value)
    except (DecodeError, UnavailableError) as error:
        undecoded = str(error)
    else:
        undecoded = None
        record = {"type": decoded.SCHEMA, **msgspec.to_builtins(decoded)}
    value = letter.value
    return {
        "detail": letter.detail,
        "key": text(letter.key),
        "headers": [[name, text(header)] for name, header in [*letter.headers, *letter.context]],
        "record": record,
        "undecoded": undecoded,
        "value_base64": base64.b64encode(value).decode() if value is not None else None,
    }
