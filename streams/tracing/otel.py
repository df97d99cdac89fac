"""The tracer on OpenTelemetry's SDK: one span processor a process, which tells the spans of its attempts apart.

Spans belong to the attempt in whose context they begin (OpenTelemetry's context, else Python's), so attempts run side
by side on one event loop and on threads. Source: OpenTelemetry specification, "Tracing SDK", SpanProcessor.
"""

import logging
import os
from importlib.metadata import version
from typing import Any, cast

from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from headrace.streams.agent.tracer import CURRENT, AttemptTracer
from headrace.streams.counts import Counts
from headrace.streams.tracecontext import attempt_trace_id
from headrace.streams.tracing.attempt import LATE, UNATTRIBUTED, AttemptTrace

log = logging.getLogger(__name__)

ROOT = "rollout"
SERVICE = "headrace-agent"
ATTEMPT = otel_context.create_key("headrace-attempt")
HEX = 16


class AttemptSpans(SpanProcessor):
    """Hands each finished span to its attempt. Its methods run in the agents' code, and never block or raise.

    Args:
        alone: at most one attempt runs in this process at a time: what names no attempt is that one's.
    """

    def __init__(self, counts: Counts, *, alone: bool) -> None:
        self._counts = counts
        self._alone = alone
        self._open: dict[int, AttemptTrace] = {}
        self._traces: dict[int, AttemptTrace] = {}

    def opened(self, trace: AttemptTrace) -> None:
        """An attempt begins."""
        self._traces[int(trace.trace_id, HEX)] = trace

    def closed(self, trace: AttemptTrace) -> None:
        """An attempt is over."""
        self._traces.pop(int(trace.trace_id, HEX), None)

    def forget(self, span_id: int) -> None:
        """A span is no attempt's any more."""
        self._open.pop(span_id, None)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Notes whose it is."""
        trace = self._owner(span, parent_context)
        if trace is None:
            self._counts.add(UNATTRIBUTED)
        elif trace.forget != self.forget:  # of another runner in this process, which has a processor of its own
            return
        elif trace.closed:
            self._counts.add(LATE)
        else:
            span_id = span.get_span_context().span_id
            trace.open[span_id] = span.name
            self._open[span_id] = trace

    def on_end(self, span: ReadableSpan) -> None:
        """Records it."""
        context = span.get_span_context()
        if context is None:
            return
        trace = self._open.pop(context.span_id, None)
        if trace is None:
            return
        trace.open.pop(context.span_id, None)
        if context.trace_flags.sampled:
            trace.take(span)

    def shutdown(self) -> None:
        """Whoever shuts the user's provider down ends no attempt."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back here: the end of an attempt waits for its records."""
        return True

    def _owner(self, span: Span, parent_context: Context | None) -> AttemptTrace | None:
        found = otel_context.get_value(ATTEMPT, parent_context) or otel_context.get_value(ATTEMPT)
        if isinstance(found, AttemptTrace):
            return found
        tracer = CURRENT.get()
        if tracer is not None and isinstance(tracer.contexts, AttemptTrace):
            return tracer.contexts
        trace = self._traces.get(span.get_span_context().trace_id)
        if trace is None and self._alone and len(self._traces) == 1:
            return next(iter(self._traces.values()), None)
        return trace


class _AttemptIds(RandomIdGenerator):
    """Gives the rollout's span the trace id that the gateway derives too."""

    def __init__(self) -> None:
        self.trace_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def is_trace_id_random(self) -> bool:
        return False


class OtelTracing:
    """Traces the attempts of this process. Call all of it on the event loop."""

    def __init__(self, counts: Counts, *, alone: bool = False) -> None:
        self._counts = counts
        self._processor = AttemptSpans(counts, alone=alone)
        self._provider: Any = None
        self._tracer: Any = None
        self._ids = _AttemptIds()

    def install(self) -> None:
        """Joins the process's TracerProvider: the user's, if there is one, else a new one.

        A provider is never replaced, and what it exports elsewhere it goes on exporting.
        """
        provider: Any = otel_trace.get_tracer_provider()
        if provider is self._provider:
            return
        if not hasattr(provider, "add_span_processor"):  # nobody has set one
            otel_trace.set_tracer_provider(TracerProvider(resource=_resource()))
            provider = otel_trace.get_tracer_provider()
        cast(TracerProvider, provider).add_span_processor(self._processor)
        self._provider = provider
        self._tracer = provider.get_tracer("headrace", version("headrace"))
        if hasattr(self._tracer, "id_generator"):  # another library's provider may have tracers of its own kind
            self._tracer.id_generator = self._ids

    def begin(self, tracer: AttemptTracer) -> AttemptTrace:
        """Begins the rollout's span in this context, which the agent's tasks and threads inherit."""
        self.install()  # the agent may have set a provider since
        rollout = tracer.rollout
        trace_id = attempt_trace_id(rollout.rollout_id, rollout.attempt_id)
        trace = AttemptTrace(tracer, self._counts, trace_id, self._processor.forget)
        self._ids.trace_id = int(trace_id, HEX)
        context = otel_context.set_value(ATTEMPT, trace, Context())
        facts = {"headrace.rollout_id": rollout.rollout_id, "headrace.attempt_id": rollout.attempt_id}
        if rollout.mode is not None:
            facts["headrace.mode"] = rollout.mode
        try:
            root = self._tracer.start_span(ROOT, context=context, attributes=facts)
        except Exception:  # of a processor of the user's, when ours knows the span already
            trace.close()
            raise
        trace.began(root)
        self._processor.opened(trace)
        otel_context.attach(otel_trace.set_span_in_context(root, context))
        tracer.contexts = trace
        return trace

    def close(self, trace: AttemptTrace) -> None:
        """The attempt is over."""
        trace.close()
        self._processor.closed(trace)


def _resource() -> Resource:
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create(None if named else {"service.name": SERVICE})
