"""The tracer on OpenTelemetry's SDK with AgentOps' instrumentation and decorators (agentops 0.4).

With `AGENTOPS_API_KEY` the spans go to AgentOps too. Without it `agentops.init` is not called, since its exporters
would send to the hosted service all the same: AgentOps writes to the process's own provider then.
"""

import importlib
import os
from typing import Any

from headrace.streams.errors import HeadraceError
from headrace.streams.tracing.otel import OtelTracing


class TracerError(HeadraceError):
    """The tracer that was asked for is not there, or not of a version that is known."""


class AgentOpsTracing(OtelTracing):
    """As its base; AgentOps is started by the first `install`."""

    _started = False

    def install(self) -> None:
        """Starts AgentOps, unless the agent's module has, and joins its provider.

        Raises:
            TracerError: agentops is not installed.
        """
        if not self._started:
            self._start()
            self._started = True
        super().install()

    def _start(self) -> None:
        try:
            agentops: Any = importlib.import_module("agentops")
            instrumentation: Any = importlib.import_module("agentops.instrumentation")
            core: Any = importlib.import_module("agentops.sdk.core").tracer
        except ImportError as error:
            raise TracerError(f"--tracer agentops: pip install 'headrace[agentops]' ({error})") from error
        if core.initialized:
            return
        if os.environ.get("AGENTOPS_API_KEY"):
            agentops.init(auto_start_session=False)
            return
        super().install()
        if not hasattr(core, "_initialized"):
            raise TracerError("--tracer agentops: its version is not known; pip install 'agentops<0.5'")
        core.provider = self._provider
        core._initialized = True
        instrumentation.instrument_all()
