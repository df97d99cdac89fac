"""A pipeline on this machine, from Python: `headrace.up("pipeline.toml")`."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from headrace.local.errors import PipelineError
from headrace.local.pipeline_file import parse, read
from headrace.local.plan import PipelinePlan, plan
from headrace.local.supervisor import Supervisor


def load_plan(source: str | os.PathLike[str] | Mapping[str, Any], machine: str | None = None) -> PipelinePlan:
    """The plan of a pipeline file, or of the values that one would have.

    Raises:
        PipelineError: names each key that makes no sense, and what is allowed there.
    """
    if isinstance(source, Mapping):
        return plan(parse(source, "pipeline"), Path.cwd(), machine=machine, name="pipeline")
    path = Path(source)
    return plan(read(path), path.absolute().parent, machine=machine, name=str(path))


class Pipeline:
    """All parts of a pipeline that run on this machine; a context manager, at whose end none runs any more.

    Its processes end with this one, however it ends.
    """

    def __init__(self, plan: PipelinePlan) -> None:
        self._supervisor = Supervisor(plan)
        self._stop = threading.Event()
        self._changed = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)

    @property
    def bootstrap(self) -> str:
        """Kafka's HOST:PORT."""
        return self._supervisor.plan.bootstrap

    @property
    def prefix(self) -> str:
        """First part of all topic names."""
        return self._supervisor.plan.prefix

    def facts(self) -> dict[str, Any]:
        """Where the pipeline is, and each part with its process, its restarts and its log."""
        return self._supervisor.facts()

    def start(self) -> Self:
        """Starts all parts; returns when each is ready.

        Raises:
            PartFailedError: a part was never ready; all others have ended.
        """
        self._thread.start()
        try:
            self._changed.wait()
        except BaseException:  # Ctrl-C: nothing stays behind
            self.stop()
            raise
        if self._error is not None:
            self._thread.join()
            raise self._error
        return self

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it was stopped or has failed; false when the time is over before.

        Raises:
            HeadraceError: why it failed.
        """
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Ends all parts in their order; returns when none runs."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self if self._thread.ident is not None else self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._supervisor.run(self._stop, lambda facts: self._changed.set())
        except BaseException as error:  # raised again where it is waited for
            self._error = error
        finally:
            self._changed.set()


def up(source: str | os.PathLike[str] | Mapping[str, Any], *, machine: str | None = None) -> Pipeline:
    """Runs a pipeline on this machine, as `headrace up` does; returns when all its parts are ready.

    Args:
        source: a pipeline file, or the values that one would have; paths in values are relative to this folder.
        machine: starts the parts that name this machine; None: those that name none.

    Raises:
        PipelineError: the file makes no sense.
        PartFailedError: a part was never ready.

    Example:
        with headrace.up("pipeline.toml") as pipeline:
            print(pipeline.facts()["gateways"])
    """
    return Pipeline(load_plan(source, machine)).start()


__all__ = ["Pipeline", "PipelineError", "load_plan", "up"]
