"""An unmodified OpenTelemetry exporter on real Kafka: its traces come out as trajectories."""

import urllib.error
import urllib.request
from contextlib import ExitStack
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from headrace.schemas.packing import unpack_int32
from headrace.schemas.records import Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.streams.workers import Workers
from tests.processes import running
from tests.waiting import until

pytestmark = pytest.mark.kafka


def call(tracer: trace.Tracer, number: int, **attributes: Any) -> None:
    """A model call as an instrumentation library with token ids traces it."""
    with tracer.start_as_current_span("chat m", kind=trace.SpanKind.CLIENT) as span:
        span.set_attributes(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.response.id": f"response-{number}",
                "gen_ai.response.finish_reasons": ["stop"],
                "prompt_token_ids": [1, 2, number],
                "response_token_ids": [number],
                **attributes,
            }
        )


def trajectories(settings: Settings, wanted: set[str]) -> dict[str, Trajectory]:
    """The trajectories of rollouts, waited for."""
    topic, codec = settings.topic("triplets"), Codec(settings)
    partitions = partition_ids(settings, topic)
    found: dict[str, Trajectory] = {}

    def there() -> bool:
        for message in read_topic(settings, topic, partitions, client_id="test"):
            record = codec.decode(message.value())
            assert isinstance(record, Trajectory)
            found[record.rollout_id] = record
        return wanted <= found.keys()

    until(there, what=f"of {wanted} not all came")
    return found


def test_an_unmodified_exporter(settings: Settings, monkeypatch: pytest.MonkeyPatch):
    with ExitStack() as stack:
        ready = stack.enter_context(running(settings, "otlp", "--port", "0"))
        stack.enter_context(running(settings, "processor", "assembler", "--settle-seconds", "0.2"))
        workers = Workers(settings, client_id="test").start()
        stack.callback(workers.close)
        assert [worker.endpoint for worker in workers.live("otlp")] == [ready["url"]]

        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ready["url"])
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        provider = TracerProvider(resource=Resource({"service.name": "agent", "session.id": "s-1"}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        stack.callback(provider.shutdown)
        tracer = provider.get_tracer("agent")

        with tracer.start_as_current_span("agent run") as at_once:
            call(tracer, 7)
            with tracer.start_as_current_span("judge") as reward:
                reward.set_attribute("agentlightning.reward.0.value", 0.5)
        assert provider.force_flush()

        with tracer.start_as_current_span("agent run") as in_two:
            call(tracer, 8)
            assert provider.force_flush()
            call(tracer, 9)
        assert provider.force_flush()

        with tracer.start_as_current_span("agent run") as without_ids, tracer.start_as_current_span("chat m") as span:
            span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
        assert provider.force_flush()

        ids = [f"{span.get_span_context().trace_id:032x}" for span in (at_once, in_two, without_ids)]
        found = trajectories(settings, set(ids))
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{ready['url']}/v1/logs", data=b"", timeout=10)

    first, second, third = (found[rollout_id] for rollout_id in ids)
    assert {(t.origin, t.session_id, t.status) for t in found.values()} == {("external", "s-1", "succeeded")}
    assert [list(unpack_int32(t.response_token_ids)) for t in first.triplets] == [[7]]
    assert (first.final_reward, first.triplets[0].reward) == (0.5, 0.5)
    assert [list(unpack_int32(t.response_token_ids)) for t in second.triplets] == [[8], [9]]
    assert (third.triplets, third.diagnostics.dropped) == ([], {"no_token_ids": 1})
