"""The trace of one attempt: the rollout's span, and what was begun below it."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace as otel_trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode

from headrace.schemas.records import ErrorInfo
from headrace.streams.agent.errors import AttemptOverError
from headrace.streams.agent.tracer import AttemptTracer
from headrace.streams.assembly.reward_forms import read_rewards
from headrace.streams.assembly.values import span_attributes
from headrace.streams.counts import Counts
from headrace.streams.kafka.client_log import Seldom
from headrace.streams.tracing.spans import span_record

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

log = logging.getLogger(__name__)
log.addFilter(Seldom())

TRACED = "spans_traced"
LATE = "spans_late"
UNATTRIBUTED = "spans_unattributed"
REFUSED = "spans_refused"
REWARDS_REFUSED = "rewards_refused"
COUNTED = (TRACED, LATE, UNATTRIBUTED, REFUSED, REWARDS_REFUSED)
HEX = 16
STATUS_CHARACTERS = 1000


class AttemptTrace:
    """What `AttemptTracer.contexts` asks, and where the attempt's finished spans go.

    Attributes:
        open: names of the spans that have begun and not ended, by span id.
        forget: called with a span id that is no span's of this attempt any more.
    """

    def __init__(self, tracer: AttemptTracer, counts: Counts, trace_id: str, forget: Callable[[int], object]) -> None:
        self.trace_id = trace_id
        self.forget = forget
        self.closed = False
        self.open: dict[int, str] = {}
        self._tracer = tracer
        self._counts = counts
        self._root: Any = None

    def began(self, root: Any) -> None:
        """The rollout's span has begun; its context is the one of the agent."""
        self._root = root
        context: SpanContext = root.get_span_context()
        if context.is_valid:
            self.trace_id = f"{context.trace_id:032x}"

    def current(self) -> str:
        """See `SpanContexts`."""
        context = otel_trace.get_current_span().get_span_context()
        if not context.is_valid:
            context = self._root.get_span_context()
        return f"{context.span_id:016x}"

    def enter(self, span_id: str) -> Any:
        """See `SpanContexts`."""
        here = otel_trace.get_current_span().get_span_context()
        if not here.is_valid:
            here = self._root.get_span_context()
        inner = SpanContext(here.trace_id, int(span_id, HEX), False, here.trace_flags, here.trace_state)
        return otel_context.attach(otel_trace.set_span_in_context(NonRecordingSpan(inner)))

    def leave(self, token: Any) -> None:
        """See `SpanContexts`."""
        otel_context.detach(token)

    def take(self, span: "ReadableSpan") -> None:
        """A span of the attempt has ended, on any thread; never raises."""
        tracer = self._tracer
        try:
            record = span_record(span, tracer.rollout, tracer.next_number())
            read = read_rewards(record, span_attributes(record))
        except Exception as error:  # the agent's own code stands above this, and must not fail for what it traces
            self._refused(span.name, error)
            return
        self._counts.add(TRACED)
        self._counts.add(REWARDS_REFUSED, len(read.rejected))
        tracer.post([record, *read.rewards], lambda error: self._refused(span.name, error))

    def end(self, error: ErrorInfo | None) -> None:
        """Ends the rollout's span; once only, and never raises."""
        if not self._root.is_recording():
            return
        try:
            if error is not None:
                self._root.set_status(Status(StatusCode.ERROR, f"{error.type}: {error.message}"[:STATUS_CHARACTERS]))
            self._root.end()
        except Exception as problem:  # the user's own processors see the end too, and must not keep the rollout open
            self._refused("rollout", problem)

    def close(self) -> None:
        """The attempt is over: what has not ended by now is late."""
        self.closed = True
        left = dict(self.open)
        self.open.clear()
        for span_id in left:
            self.forget(span_id)
        if left:
            self._counts.add(LATE, len(left))
            log.warning(
                "%d spans of attempt %s had not ended when it did, and are not recorded: %s",
                *(len(left), self._tracer.rollout.attempt_id, ", ".join(sorted(set(left.values()))[:5])),
            )

    def _refused(self, name: str, error: Exception) -> None:
        self._counts.add(LATE if isinstance(error, AttemptOverError) else REFUSED)
        log.warning("Span %r of attempt %s is not recorded: %s", name, self._tracer.rollout.attempt_id, error)
