"""Where commands that ask about rollouts and traces get their answers, and the options that say what is asked."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from headrace.streams.settings import Settings
    from headrace.streams.view.source import Source

Database = Annotated[
    str | None,
    typer.Option("--database", help="Ask the view at this URL [HEADRACE_VIEW]; without one the topics answer."),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many.")]
Offset = Annotated[int, typer.Option("--offset", min=0, help="Leave out so many before.")]
AnyOf = Annotated[bool, typer.Option("--any", help="One of the conditions is enough; without it all must hold.")]

AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Order(StrEnum):
    """Which end of an order comes first."""

    asc = "asc"
    desc = "desc"


@contextmanager
def source_of(settings: Settings, database: str | None, client_id: str) -> Generator[Source]:
    """The view that the flag or the setting names, else the topics."""
    url = database or settings.view
    if url is None:
        from headrace.streams.view.topic_source import TopicSource

        yield TopicSource(settings, client_id)
        return
    from headrace.streams.view.queries import SqlSource

    source = SqlSource(url)
    try:
        yield source
    finally:
        source.close()


def duration_of(text: str, option: str) -> timedelta:
    """A duration as an option has it: `90s`, `5m`, `1h`, `2d`.

    Raises:
        BadParameter: it is none.
    """
    if (duration := _duration(text)) is None:
        raise typer.BadParameter(f"{text!r}; write 90s, 5m, 1h or 2d", param_hint=option)
    return duration


def _duration(text: str) -> timedelta | None:
    found = AGO.fullmatch(text)
    if found is None:
        return None
    try:
        return timedelta(seconds=float(found[1]) * SECONDS[found[2]])
    except OverflowError:
        return None


def since_us(text: str, now_us: int) -> int:
    """The time that `--since` names, in microseconds since the epoch: `90s`, `5m`, `1h`, `2d`, or ISO 8601.

    Raises:
        BadParameter: it names none.
    """
    if (ago := _duration(text)) is not None:
        return now_us - int(ago.total_seconds() * 1e6)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r}; write 90s, 5m, 1h, 2d, or a time as 2026-01-31T12:00", param_hint="--since"
        ) from error
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e6)
