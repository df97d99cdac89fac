"""Following a topic outside any group, from its beginning on, for as long as the process lives."""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from headrace.schemas.records import Record
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import BrokerUnavailableError, UnavailableError
from headrace.streams.kafka.barrier import end_offsets, offsets_at
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.dead_letters.writer import FollowerLetters
from headrace.streams.kafka.messages import Message, key_of
from headrace.streams.kafka.reading import BEGINNING, PATIENCE_SECONDS, POLL_SECONDS, poll_batch
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPICS

log = logging.getLogger(__name__)

UNAVAILABLE_SECONDS = 1.0


class TopicFollower:
    """Follows a topic from its beginning, on a thread of its own, without a group.

    `handle` is called on that thread with each record. What cannot be used is logged and passed over: the dead letter
    is written by whoever consumes the topic as a group or restores its state from it, and of topics that all only
    follow by the followers.

    Args:
        wants: asked for each message first; one that it does not want is not decoded.
        since_ms: records appended earlier are left out, milliseconds since the epoch.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        handle: Callable[[Record, Message], None],
        *,
        client_id: str,
        partitions: Iterable[int] = (0,),
        wants: Callable[[Message], bool] | None = None,
        since_ms: int | None = None,
    ) -> None:
        self._settings = settings
        self._wants = wants
        self._topic = settings.topic(topic)
        self._row = TOPICS[topic]
        self._letters: FollowerLetters | None = None
        self._handle = handle
        self._client_id = client_id
        self._partitions = list(partitions)
        self._closing = threading.Event()
        self._caught_up = threading.Event()
        self._since_ms = since_ms
        self._starts: dict[int, int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-follower", daemon=True)

    def start(self, timeout: float = PATIENCE_SECONDS) -> "TopicFollower":
        """Starts, and returns when everything up to now was handled.

        Raises:
            BrokerUnavailableError: that took longer than `timeout` seconds.
        """
        self.start_later()
        if not self._caught_up.wait(timeout):
            raise BrokerUnavailableError(f"{self._topic} was not read to its end within {timeout:.0f} s")
        return self

    def start_later(self) -> None:
        """Starts without waiting."""
        admin = make_admin(self._settings, self._client_id)
        wanted = [(self._topic, p) for p in self._partitions]
        self._ends = end_offsets(admin, wanted)
        if self._since_ms is not None:
            found = offsets_at(admin, dict.fromkeys(wanted, self._since_ms))
            self._starts = {p: offset if offset >= 0 else self._ends[t, p] for (t, p), offset in found.items()}
        self._thread.start()

    def close(self) -> None:
        """Stops the thread."""
        self._closing.set()
        if self._thread.ident is not None:  # else it was never started: there was no broker
            self._thread.join(POLL_SECONDS * 10)

    def _run(self) -> None:
        codec = Codec(self._settings)
        consumer = make_consumer(self._settings, self._client_id, eof=True)
        consumer.assign([TopicPartition(self._topic, p, self._starts.get(p, BEGINNING)) for p in self._partitions])
        left = {p for p in self._partitions if self._ends[self._topic, p] > max(0, self._starts.get(p, 0))}
        if not left:
            self._caught_up.set()
        try:
            while not self._closing.is_set():
                for message in poll_batch(consumer, POLL_SECONDS):
                    partition, position = message.partition() or 0, message.offset() or 0
                    error: Any = message.error()
                    if error is None:
                        self._deliver(codec, message)
                        position += 1
                    elif error.code() != KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                        log.warning("%s: %s", self._topic, error.str())
                        continue
                    if position >= self._ends.get((self._topic, partition), 0):
                        left.discard(partition)
                        if not left:
                            self._caught_up.set()
        finally:
            consumer.close()

    def _deliver(self, codec: Codec, message: Message) -> None:
        if (message.value() is None and self._row.compact) or (self._wants and not self._wants(message)):
            return
        try:
            record = self._decode(codec, message)
        except DecodeError as error:
            self._refuse(message, error.reason, str(error))
            return
        if record is None:
            return
        if record.SCHEMA not in self._row.records:
            self._refuse(message, "wrong_record", f"a {record.SCHEMA} in {self._row.name}")
        elif message.key() != key_of(record).encode():
            self._refuse(message, "wrong_key", f"key {message.key()!r} of a {record.SCHEMA} of {key_of(record)!r}")
        else:
            try:
                self._handle(record, message)
            except Exception:  # whatever one record leads to, those behind it are still followed
                log.exception("%s offset %s is passed over", self._topic, message.offset())

    def _refuse(self, message: Message, reason: str, detail: str) -> None:
        log.warning("%s[%s] offset %s: %s: %s", self._topic, message.partition(), message.offset(), reason, detail)
        if self._row.followed:
            if self._letters is None:
                self._letters = FollowerLetters(self._settings, self._client_id)
            self._letters.write(message, reason, detail)

    def _decode(self, codec: Codec, message: Message) -> Record | None:
        """The record; a registry or a store that is away is waited for, for as long as this follower lives."""
        while not self._closing.is_set():
            try:
                return codec.decode(message.value())
            except UnavailableError as error:
                log.warning("%s offset %s waits: %s", self._topic, message.offset(), error)
                self._closing.wait(UNAVAILABLE_SECONDS)
        return None
