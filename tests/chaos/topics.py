"""Reads a pipeline's topics with plain clients: confluent_kafka and fastavro, the schemas from their `.avsc` files.

It shares no code with the pipeline. Committed records only, all partitions, from the beginning to the end.
"""

import json
from collections import Counter
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import fastavro
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from fastavro.schema import fingerprint, to_parsing_canonical_form

from tests.chaos.entries import Entry, Log

SCHEMAS = Path(__file__).parents[2] / "schemas" / "avro"
MARK = b"\xc3\x01"  # Avro's single-object encoding
FINGERPRINT = slice(2, 10)
HEADER = 10
TIMEOUT_SECONDS = 30.0
BATCH = 2000
REASON = "headrace.reason"
TOPICS = tuple(f.name for f in fields(Log))


class UnreadableError(Exception):
    """A record of a topic is no Avro of a schema of the repository."""


class Decoder:
    """Single-object encoding, by the fingerprints of the schemas."""

    def __init__(self) -> None:
        self._schemas: dict[bytes, Any] = {}
        for path in SCHEMAS.glob("*.avsc"):
            schema = fastavro.parse_schema(json.loads(path.read_text()), named_schemas={})
            canonical = to_parsing_canonical_form(schema)
            self._schemas[bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))] = schema

    def __call__(self, value: bytes) -> dict[str, Any]:
        """The fields of a record.

        Raises:
            UnreadableError: its bytes begin otherwise.
        """
        schema = self._schemas.get(value[FINGERPRINT])
        if value[:2] != MARK or schema is None:
            raise UnreadableError(f"no record of a known schema begins with {value[:HEADER].hex()}")
        return cast(dict[str, Any], fastavro.schemaless_reader(BytesIO(value[HEADER:]), schema, None))


class TopicReader:
    """Reads on where it has stopped, so that a long log is read once.

    Raises:
        TimeoutError: the broker does not answer.
    """

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._prefix = prefix
        self._decode = Decoder()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "chaos-checker",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        topics = self._consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
        self._dead_letter_topics = {n for n in topics if n.startswith(f"{prefix}.") and n.endswith(".dlq")}
        self._names = {f"{prefix}.{name}.v1": name for name in TOPICS}
        wanted = [*self._names, *self._dead_letter_topics]
        self._reached = {(t, p): 0 for t in wanted for p in topics[t].partitions}
        self._consumer.assign([TopicPartition(t, p, 0) for t, p in self._reached])
        self.log = Log()
        self.dead_letters: Counter[str] = Counter()
        """How many, by topic and reason."""

    def read(self) -> Log:
        """Reads to the ends as they are now; the log so far."""
        ends = {
            (t, p): self._consumer.get_watermark_offsets(TopicPartition(t, p), timeout=TIMEOUT_SECONDS)[1]
            for t, p in self._reached
        }
        while any(self._reached[place] < end for place, end in ends.items()):
            messages = self._consumer.consume(BATCH, TIMEOUT_SECONDS if not self._reached else 1.0)
            for message in messages:
                self._take(message)
        return self.log

    def close(self) -> None:
        """Lets the consumer go."""
        self._consumer.close()

    def _take(self, message: Message) -> None:
        place = (message.topic() or "", message.partition() or 0)
        offset = message.offset() or 0
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
                self._reached[place] = max(offset, self._reached[place])
            return
        self._reached[place] = offset + 1
        if place[0] in self._dead_letter_topics:
            headers = dict(cast(list[tuple[str, bytes]], message.headers() or []))
            topic = place[0].removeprefix(f"{self._prefix}.").removesuffix(".v1.dlq")
            self.dead_letters[f"{topic}: {headers.get(REASON, b'').decode()}"] += 1
            return
        value = message.value()
        key = (message.key() or b"").decode()
        fields_ = self._decode(value) if value is not None else None
        self.log.add(self._names[place[0]], [Entry(place[1], offset, message.timestamp()[1], key, fields_)])
