"""Where metrics go: event files for TensorBoard, or JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Protocol, cast

from headrace.streams.errors import HeadraceError


class NoTensorBoardError(HeadraceError):
    """The package that writes event files is not installed."""


class Sink(Protocol):
    """Takes scalars by name."""

    def write(self, values: Mapping[str, float], step: int, seconds: float) -> None:
        """Takes the scalars of one step.

        Args:
            seconds: since the epoch.
        """
        ...

    def close(self) -> None:
        """Everything is on disk."""
        ...


class TensorBoardSink:
    """Event files as TensorBoard reads them, one folder a run. Those of before are removed: all is written anew.

    Raises:
        NoTensorBoardError: the package is not there.
    """

    def __init__(self, directory: Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError as error:
            raise NoTensorBoardError("event files are written by tensorboard: pip install tensorboard") from error
        for old in directory.glob("events.out.tfevents.*"):
            old.unlink()
        self._event: Any = cast("Any", event_pb2).Event
        self._summary: Any = cast("Any", summary_pb2).Summary
        self._writer: Any = EventFileWriter(str(directory))

    def write(self, values: Mapping[str, float], step: int, seconds: float) -> None:
        """See `Sink`."""
        scalars = [self._summary.Value(tag=name, simple_value=value) for name, value in sorted(values.items())]
        self._writer.add_event(self._event(wall_time=seconds, step=step, summary=self._summary(value=scalars)))
        self._writer.flush()

    def close(self) -> None:
        """See `Sink`."""
        self._writer.close()


class JsonSink:
    """An object a line: `step`, `time` (seconds since the epoch), and the metrics by name."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out

    def write(self, values: Mapping[str, float], step: int, seconds: float) -> None:
        """See `Sink`."""
        self._out.write(json.dumps({"step": step, "time": seconds, **dict(sorted(values.items()))}) + "\n")
        self._out.flush()

    def close(self) -> None:
        """See `Sink`."""
        self._out.flush()
