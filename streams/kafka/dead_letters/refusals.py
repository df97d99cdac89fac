"""Dead letters of a reader without transactions: written, and acknowledged, before its position moves on."""

import logging
import time
from typing import Any

from confluent_kafka import KafkaException

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.dead_letters.maker import DeadLetterMaker
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)
FLUSH_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
LINGER_MS = 0


class Refusals:
    """Messages that a reader cannot use, on their way to the dead letters.

    A reader that dies between them and its position writes them again: their identity is the source's position.
    """

    def __init__(self, settings: Settings, client_id: str, reader: str) -> None:
        self._settings = settings
        self._client_id = client_id
        self._make = DeadLetterMaker(settings, reader)
        self._producer: Any = None
        self._waiting: list[tuple[Message, str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, message: Message, reason: str, detail: str) -> None:
        """Takes a message that cannot be used."""
        log.warning("%s[%s] offset %s: %s: %s", message.topic(), message.partition(), message.offset(), reason, detail)
        self._waiting.append((message, reason, detail))

    def forget(self) -> None:
        """Lets go of what waits: its reader reads it again, and refuses it again."""
        self._waiting.clear()

    def write(self) -> None:
        """Returns when the brokers have all of them.

        Raises:
            BrokerUnavailableError: they did not take one.
            ClaimsUnavailableError: one has to go by claim-check, and the store does not answer now.
        """
        if not self._waiting:
            return
        if self._producer is None:
            self._producer = make_producer(self._settings, f"{self._client_id}-dead-letters", linger_ms=LINGER_MS)
        failed: list[Any] = []

        def report(error: Any, message: object) -> None:
            if error is not None:
                failed.append(error)

        try:
            for message, reason, detail in self._waiting:
                letter = self._make(message, reason, detail)
                headers: Any = letter.headers
                self._producer.produce(letter.topic, letter.value, letter.key, headers=headers, on_delivery=report)
        except (BufferError, KafkaException) as error:
            raise BrokerUnavailableError(f"a dead letter could not be written: {error}") from error
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._producer.flush(FLUSH_SECONDS):
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(f"no broker took a dead letter within {PATIENCE_SECONDS:.0f} s")
        if failed:
            raise BrokerUnavailableError(f"a dead letter could not be written: {failed[0].str()}")
        self._waiting.clear()
