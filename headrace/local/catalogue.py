"""The kinds of parts that a pipeline file knows: their commands, and in which order they start and end."""

from dataclasses import dataclass

from headrace.local.processes import STOP_SECONDS

JOB, SERVICE, FEEDER = 0, 1, 2
"""Stages of the start: a stage is ready before the next one is started."""

DRAIN_SECONDS = 45.0  # runners let their rollouts finish for 30 seconds, and then leave


@dataclass(frozen=True)
class Kind:
    """A kind of part.

    Attributes:
        command: after `headrace`; a key named `choice` of its table adds the last word.
        choice: `kind` of an engine, `algorithm` of a trainer.
        may_end: exit code 0 says that its work is done.
        stop_order: see `Part`.
    """

    command: tuple[str, ...]
    choice: str | None = None
    stage: int = SERVICE
    may_end: bool = False
    stop_order: int = 3
    stop_seconds: float = STOP_SECONDS


KINDS: dict[str, Kind] = {
    "model": Kind(("model", "create"), stage=JOB, may_end=True),
    "engine": Kind(("engine",), choice="kind", stop_order=4),
    "trainer": Kind(("trainer",), choice="algorithm", may_end=True, stop_order=2),
    "gateway": Kind(("gateway",), stop_order=4),
    "sync": Kind(("sync",)),
    "lifecycle": Kind(("processor", "lifecycle")),
    "assembler": Kind(("processor", "assembler")),
    "statistics": Kind(("processor", "statistics")),
    "view": Kind(("processor", "view")),
    "otlp": Kind(("otlp",)),
    "otlp_collector": Kind(("processor", "otlp")),
    "otlp_export": Kind(("processor", "otlp-export")),
    "grader": Kind(("processor", "grader"), stop_order=2),
    "validator": Kind(("validate",), stage=FEEDER, may_end=True, stop_order=0),
    "metrics": Kind(("metrics",), stop_order=4),
    # Rollouts finish while all that they need is there.
    "runner": Kind(("runner",), stop_order=1, stop_seconds=DRAIN_SECONDS),
    "feeder": Kind(("tasks", "produce"), stage=FEEDER, may_end=True, stop_order=0),
}
