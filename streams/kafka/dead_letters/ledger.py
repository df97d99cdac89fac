"""What has become of dead letters: the messages of dead-letter topics folded to the state of each letter. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from headrace.streams.kafka.dead_letters.letter import (
    OFFSET,
    PARTITION,
    REPLAY_COUNT,
    REPLAY_OF,
    REPLAYED,
    REPLAYED_OFFSET,
    TOPIC,
    DeadLetter,
    Place,
    is_marker,
    number_of,
    parse,
    text_of,
    without,
)
from headrace.streams.kafka.messages import Headers, Message, OutMessage
from headrace.streams.topics import dead_letter_topic

MOST_REPLAYS = 3
DEAD, WAS_REPLAYED = "dead", "replayed"


@dataclass
class LetterState:
    """A letter and what was done with it.

    Attributes:
        replayed: this letter was replayed. If that was in vain, there is another letter of its record.
        replays: how often the first letter of its chain was replayed.
        repeats: further letters of the same place, by other readers or by a restart.
    """

    letter: DeadLetter
    replayed: bool = False
    replays: int = 0
    repeats: int = 0

    @property
    def state(self) -> str:
        """`dead` or `replayed`."""
        return WAS_REPLAYED if self.replayed else DEAD


def fold(messages: Iterable[Message]) -> list[LetterState]:
    """The letters of dead-letter topics in the order in which they are given; of one place the first.

    Without their values: a dead-letter topic may hold more than a process.
    """
    states: dict[Place, LetterState] = {}
    replayed: Counter[Place] = Counter()
    chains: Counter[Place] = Counter()
    for message in messages:
        if is_marker(message):
            place, first = _of_marker(message)
            replayed[place] += 1
            chains[first] += 1
            continue
        letter = replace(parse(message), value=None)
        place = letter.place
        if place in states:
            states[place].repeats += 1
        else:
            states[place] = LetterState(letter)
    for place, state in states.items():
        state.replayed = place in replayed
        state.replays = max(chains[state.letter.first], state.letter.replay_count)
    return list(states.values())


def replay_of(state: LetterState, value: bytes | None) -> OutMessage:
    """The record of a letter as it was, for the partition where it stood, with the chain of its replays."""
    letter = state.letter
    chain = [*letter.replays, letter.place]
    headers = without(letter.headers, (REPLAY_OF, REPLAY_COUNT))
    headers += [(REPLAY_OF, str(place)) for place in chain]
    headers.append((REPLAY_COUNT, str(state.replays + 1)))
    return OutMessage(letter.source_topic, letter.key, value, headers, letter.source_partition)


def marker_of(state: LetterState, offset: int) -> OutMessage:
    """What says in the dead-letter topic that a letter was replayed, to which offset."""
    letter = state.letter
    headers: Headers = [
        (REPLAYED, str(state.replays + 1)),
        (REPLAY_OF, str(letter.first)),
        (TOPIC, letter.source_topic),
        (PARTITION, str(letter.source_partition)),
        (OFFSET, str(letter.source_offset)),
        (REPLAYED_OFFSET, str(offset)),
    ]
    return OutMessage(dead_letter_topic(letter.source_topic), letter.key, None, headers)


def _of_marker(message: Message) -> tuple[Place, Place]:
    last = {name: text_of(value) or "" for name, value in cast(Headers, message.headers() or [])}
    place = Place(last.get(TOPIC, ""), number_of(last.get(PARTITION)), number_of(last.get(OFFSET)))
    return place, Place.parsed(last.get(REPLAY_OF, "")) or place
