"""What observes an agent's call in the process that runs it: a tracer, and hooks."""

import logging
from typing import TYPE_CHECKING

from headrace.streams.agent.hooks import RunnerFacts
from headrace.streams.agent.tracer import AttemptTracer
from headrace.streams.counts import Counts
from headrace.streams.kafka.client_log import Seldom
from headrace.streams.runner.hooks import COUNTED, Hooks, load_hook
from headrace.streams.runner.options import ObserverOptions
from headrace.streams.tracing.names import TracerName

if TYPE_CHECKING:
    from headrace.streams.tracing.attempt import AttemptTrace
    from headrace.streams.tracing.otel import OtelTracing

log = logging.getLogger(__name__)
log.addFilter(Seldom())

TRACE_ERRORS = "trace_errors"


class Observers:
    """The observers of one process.

    Args:
        worker_id: of the runner.
        alone: this process runs one attempt at a time.
    """

    def __init__(self, options: ObserverOptions, worker_id: str, *, alone: bool) -> None:
        self.counts = Counts()
        self.tracing: OtelTracing | None = None
        self.hooks: Hooks | None = None
        self._options = options
        self._worker_id = worker_id
        self._alone = alone

    def load(self) -> "Observers":
        """Loads hooks, starts the tracer and instruments libraries; after the agent's module, whose provider is joined.

        Raises:
            HookLoadError, InstrumentationError, TracerError: one of them is not there, or does not work.
        """
        options = self._options
        if options.hooks:
            found = [load_hook(spec) for spec in options.hooks]
            self.counts.declare(COUNTED)
            self.hooks = Hooks(found, RunnerFacts(self._worker_id), options.hook_seconds, self.counts)
        if options.tracer is not TracerName.NONE:
            from headrace.streams.tracing.attempt import COUNTED as TRACE_COUNTED

            self.counts.declare(TRACE_COUNTED)
            self.tracing = self._tracing()
            self.tracing.install()
        if options.instrument:
            from headrace.streams.tracing.instrumentation import instrument

            instrument(options.instrument)
        return self

    def begin(self, tracer: AttemptTracer) -> "AttemptTrace | None":
        """An attempt begins in this context; its trace, if it is traced."""
        if self.hooks is not None:
            tracer.kept = []
        if self.tracing is None:
            return None
        try:
            return self.tracing.begin(tracer)
        except Exception as error:  # providers and samplers are the user's, and a rollout is worth more than its trace
            self.counts.add(TRACE_ERRORS)
            log.exception("Rollout %s is not traced: %s", tracer.rollout.rollout_id, error)
            return None

    def end(self, trace: "AttemptTrace | None") -> None:
        """All that the attempt has said is written."""
        if trace is not None and self.tracing is not None:
            self.tracing.close(trace)

    def _tracing(self) -> "OtelTracing":
        if self._options.tracer is TracerName.AGENTOPS:
            from headrace.streams.tracing.agentops import AgentOpsTracing

            return AgentOpsTracing(self.counts, alone=self._alone)
        from headrace.streams.tracing.otel import OtelTracing

        return OtelTracing(self.counts, alone=self._alone)
