"""The parts of the demo as public commands: what is started, in which order, with which flags."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from headrace.demo.tasks import TASKS, DemoTask
from headrace.local.processes import LAST, Part
from headrace.streams.errors import HeadraceError

POLICY = "policy"
RUNNERS = 2
CONCURRENCY = 96
PARTITIONS = 4  # two runners and one of each processor; every partition costs the broker a little
DATASET_ROUNDS = 20  # the feeder goes through the file again and again


class UnknownTaskError(HeadraceError):
    """The demo has no such task."""


@dataclass(frozen=True)
class Plan:
    """Everything that the demo's flags decide."""

    out: Path
    port: int
    seed: int
    task: DemoTask
    engine: str
    run_id: str
    prefix: str = "headrace"
    trainer: str = "grpo"

    @property
    def bootstrap(self) -> str:
        """Where the broker will listen."""
        return f"127.0.0.1:{self.port}"

    @property
    def model(self) -> Path:
        """Where the small model is made."""
        return self.out / "model"

    @property
    def dataset(self) -> Path:
        """The tasks that the feeder produces."""
        return self.out / "tasks.jsonl"

    @property
    def window_groups(self) -> int:
        """Groups a window."""
        return int(self.task.training["window_groups"])

    @property
    def group_size(self) -> int:
        """Samples a group."""
        return int(self.task.training["group_size"])

    def broker(self) -> Part:
        """Kafka."""
        return Part("broker", ("broker", "--port", str(self.port), "--data", str(self.out / "kafka")), stop_order=LAST)

    def topics(self) -> Part:
        """The topics."""
        return Part("topics", ("topics", "create", "--partitions", str(PARTITIONS), *self._join()), stays=False)

    def make_model(self) -> Part:
        """The small model."""
        argv = ("model", "create", str(self.model), "--task", self.task.name, "--seed", str(self.seed))
        return Part("model", argv, stays=False)

    def services(self) -> Iterator[Part]:
        """The parts that need the topics; those that take long to start come first."""
        join = self._join()
        model = str(self.model)
        yield Part(
            "engine",
            ("engine", self.engine, model, "--policy", POLICY, "--wait-model", "60", *ENGINE_FLAGS[self.engine], *join),
        )
        training = (*self._training(), *TRAINER_FLAGS[self.trainer])
        yield Part("trainer", ("trainer", self.trainer, "--model", model, "--wait-model", "60", *training, *join))
        yield Part("gateway", ("gateway", "--policy", POLICY, *join))
        yield Part("sync", ("sync", "--policy", POLICY, *join))
        yield Part("lifecycle", ("processor", "lifecycle", "--worker-id", "lifecycle-1", *join))
        yield Part("assembler", ("processor", "assembler", "--worker-id", "assembler-1", *join))
        yield Part("statistics", ("processor", "statistics", *join), vital=False)
        agent = "headrace.demo.agents:" + self.task.name.replace("-", "_")
        for n in range(1, RUNNERS + 1):
            argv = ("runner", agent, "--concurrency", str(CONCURRENCY), "--worker-id", f"runner-{n}", *join)
            yield Part(f"runner-{n}", argv)

    def feeder(self) -> Part:
        """The process that produces tasks."""
        window = self.window_groups * self.group_size
        return Part(
            "feeder",
            (
                *("tasks", "produce", str(self.dataset), "--follow", self.run_id),
                *("--group-size", str(self.group_size), "--window", str(window), "--seed", str(self.seed)),
                # The file comes in rounds of all problems, each in an order of its own: a window sees all of them.
                *("--max-staleness", str(MAX_STALENESS), "--no-shuffle", "--json"),
                *self._join(),
            ),
            stays=False,  # it ends by itself when the run has reached its goal
        )

    def all_parts(self) -> list[Part]:
        """Every command, in an order in which they may be started by hand."""
        return [self.broker(), self.topics(), self.make_model(), *self.services(), self.feeder()]

    def write_dataset(self) -> None:
        """Writes the tasks; whoever runs the printed commands needs the file too."""
        samples = islice(self.task.samples(self.seed), len(self.task.problems) * DATASET_ROUNDS)
        self.dataset.parent.mkdir(parents=True, exist_ok=True)
        self.dataset.write_text("".join(json.dumps({"input": s, "mode": "train"}) + "\n" for s in samples))

    def _join(self) -> tuple[str, ...]:
        return ("--bootstrap", self.bootstrap, "--prefix", self.prefix)

    def _training(self) -> tuple[str, ...]:
        training = self.task.training
        return (
            *("--run", self.run_id, "--policy", POLICY, "--seed", str(self.seed)),
            *("--group-size", str(self.group_size), "--window-groups", str(self.window_groups)),
            *("--lr", str(training["learning_rate"]), "--entropy", str(training["entropy"])),
            *("--max-grad-norm", str(training["max_grad_norm"])),
            *("--max-staleness", str(MAX_STALENESS), "--goal", str(self.task.goal)),
            *("--checkpoints", str(self.out / "checkpoints")),
        )


MAX_STALENESS = 3
# A busy machine gains more from fuller batches than it loses by a few milliseconds a call.
ENGINE_FLAGS: dict[str, tuple[str, ...]] = {"builtin": ("--wait-ms", "12"), "vllm": ()}
# Of rollouts with one row each, row_mean is what rollout_mean is.
TRAINER_FLAGS: dict[str, tuple[str, ...]] = {"grpo": (), "verl": ("--aggregation", "row_mean")}


def task_named(name: str) -> DemoTask:
    """The demo task of a name.

    Raises:
        UnknownTaskError: there is none.
    """
    if name not in TASKS:
        raise UnknownTaskError(f"no demo task {name!r}; there are {', '.join(TASKS)}")
    return TASKS[name]
