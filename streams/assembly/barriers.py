"""Where the barriers of rollouts that have ended stand."""

from collections.abc import Iterable

from headrace.streams.assembly.records import Positions
from headrace.streams.kafka.log_reader import LogReader

Horizon = tuple[int, int | None]
"""A partition, and the append time in milliseconds at which a barrier stands in it; None is its end as of now."""


def barriers_at(log: LogReader, horizons: Iterable[Horizon]) -> dict[Horizon, Positions]:
    """How far spans and rewards reach at some times; one question for each time.

    Raises:
        BrokerUnavailableError: no answer.
    """
    numbers: dict[int | None, list[int]] = {}
    for number, at in horizons:
        numbers.setdefault(at, []).append(number)
    found: dict[Horizon, Positions] = {}
    for at, asked in numbers.items():
        partitions = [(topic, number) for number in asked for topic in ("spans", "rewards")]
        ends = log.ends(partitions) if at is None else log.first_since(dict.fromkeys(partitions, at))
        found |= {(number, at): Positions(ends["spans", number], ends["rewards", number]) for number in asked}
    return found
