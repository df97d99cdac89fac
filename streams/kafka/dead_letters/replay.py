"""Puts dead letters back where they came from, each with its marker in one transaction.

The transactional.id belongs to the topic. A replay first takes the id, which aborts what an earlier one has left open
and fences it, and only then reads what was replayed: so a letter is written once, whatever is killed and whoever else
replays at the same time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from headrace.schemas.records import LogPosition
from headrace.streams.errors import FencedError, HeadraceError
from headrace.streams.kafka.admin import TopicError, describe, partition_ids
from headrace.streams.kafka.dead_letters.ledger import MOST_REPLAYS, LetterState, fold, marker_of, replay_of
from headrace.streams.kafka.dead_letters.letter import Place
from headrace.streams.kafka.messages import Message, MessageMaker, OutMessage, size_of
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.kafka.rereading import Found, Rereader
from headrace.streams.kafka.transactional.processor import Output
from headrace.streams.kafka.transactional.transactions import Transactions
from headrace.streams.settings import Settings
from headrace.streams.topics import dead_letter_topic

MOST_LETTERS = 100  # of one transaction, which must end within its time-out
MOST_BYTES = 8 * 1024 * 1024
Wanted = Callable[[LetterState], bool]


@dataclass(frozen=True)
class Replay:
    """What became of a letter that was wanted.

    Attributes:
        offset: where its record stands now; None where nothing was written.
        count: which replay of the first letter of its chain this is.
        problem: why it was not put back, and what to do.
    """

    state: LetterState
    offset: int | None = None
    count: int = 0
    problem: str | None = None


def read_letters(settings: Settings, topics: Iterable[str], client_id: str = "dlq") -> Iterator[Message]:
    """All messages of the dead-letter topics of some topics (full names).

    Raises:
        TopicError: the cluster has none of them.
    """
    wanted = [dead_letter_topic(topic) for topic in topics]
    there = describe(settings, names=wanted)
    names = [name for name in wanted if name in there]
    if not names:
        raise TopicError(f"{wanted[0]} is missing at {settings.bootstrap}; `headrace topics create` makes it")
    starts = {(name, p): BEGINNING for name in names for p in there[name].partitions}
    return read_to_end(settings, starts, client_id=client_id)


def replay(settings: Settings, topic: str, wanted: Wanted, *, dry_run: bool = False) -> Iterator[Replay]:
    """Replays letters of a topic (full name).

    Yields those that cannot be put back first, then those of each transaction once it is committed.

    Raises:
        TopicError: there is no such topic.
        FencedError: another replay of the topic has begun meanwhile. What was yielded is done.
        SessionLostError: the brokers were away; whether the last transaction is done, the topic says.
    """
    if dry_run:
        for chosen in _chosen(settings, topic, wanted):
            yield chosen
        return
    transactional_id = f"{settings.prefix}.dlq-replay.{topic}"
    try:
        transactions = Transactions(settings, "dlq-replay", transactional_id, lambda: False)
        try:
            chosen = _chosen(settings, topic, wanted)
            yield from (one for one in chosen if one.problem is not None)
            yield from _write(settings, [one for one in chosen if one.problem is None], transactions)
        finally:
            transactions.close()
    except FencedError as error:
        raise FencedError(
            f"another replay of {topic} has begun and goes on; `headrace dlq list` tells what is replayed"
        ) from error


def _chosen(settings: Settings, topic: str, wanted: Wanted) -> list[Replay]:
    partitions = set(partition_ids(settings, topic))
    of_chain: Counter[Place] = Counter()
    chosen: list[Replay] = []
    for state in fold(read_letters(settings, [topic])):
        if wanted(state):
            state.replays += of_chain[state.letter.first]  # of letters before this one
            problem = _why_not(state, partitions)
            if problem is None:
                of_chain[state.letter.first] += 1
            chosen.append(Replay(state, None, state.replays + 1, problem))
    return chosen


def _why_not(state: LetterState, partitions: set[int]) -> str | None:
    letter = state.letter
    if dead_letter_topic(letter.source_topic) != letter.topic or letter.source_partition not in partitions:
        at = f"{letter.topic}[{letter.partition}]@{letter.offset}"
        return f"{at} does not say where in its topic it stood; mend and send it again"
    if letter.left_out is not None:
        return f"{letter.place} is not whole: {letter.left_out}, were left out"
    if state.replays >= MOST_REPLAYS:
        return f"{letter.place} was replayed {state.replays} times in vain (first as {letter.first}); mend its cause"
    return None


def _write(settings: Settings, chosen: list[Replay], transactions: Transactions) -> Iterator[Replay]:
    message, rereader = MessageMaker(settings), Rereader(settings, "dlq-replay")
    for batch in _batches(chosen):
        found = rereader.read(_places(batch))
        records = [_record(message, one.state, found) for one in batch]
        done: list[Replay] = []

        def markers(
            positions: list[LogPosition], batch: list[Replay] = batch, done: list[Replay] = done
        ) -> list[OutMessage]:
            done += [replace(one, offset=position.offset) for one, position in zip(batch, positions, strict=True)]
            return [marker_of(one.state, position.offset) for one, position in zip(batch, positions, strict=True)]

        transactions.write(Output(records, markers), [], [], None)
        yield from done
    rereader.close()


def _places(batch: list[Replay]) -> dict[tuple[str, int], list[int]]:
    places: dict[tuple[str, int], list[int]] = {}
    for letter in (one.state.letter for one in batch):
        places.setdefault((letter.topic, letter.partition), []).append(letter.offset)
    return places


def _record(message: MessageMaker, state: LetterState, found: Found) -> OutMessage:
    letter = state.letter
    there = found.get((letter.topic, letter.partition, letter.offset))
    if there is None:
        raise HeadraceError(f"{letter.place} has gone by retention; replay again what is left")
    record = replay_of(state, there.value())
    if message.fits(record):
        return record
    # With the headers of its replays it may be too large for its topic, where it just fitted before.
    message.check(record, f"dead letter {letter.place}")
    return message.claimed(record)


def _batches(chosen: list[Replay]) -> Iterator[list[Replay]]:
    batch: list[Replay] = []
    size = 0
    for one in chosen:
        more = size_of(replay_of(one.state, None)) + one.state.letter.size
        if batch and (len(batch) >= MOST_LETTERS or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += more
    if batch:
        yield batch
