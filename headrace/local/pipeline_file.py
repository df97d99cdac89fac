"""A pipeline file: which parts there are, where they run, and with which options."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from headrace.local.errors import PipelineError

READY_SECONDS = 120.0


class Table(BaseModel):
    """Refuses keys that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaTable(Table):
    """The brokers: those of `bootstrap`, else a local one."""

    bootstrap: str | None = None
    """HOST:PORT of a cluster that runs elsewhere; without it a broker is started here."""
    port: int = Field(default=9092, ge=0, le=65535)
    """Of the local broker, on 127.0.0.1; 0 takes a free one."""
    data: str | None = None
    """Its topics; default: kafka in the pipeline's folder."""
    with_registry: bool = False
    """Starts a schema registry too."""
    partitions: int | None = Field(default=None, ge=1)
    """Of each topic keyed by rollout, when the topics are made."""
    replication_factor: int | None = Field(default=None, ge=1)


class PartTable(BaseModel):
    """A part; what is not listed here is an option of its command."""

    model_config = ConfigDict(extra="allow", frozen=True)

    count: int = Field(default=1, ge=0, le=1000)
    """So many processes."""
    machine: str | None = None
    """The machine that it runs on: started by `headrace up --machine NAME` there, and not here."""
    ends_all: bool = False
    """The pipeline ends when the work of this part is done: when the feeder has seen the goal reached, for instance."""
    restart: bool = True
    """Starts again when it ends before it was told to."""
    ready_seconds: float = Field(default=READY_SECONDS, gt=0)
    """It must be ready so soon."""
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    """Variables of its own."""
    arguments: list[str] = Field(default_factory=list[str])
    """Words for its command line as they are."""

    @property
    def options(self) -> dict[str, Any]:
        """What its command is told."""
        return dict(self.model_extra or {})


class EngineTable(PartTable):
    """`headrace engine KIND`."""

    kind: str = "builtin"


class TrainerTable(PartTable):
    """`headrace trainer ALGORITHM`."""

    algorithm: str = "grpo"


class FeederTable(PartTable):
    """`headrace tasks produce` or `validate`: of a file, or of tasks that stand here."""

    tasks: list[dict[str, Any]] | None = None


Parts = list[PartTable]


class PipelineFile(Table):
    """All of it. A part that comes several times is an array of tables: `[[grader]]`."""

    folder: str = "pipeline"
    """Logs, Kafka's data and checkpoints; relative to the file, as all paths are."""
    prefix: str = "headrace"
    """First part of all topic names."""
    registry: str | None = None
    """URL of a schema registry that runs elsewhere."""
    policy: str = "policy"
    """What is trained and served, for every part that takes `policy`."""
    run: str | None = None
    """Name of the training run, for the trainer and what follows it."""
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    """Variables of all parts."""
    kafka: KafkaTable = Field(default_factory=KafkaTable)
    model: list[PartTable] = Field(default_factory=Parts)
    engine: list[EngineTable] = Field(default_factory=list[EngineTable])
    gateway: list[PartTable] = Field(default_factory=Parts)
    sync: list[PartTable] = Field(default_factory=Parts)
    lifecycle: list[PartTable] = Field(default_factory=Parts)
    assembler: list[PartTable] = Field(default_factory=Parts)
    statistics: list[PartTable] = Field(default_factory=Parts)
    view: list[PartTable] = Field(default_factory=Parts)
    otlp: list[PartTable] = Field(default_factory=Parts)
    otlp_collector: list[PartTable] = Field(default_factory=Parts)
    otlp_export: list[PartTable] = Field(default_factory=Parts)
    grader: list[PartTable] = Field(default_factory=Parts)
    runner: list[PartTable] = Field(default_factory=Parts)
    trainer: list[TrainerTable] = Field(default_factory=list[TrainerTable])
    feeder: list[FeederTable] = Field(default_factory=list[FeederTable])
    validator: list[FeederTable] = Field(default_factory=list[FeederTable])
    metrics: list[PartTable] = Field(default_factory=Parts)

    @field_validator(
        "model", "engine", "gateway", "sync", "lifecycle", "assembler", "statistics", "view", "otlp", "otlp_collector",
        "otlp_export", "grader", "runner", "trainer", "feeder", "validator", "metrics",
        mode="before",
    )  # fmt: skip
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return cast("list[Any]", value) if isinstance(value, list) else [value]


def parse(values: Mapping[str, Any], name: str) -> PipelineFile:
    """The pipeline of a file's values.

    Args:
        name: of the file, for messages.

    Raises:
        PipelineError: names each key that makes no sense, and what is allowed there.
    """
    try:
        return PipelineFile.model_validate(values)
    except ValidationError as error:
        lines = [_problem(problem["type"], problem["loc"], problem["msg"]) for problem in error.errors()]
        raise PipelineError(f"{name}: " + "; ".join(lines)) from error


def read(path: Path) -> PipelineFile:
    """The pipeline of a TOML file.

    Raises:
        PipelineError: it is not there, no TOML, or has keys that make no sense.
    """
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror}; `headrace up --example` prints one") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PipelineError(f"{path} is no TOML: {error}") from error
    return parse(values, str(path))


def _problem(kind: str, place: tuple[int | str, ...], message: str) -> str:
    names = [str(p) for p in place]
    where = ".".join(n for n in names if not n.isdigit()) or "the file"
    if kind != "extra_forbidden":
        return f"{where}: {message}"
    fields = KafkaTable.model_fields if names[0] == "kafka" and len(names) > 1 else PipelineFile.model_fields
    near = get_close_matches(names[-1], fields, 1)
    hint = f"; did you mean {near[0]}?" if near else ";"
    return f"{where}: there is no such key{hint} allowed: {', '.join(fields)}"
