"""Spans of the log to the user's own collector, by OTLP/HTTP.

opentelemetry-exporter-otlp sends: endpoint, TLS, headers, compression, time-outs and retries are its own, with the
OTEL_EXPORTER_OTLP_* environment. The messages are made here, because the SDK's ReadableSpan has no place for a span's
flags, the trace state of a link, an unspecified kind or the dropped counts of resource and scope, and every span shall
leave as it came.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec
from google.protobuf.message import Error as ProtobufError
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from headrace.connectors.otlp.encode import OWN_SOURCE, encode_spans
from headrace.connectors.otlp.receiver import PATH
from headrace.schemas.records import Span
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import HeadraceError, SettingsError, UnavailableError
from headrace.streams.kafka.dead_letters.refusals import Refusals
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

NAME = "otlp-export"
BATCH = 500
REFUSING = frozenset({400, 413, 422})
"""Statuses that are about what is sent; all others are about who sends it, or about now."""
REFUSED, NOT_EXPORTABLE = "refused_by_collector", "not_exportable"
UNENCODABLE = (
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    ProtobufError,
    msgspec.MsgspecError,
)
"""What ids and JSON of any writer lead to: no hexadecimal, other types, numbers beyond a double, JSON too deep."""
Pair = tuple[Message, Span]


class Exporter(OTLPSpanExporter):
    """Sends export requests that are made already."""

    def send(self, body: bytes) -> int | None:
        """Returns None when the collector has it, else the HTTP status of its last answer, 0 if there was none."""
        result = self._client.export(body)
        return None if result.success else result.status_code or 0


def make_exporter(endpoint: str | None, headers: Mapping[str, str] | None) -> Exporter:
    """An exporter.

    Args:
        endpoint: a collector's URL, `/v1/traces` is added where it has no path; None reads OTEL_EXPORTER_OTLP_*.

    Raises:
        SettingsError: it is no URL.
    """
    if endpoint is not None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingsError(f"{endpoint!r} is no URL of a collector; it looks like http://127.0.0.1:4318")
        if parts.path in ("", "/"):
            endpoint = endpoint.rstrip("/") + PATH
    return Exporter(endpoint=endpoint, headers=headers)


class SpanExport:
    """Exports the spans of messages.

    Attributes:
        counters: spans that the collector has, and what was left out, by its reason.
    """

    def __init__(self, settings: Settings, exporter: Exporter, client_id: str, *, own_only: bool = False) -> None:
        self.counters: Counter[str] = Counter()
        self._exporter = exporter
        self._codec = Codec(settings)
        self._refusals = Refusals(settings, client_id, NAME)
        self._own_only = own_only

    def close(self) -> None:
        """Waits for no collector any more."""
        self._exporter.shutdown()

    def handle(self, messages: Sequence[Message]) -> None:
        """Sends the spans of messages; returns when the collector has them, and the dead letters what it refuses.

        Raises:
            UnavailableError: the collector does not take them now.
            BrokerUnavailableError: a dead letter could not be written.
        """
        try:
            self._send([pair for message in messages if (pair := self._read(message)) is not None])
        except HeadraceError:
            self._refusals.forget()
            raise
        self._refusals.write()

    def _read(self, message: Message) -> Pair | None:
        try:
            record = self._codec.decode(message.value())
        except DecodeError as error:  # its dead letter is written by the assembler
            self.counters[error.reason] += 1
            return None
        if not isinstance(record, Span):
            self.counters["wrong_record"] += 1
            return None
        if self._own_only and record.source == OWN_SOURCE:
            self.counters["came_by_otlp"] += 1
            return None
        return message, record

    def _send(self, pairs: Sequence[Pair]) -> None:
        if not pairs:
            return
        try:
            body = encode_spans(span for _, span in pairs).SerializeToString()
        except UNENCODABLE as error:  # ids or JSON of another writer
            self._halve(pairs, NOT_EXPORTABLE, str(error))
            return
        status = self._exporter.send(body)
        if status is None:
            self.counters["spans"] += len(pairs)
        elif status in REFUSING:
            self._halve(pairs, REFUSED, f"the collector answered {status}")
        else:
            answer = f"answers {status}" if status else "does not answer"
            raise UnavailableError(f"the collector {answer}; its log and --endpoint say why")

    def _halve(self, pairs: Sequence[Pair], reason: str, detail: str) -> None:
        """Finds the spans that are at fault."""
        if len(pairs) > 1:
            middle = len(pairs) // 2
            self._send(pairs[:middle])
            self._send(pairs[middle:])
            return
        self.counters[reason] += 1
        self._refusals.add(pairs[0][0], reason, detail)
