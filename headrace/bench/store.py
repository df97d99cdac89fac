"""One scenario of the store benchmark on a pipeline of its own: start, load, wait, check."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from headrace.bench.check import Verdict, check
from headrace.bench.scenarios import Scenario
from headrace.bench.schedule import done_until_next, ideal_seconds, tasks_to_ask
from headrace.local.processes import LAST, Part, PartFailedError, Processes
from headrace.schemas.records import Record, Task, Trajectory
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.partitioner import partition_of
from headrace.streams.producing import TaskProducer
from headrace.streams.settings import load_settings

AGENT = "headrace.bench.agent:store_agent"
PARTITIONS_A_RUNNER = 4
WARM_UP_SECONDS = 60.0
STALL_SECONDS = 60.0
TELL_SECONDS = 0.5


@dataclass(frozen=True)
class Result:
    """A finished scenario; seconds from the first task asked for to the last trajectory read."""

    scenario: Scenario
    processes: int
    seconds: float
    ideal: float
    verdict: Verdict
    cpu: dict[str, float]

    def facts(self) -> dict[str, Any]:
        """What the command prints."""
        scenario, verdict = self.scenario, self.verdict
        rate = scenario.tasks / self.seconds
        records = verdict.spans + verdict.rewards
        return {
            "scenario": scenario.name,
            "tasks": scenario.tasks,
            "slots": scenario.slots,
            "runner_processes": self.processes,
            "seconds": round(self.seconds, 1),
            "rollouts_per_second": round(rate, 2),
            "spans_per_second": round(records / self.seconds),
            "ceiling": round(scenario.ceiling, 1),
            "of_ceiling": round(rate / scenario.ceiling, 3),
            "ideal_seconds": round(self.ideal, 1),
            "of_ideal": round(self.ideal / self.seconds, 3),
            "agent_lightning": scenario.published,
            "cpu_ms_per_rollout": round(1000 * sum(self.cpu.values()) / scenario.tasks, 2),
            "cpu_seconds": {name: round(seconds, 1) for name, seconds in self.cpu.items()},
            "failed": len(verdict.failed),
            "untold": len(verdict.untold),
            "wrong_reward": len(verdict.wrong_reward),
            "missing_spans": verdict.missing_spans,
            "doubled": len(verdict.doubled),
        }


class Arrivals:
    """The trajectories that have come, by rollout; the follower's thread adds, one other waits."""

    def __init__(self) -> None:
        self.trajectories: dict[str, Trajectory] = {}
        self.doubled: list[str] = []
        self._changed = threading.Condition()

    def add(self, record: Record, message: Message) -> None:
        """Takes a record of the triplets topic."""
        if not isinstance(record, Trajectory) or record.revision:
            return
        with self._changed:
            if record.rollout_id in self.trajectories:
                self.doubled.append(record.rollout_id)
            self.trajectories[record.rollout_id] = record
            self._changed.notify()

    def wait(self, wanted: int, seconds: float) -> int:
        """How many have come, once it is `wanted` or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.trajectories) >= wanted, seconds)
            return len(self.trajectories)


class StoreBench:
    """Starts a broker and public commands, and loads them."""

    def __init__(self, scenario: Scenario, out: Path, port: int, *, runners: int = 1, assemblers: int = 1) -> None:
        self._scenario = scenario
        self._out = out
        self._port = port
        self._runners = runners
        self._assemblers = assemblers
        self._partitions = PARTITIONS_A_RUNNER * max(runners, assemblers)
        self._processes = Processes(out / "logs")

    def parts(self) -> Iterator[Part]:
        """What is started once the topics are there."""
        join = self._join()
        yield Part("lifecycle", ("processor", "lifecycle", "--worker-id", "lifecycle-1", *join))
        for n in range(1, self._assemblers + 1):
            yield Part(f"assembler-{n}", ("processor", "assembler", "--worker-id", f"assembler-{n}", *join))
        each, more = divmod(self._scenario.slots, self._runners)
        for n in range(self._runners):
            slots = str(each + (n < more))
            argv = ("runner", AGENT, "--concurrency", slots, "--worker-id", f"runner-{n + 1}", *join)
            yield Part(f"runner-{n + 1}", argv)

    def run(self, told: Callable[[int], None]) -> Result:
        """Runs it; `told` hears now and then how many rollouts are done.

        Raises:
            PartFailedError: a process ended, or nothing moved for a minute.
        """
        settings = load_settings(bootstrap=f"127.0.0.1:{self._port}", prefix="bench", partitions=self._partitions)
        self._start()
        arrivals, warm = Arrivals(), Arrivals()

        def arrived(record: Record, message: Message) -> None:
            is_task = isinstance(record, Trajectory) and record.rollout_id.startswith(self._scenario.name)
            (arrivals if is_task else warm).add(record, message)

        follower = TopicFollower(
            settings, "triplets", arrived, client_id="bench-arrivals", partitions=range(self._partitions)
        )
        follower.start()
        try:
            with TaskProducer(settings, client_id="bench") as producer:
                self._warm_up(producer, warm)
                before = self._processes.cpu()
                begun = time.monotonic()
                self._load(producer, arrivals, told)
                seconds = time.monotonic() - begun
            cpu = {name: used - before[name] for name, used in self._processes.cpu().items() if name in before}
        finally:
            follower.close()
        verdict = check(settings, self._scenario, arrivals.trajectories, arrivals.doubled)
        return Result(self._scenario, self._runners, seconds, ideal_seconds(self._scenario), verdict, cpu)

    def stop(self) -> None:
        """Ends every process."""
        self._processes.stop()

    def _start(self) -> None:
        processes = self._processes
        processes.start(
            Part("broker", ("broker", "--port", str(self._port), "--data", str(self._out / "kafka")), stop_order=LAST)
        )
        processes.wait_ready("broker")
        topics = ("topics", "create", "--partitions", str(self._partitions), *self._join())
        processes.start(Part("topics", topics, stays=False))
        processes.wait_ended("topics")
        processes.release("topics")
        parts = list(self.parts())
        for part in parts:
            processes.start(part)
        processes.wait_ready(*[part.name for part in parts])

    def _join(self) -> tuple[str, ...]:
        return ("--bootstrap", f"127.0.0.1:{self._port}", "--prefix", "bench")

    def _warm_up(self, producer: TaskProducer, warm: Arrivals) -> None:
        """One rollout through each partition: then every group has its members, and every process what it needs."""
        places = (f"warm-up-{n}" for n in count())
        of_partition: dict[int, str] = {}
        while len(of_partition) < self._partitions:
            name = next(places)
            of_partition.setdefault(partition_of(name, self._partitions), name)
        producer.produce(self._task(name, max_rounds=1, sleep=0.0) for name in of_partition.values())
        if warm.wait(self._partitions, WARM_UP_SECONDS) < self._partitions:
            self._processes.check()
            raise PartFailedError(f"not every partition works; the logs are in {self._out / 'logs'}")

    def _load(self, producer: TaskProducer, arrivals: Arrivals, told: Callable[[int], None]) -> None:
        scenario = self._scenario
        asked = done = 0
        moved = time.monotonic()
        while done < scenario.tasks:
            if more := tasks_to_ask(scenario, asked, done):
                names = [scenario.task(n) for n in range(asked, asked + more)]
                producer.produce(
                    self._task(name, max_rounds=scenario.max_rounds, sleep=scenario.sleep) for name in names
                )
                asked += more
                continue
            now_done = arrivals.wait(done_until_next(scenario, asked), TELL_SECONDS)
            now = time.monotonic()
            if now_done > done:
                done, moved = now_done, now
                told(done)
            self._processes.check()
            if now - moved > STALL_SECONDS:
                raise PartFailedError(
                    f"{done} of {scenario.tasks} rollouts are done, and no more for {STALL_SECONDS:.0f} s; "
                    f"the logs are in {self._out / 'logs'}"
                )

    @staticmethod
    def _task(name: str, *, max_rounds: int, sleep: float) -> Task:
        asked = {"task": name, "max_rounds": max_rounds, "sleep": sleep}
        return Task(rollout_id=name, input=json.dumps(asked), mode="train", enqueued_at=wall_us())
