"""A Collector's Kafka topic in, the user's collector out: spans leave as they came, and nothing bad blocks the rest."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from headrace.connectors.otlp import collector, export
from headrace.connectors.otlp.settings import OtlpSettings
from headrace.schemas.records import Span
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import create_dead_letters, partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_consumer, make_producer
from headrace.streams.kafka.dead_letters import parse
from headrace.streams.kafka.group_loop import BatchHandler, GroupLoop
from headrace.streams.kafka.messages import Message, MessageMaker, OutMessage
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings, load_settings_as
from tests.connectors.otlp.drawn import START, flat, otlp_json

pytestmark = pytest.mark.kafka
DEADLINE_SECONDS = 90


def request_of(*names: str, trace: int = 1) -> ExportTraceServiceRequest:
    """Spans of several traces under one resource."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add(schema_url="https://schema")
    resource_spans.resource.attributes.add(key="service.name").value.string_value = "agent"
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "library"
    for number, name in enumerate(names):
        span = scope_spans.spans.add(
            trace_id=(trace + number).to_bytes(16, "big"),
            span_id=(number + 1).to_bytes(8, "big") if name != "bad" else b"bad",
            name=name,
            flags=0x301,
            start_time_unix_nano=START,
            end_time_unix_nano=START + 1,
        )
        span.attributes.add(key="raw").value.bytes_value = b"\0\xff"
        span.links.add(trace_id=bytes(15) + b"\1", span_id=bytes(7) + b"\1", trace_state="a=b")
    return request


@dataclass
class StubCollector:
    """Answers with `status` what `refuses` says, and 503 so often as `away` says before that."""

    url: str = ""
    away: int = 0
    refuses: bytes = b"no such bytes"
    spans: list[bytes] = field(default_factory=list[bytes])
    headers: list[str | None] = field(default_factory=list[str | None])

    def answer(self, body: bytes) -> int:
        if self.away:
            self.away -= 1
            return 503
        if self.refuses in body:
            return 400
        self.spans += flat(ExportTraceServiceRequest.FromString(body))
        return 200


@contextmanager
def serving(stub: StubCollector) -> Iterator[StubCollector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            stub.headers.append(self.headers["authorization"])
            self.send_response(stub.answer(body) if self.path == "/v1/traces" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def looping(settings: Settings, name: str, topic: str, handler: Any, batch: int) -> Iterator[GroupLoop]:
    loop = GroupLoop(
        settings, name, [topic], cast(BatchHandler, handler), "test", counters=handler.counters, batch=batch
    )
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.stop()
        thread.join(90)
        assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


def read(settings: Settings, topic: str) -> list[Message]:
    return list(read_topic(settings, topic, [0], client_id="test"))


def letters(settings: Settings, topic: str) -> list[tuple[str, str, bytes | None]]:
    found = map(parse, read(settings, f"{topic}.dlq"))
    return [(letter.reason, letter.source_topic, letter.value) for letter in found]


def make_topic(settings: Settings, topic: str, values: Sequence[bytes]) -> None:
    admin = make_admin(settings)
    for future in cast(dict[str, Any], admin.create_topics([NewTopic(topic, 1, 1)])).values():
        future.result(20)
    end_offsets(admin, [(topic, 0)])  # its leader takes a moment more
    create_dead_letters(settings, topic)
    producer = make_producer(settings, "test-collector")
    for value in values:
        producer.produce(topic, value, None)
    assert producer.flush(20) == 0


def write(settings: Settings, message: OutMessage) -> None:
    producer = make_producer(settings, "test")
    producer.produce(message.topic, message.value, message.key)
    assert producer.flush(20) == 0


def test_spans_of_a_collectors_topic(make_settings: Callable[..., Settings]):
    base = make_settings(partitions=1)
    settings = load_settings_as(OtlpSettings, bootstrap=base.bootstrap, prefix=base.prefix, partitions=1)
    good, mixed = request_of("a", "b", "c"), request_of("d", "bad", "e", trace=10)

    topic = f"{settings.prefix}_otlp_spans"
    make_topic(settings, topic, [r.SerializeToString() for r in (good, mixed, good)] + [b"\xffno otlp", b"{}", b""])
    source = collector.CollectorSource(settings, "otlp_proto", "test")
    with looping(settings, collector.NAME, topic, source, collector.BATCH) as loop:
        wait_for(lambda: loop.counters.get("messages", 0) == 6)
    assert dict(source.counters) == {
        "requests": 4, "spans": 8, "rewards": 0, "malformed_span": 1, "not_otlp": 2, "messages": 6,
        "batches": source.counters["batches"],
    }  # fmt: skip
    codec = Codec(settings)
    spans = [cast(Span, codec.decode(m.value())) for m in read(settings, settings.topic("spans"))]
    assert [span.name for span in spans] == ["a", "b", "c", "d", "e", "a", "b", "c"]
    assert spans[0].rollout_id == spans[0].trace_id == f"{1:032x}"
    assert letters(settings, topic) == [("not_otlp", topic, b"\xffno otlp"), ("not_otlp", topic, b"{}")]
    [(reason, of, value)] = letters(settings, settings.topic("spans"))
    assert (reason, of) == ("malformed_span", settings.topic("spans"))
    assert value is not None

    consumer = make_consumer(settings, "test", group=collector.NAME)
    [committed] = consumer.committed([TopicPartition(topic, 0)], 20)
    consumer.close()
    assert committed.offset == 6


def test_every_span_goes_on_to_the_users_collector(make_settings: Callable[..., Settings]):
    base = make_settings(partitions=1)
    settings = load_settings_as(OtlpSettings, bootstrap=base.bootstrap, prefix=base.prefix, partitions=1)
    requests = [request_of("a", "b"), request_of("c", "poison", "d", trace=10), request_of("e", trace=20)]
    source = collector.CollectorSource(settings, "otlp_json", "test")
    topic = f"{settings.prefix}_otlp_spans"
    make_topic(settings, topic, [otlp_json(request).encode() for request in requests])
    source.handle(read(settings, topic))

    maker = MessageMaker(settings)
    deep, huge = "[" * 150 + "]" * 150, "9" * 400
    for attributes in (f'{{"a": {deep}}}', f'{{"a": {huge}}}', "no JSON"):
        span = Span(rollout_id="r", source="runner", trace_id="0a" * 16, span_id="0a" * 8, name="x", start=1, end=2)
        span.attributes = attributes
        write(settings, maker.whole(span))
    write(settings, OutMessage(settings.topic("spans"), None, b"\xffno record"))
    write(settings, OutMessage(settings.topic("spans"), None, None))

    stub = StubCollector(away=1, refuses=b"poison")
    with serving(stub):
        exporter = export.make_exporter(stub.url, {"authorization": "Bearer x"})
        spans = export.SpanExport(settings, exporter, "test")
        with looping(settings, export.NAME, settings.topic("spans"), spans, export.BATCH) as loop:
            wait_for(lambda: loop.counters.get("messages", 0) == 11)
    expected = sorted(one for request in requests for one in flat(request) if b"poison" not in one)
    assert sorted(stub.spans) == expected
    assert set(stub.headers) == {"Bearer x"}
    assert (spans.counters["spans"], spans.counters["refused_by_collector"]) == (5, 1)
    found = letters(settings, settings.topic("spans"))
    assert sorted(reason for reason, _, _ in found) == ["not_exportable"] * 3 + ["refused_by_collector"]
    assert {of for _, of, _ in found} == {settings.topic("spans")}
    assert partition_ids(settings, settings.topic("spans")) == [0]
