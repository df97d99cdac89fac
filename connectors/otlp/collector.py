"""The topic of an OpenTelemetry Collector's Kafka exporter as a source of spans.

A message there is an export request: spans of many traces, under one key or none. What is read again after a crash is
written again with the same ids, and readers know the first.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from headrace.connectors.otlp.decode import Decode, OtlpError, decode_json, decode_protobuf
from headrace.connectors.otlp.letters import letters_of
from headrace.connectors.otlp.record import NOBODY
from headrace.connectors.otlp.settings import OtlpSettings
from headrace.connectors.otlp.spans import prepare
from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.messages import Headers, Message, MessageMaker, OutMessage

log = logging.getLogger(__name__)

NAME = "otlp-source"
ENCODINGS: dict[str, Decode] = {"otlp_proto": decode_protobuf, "otlp_json": decode_json}
UNREADABLE = "not_otlp"
BATCH = 200
FLUSH_SECONDS = 0.5
PATIENCE_SECONDS = 60.0
SOURCE_HEADER = "headrace.otlp.source"


class CollectorSource:
    """Writes the spans of export requests.

    Attributes:
        counters: requests, spans, rewards, and refusals by their reason.
    """

    def __init__(self, settings: OtlpSettings, encoding: str, client_id: str) -> None:
        self.counters: Counter[str] = Counter()
        self._decode = ENCODINGS[encoding]
        self._encoding = encoding
        self._max_span_bytes = settings.otlp_max_span_bytes
        self._topic = settings.topic("spans")
        self._maker = MessageMaker(settings)
        self._letter = DeadLetterMaker(settings, client_id)
        self._make: Callable[[], Producer] = lambda: make_producer(settings, client_id)
        self._producer = self._make()
        self._closed = False

    def close(self) -> None:
        """Waits for no broker any more."""
        self._closed = True

    def handle(self, messages: Sequence[Message]) -> None:
        """Writes what stands in messages; returns when the brokers have it.

        Raises:
            BrokerUnavailableError, ClaimsUnavailableError: not all of it could be written.
        """
        failed: list[Any] = []
        found: Counter[str] = Counter()
        try:
            for message in messages:
                for out in self._outcome(message, found):
                    self._produce(out, failed)
            self._flush(failed)
        except BrokerUnavailableError:
            self._producer.purge()  # all of it is read again; and a client that has failed for good takes nothing more
            self._producer = self._make()
            raise
        self.counters.update(found)

    def _outcome(self, message: Message, found: Counter[str]) -> list[OutMessage]:
        try:
            decoded = self._decode(message.value() or b"", NOBODY)
        except OtlpError as error:
            log.warning(
                "%s[%s] offset %s: no %s", message.topic(), message.partition(), message.offset(), self._encoding
            )
            found[UNREADABLE] += 1
            return [self._letter(message, UNREADABLE, f"no {self._encoding}: {error}")]
        prepared = prepare(decoded, self._maker, self._max_span_bytes)
        found["requests"] += 1
        found["spans"] += prepared.spans
        found["rewards"] += len(decoded.rewards)
        found.update(one.code for one in prepared.refused)
        found.update(one.code for one in decoded.refused if one.raw is None)
        where: Headers = [(SOURCE_HEADER, f"{message.topic()}/{message.partition()}/{message.offset()}")]
        letters = [self._letter(r, r.reason, r.detail) for r in letters_of(self._topic, prepared.refused, where)]
        return prepared.messages + [self._maker.claimed(large) for large in prepared.large] + letters

    def _produce(self, message: OutMessage, failed: list[Any]) -> None:
        def report(error: Any, sent: object) -> None:
            if error is not None:
                failed.append(error)

        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                headers: Any = message.headers or None
                self._producer.produce(
                    message.topic, message.value, message.key, message.partition, on_delivery=report, headers=headers
                )
                return
            except BufferError:
                self._producer.poll(FLUSH_SECONDS)
                if self._closed or time.monotonic() > deadline:
                    raise BrokerUnavailableError("the producer's queue is full, and no broker empties it") from None
            except KafkaException as error:
                raise BrokerUnavailableError(f"a span could not be written: {error}") from error

    def _flush(self, failed: list[Any]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._producer.flush(FLUSH_SECONDS):
            if self._closed or time.monotonic() > deadline:
                raise BrokerUnavailableError(f"no broker took all spans within {PATIENCE_SECONDS:.0f} s")
        if failed:
            raise BrokerUnavailableError(f"spans were not written: {failed[0].str()}")
