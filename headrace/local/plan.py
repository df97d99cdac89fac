"""A pipeline file as processes: which are started here, in which order, with which words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from headrace.local.catalogue import FEEDER, JOB, KINDS, SERVICE, Kind
from headrace.local.errors import PipelineError
from headrace.local.options import CommandOptions
from headrace.local.pipeline_file import READY_SECONDS, FeederTable, PartTable, PipelineFile
from headrace.local.ports import free_port
from headrace.local.processes import LAST, Part

BROKER, TOPICS = "broker", "topics"


@dataclass(frozen=True)
class Planned:
    """A part with what its supervisor needs to know."""

    part: Part
    stage: int
    may_end: bool = False
    restart: bool = True
    ends_all: bool = False
    ready_seconds: float = READY_SECONDS


@dataclass(frozen=True)
class PipelinePlan:
    """What one machine runs of a pipeline.

    Attributes:
        folder: of logs, of Kafka's data and of what is written for the parts.
        elsewhere: names of the parts that run on other machines.
        files: what is written before the start, by path.
    """

    folder: Path
    bootstrap: str
    prefix: str
    registry: str | None
    parts: tuple[Planned, ...]
    elsewhere: tuple[str, ...] = ()
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])

    @property
    def logs(self) -> Path:
        """A file a part."""
        return self.folder / "logs"

    def stage(self, stage: int) -> list[Planned]:
        """The parts of one stage, in the order of their start."""
        return [p for p in self.parts if p.stage == stage]

    def write_files(self) -> None:
        """Writes what the parts read."""
        for path, text in self.files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def plan(file: PipelineFile, base: Path, *, machine: str | None = None, name: str = "pipeline.toml") -> PipelinePlan:
    """The processes of a machine.

    Args:
        base: the folder where parts run and to which paths are relative.
        machine: whose parts; None: those that name no machine.
        name: of the file, for messages.

    Raises:
        PipelineError: an option that a command does not take, or parts that cannot reach each other.
    """
    try:
        return _Planner(file, base.absolute(), machine).plan()
    except PipelineError as error:
        raise PipelineError(f"{name}: {error}") from None


class _Planner:
    def __init__(self, file: PipelineFile, base: Path, machine: str | None) -> None:
        self._file = file
        self._base = base
        self._machine = machine
        self._folder = base / file.folder
        self._files: dict[Path, str] = {}
        self._elsewhere: list[str] = []
        kafka = file.kafka
        self._local_kafka = kafka.bootstrap is None
        self._bootstrap = kafka.bootstrap or f"127.0.0.1:{kafka.port or free_port()}"
        self._registry = file.registry
        if kafka.with_registry and not self._local_kafka:
            raise PipelineError(
                "kafka.with_registry: the cluster runs elsewhere; name its registry's URL in `registry`"
            )

    def plan(self) -> PipelinePlan:
        parts = [*self._kafka(), *(p for name, kind in KINDS.items() for p in self._kind(name, kind))]
        if not any(p.part.name not in (BROKER, TOPICS) for p in parts):
            raise PipelineError(self._nothing())
        return PipelinePlan(
            self._folder,
            self._bootstrap,
            self._file.prefix,
            self._registry,
            tuple(parts),
            tuple(self._elsewhere),
            self._files,
        )

    def _nothing(self) -> str:
        machines = sorted({t.machine for name in KINDS for t in self._tables(name) if t.machine})
        if self._machine is not None:
            return f"no part runs on machine {self._machine!r}; the file names {', '.join(machines) or 'no machine'}"
        return f"no part runs here; name at least one of {', '.join(KINDS)}"

    def _tables(self, name: str) -> list[PartTable]:
        return list(getattr(self._file, name))

    def _kafka(self) -> Iterator[Planned]:
        if self._machine is not None:
            if self._local_kafka:
                raise PipelineError(
                    f"kafka: the local broker listens on 127.0.0.1 alone, where {self._machine!r} does not reach it; "
                    "name your cluster in kafka.bootstrap"
                )
            return
        kafka = self._file.kafka
        if self._local_kafka:
            data = kafka.data or str(self._folder / "kafka")
            words = ["broker", "--port", self._bootstrap.rpartition(":")[2], "--data", data]
            words += ["--registry"] if kafka.with_registry else []
            yield Planned(Part(BROKER, tuple(words), stop_order=LAST, folder=self._base), JOB)
        options = {"partitions": kafka.partitions, "replication_factor": kafka.replication_factor}
        given = {k: v for k, v in options.items() if v is not None}
        argv = CommandOptions(("topics", "create"), "kafka").argv(given, self._given())
        yield Planned(self._part(TOPICS, argv, stays=False), JOB, may_end=True, restart=False)

    def _kind(self, name: str, kind: Kind) -> Iterator[Planned]:
        number = 0
        for table in self._tables(name):
            if table.machine is not None and self._local_kafka:
                raise PipelineError(
                    f"{name}.machine: {table.machine!r} does not reach the local broker, which listens on 127.0.0.1; "
                    "name your cluster in kafka.bootstrap"
                )
            if table.machine != self._machine:
                self._elsewhere += [f"{name}@{table.machine or 'here'}"] * min(1, table.count)
                continue
            command = (*kind.command, getattr(table, kind.choice)) if kind.choice else kind.command
            options = self._options(name, command)
            if name == "model" and (self._base / str(table.options.get("directory"))).exists():
                continue  # it was made before, and is never overwritten
            for _ in range(table.count):
                number += 1
                own = name if number == 1 else f"{name}-{number}"
                yield self._planned(own, kind, table, options)

    def _options(self, name: str, command: tuple[str, ...]) -> CommandOptions:
        try:
            return CommandOptions(command, name)
        except (KeyError, AttributeError):
            from headrace.cli.app import load

            known = ", ".join(load(command[0]).commands)
            raise PipelineError(f"{name}.{KINDS[name].choice}: {command[-1]!r} is none of {known}") from None

    def _planned(self, own: str, kind: Kind, table: PartTable, options: CommandOptions) -> Planned:
        values = table.options
        given = self._given() | {
            "worker_id": own if self._machine is None else f"{self._machine}-{own}",
            "policy": self._file.policy,
            "run": self._file.run,
            "checkpoints": str(self._folder / "checkpoints"),
        }
        if isinstance(table, FeederTable):
            given["follow"] = self._file.run
            if table.tasks is not None:
                if "file" in values:
                    raise PipelineError(f"{own}: either `file` or `tasks`")
                path = self._folder / f"{own}.jsonl"
                self._files[path] = "".join(json.dumps(task) + "\n" for task in table.tasks)
                values["file"] = str(path)
        argv = options.argv(values, given, table.arguments)
        self._check_code(own, values)
        part = self._part(
            own,
            argv,
            stays=not kind.may_end,
            stop_order=kind.stop_order,
            stop_seconds=max(kind.stop_seconds, float(values.get("drain", 0)) + 15),
            environment=table.environment,
        )
        restart = table.restart and kind.stage != JOB
        return Planned(part, kind.stage, kind.may_end, restart, table.ends_all, table.ready_seconds)

    def _check_code(self, name: str, options: Mapping[str, Any]) -> None:
        """Agents, hooks and graders are files of the user's: one that is not there is missed before anything starts."""
        for key, value in options.items():
            place = str(value).rpartition(":")[0]
            if place.endswith(".py") and not (self._base / place).is_file():
                raise PipelineError(f"{name}.{key}: there is no file {place} in {self._base}")

    def _given(self) -> dict[str, Any]:
        return {
            "bootstrap": self._bootstrap,
            "prefix": self._file.prefix,
            "registry": self._registry,
            "registry_url": self._registry,
        }

    def _part(
        self, name: str, argv: tuple[str, ...], *, environment: Mapping[str, str] = MappingProxyType({}), **more: Any
    ) -> Part:
        variables = {**self._file.environment, **environment}
        return Part(name, argv, environment=variables, folder=self._base, **more)


__all__ = ["BROKER", "FEEDER", "JOB", "SERVICE", "TOPICS", "PipelinePlan", "Planned", "plan"]
