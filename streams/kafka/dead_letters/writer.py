"""Dead letters of readers without transactions."""

import logging
from typing import Any

from confluent_kafka import KafkaException, Producer

from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.dead_letters.letter import Place, is_marker, parse
from headrace.streams.kafka.dead_letters.maker import DeadLetterMaker
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.settings import Settings
from headrace.streams.topics import dead_letter_topic

log = logging.getLogger(__name__)

FLUSH_SECONDS = 5.0


class FollowerLetters:
    """Dead letters of topics that are followed by many and consumed by no group.

    Whoever meets a record without a letter writes it, so that a thousand followers, each of which begins anew at the
    beginning, do not write a thousand letters; those that meet it at once may write several, of which the first counts.
    """

    def __init__(self, settings: Settings, client_id: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._make = DeadLetterMaker(settings, client_id)
        self._known: dict[str, set[Place]] = {}
        self._next: dict[tuple[str, int], int] = {}
        self._producer: Producer | None = None

    def write(self, message: Message, reason: str, detail: str) -> bool:
        """Writes the letter of a message, unless it is there; whether it was written now.

        Brokers that do not take it leave the record to the next follower: nobody waits for a letter here.
        """
        topic = message.topic() or ""
        place = Place(topic, message.partition() or 0, message.offset() or 0)
        try:
            known = self._known.setdefault(topic, set())
            if place not in known:
                self._read_on(dead_letter_topic(topic), known)
            if place in known:
                return False
            known.add(place)
            self._produce(message, reason, detail)
        except (HeadraceError, KafkaException, BufferError) as error:
            log.warning("the dead letter of %s was not written: %s", place, error)
            return False
        return True

    def _read_on(self, topic: str, known: set[Place]) -> None:
        """Adds what others, or this one, have written since the last time."""
        starts = {(topic, p): self._next.get((topic, p), BEGINNING) for p in partition_ids(self._settings, topic)}
        for message in read_to_end(self._settings, starts, client_id=self._client_id):
            self._next[topic, message.partition() or 0] = (message.offset() or 0) + 1
            if not is_marker(message):
                known.add(parse(message).place)

    def _produce(self, message: Message, reason: str, detail: str) -> None:
        letter = self._make(message, reason, detail)
        if self._producer is None:
            self._producer = make_producer(self._settings, f"{self._client_id}-letters", linger_ms=0)
        headers: Any = letter.headers
        self._producer.produce(letter.topic, letter.value, letter.key, headers=headers)
        self._producer.flush(FLUSH_SECONDS)
