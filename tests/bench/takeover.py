"""How long work stands still when a process is killed with -9, and whether anything is lost.

    .venv/bin/python tests/bench/takeover.py [--rate 20] [--only runner assembler lifecycle broker]

Two runners, two assemblers and two lifecycles under a steady load of tasks; one of each is killed in turn, then the
broker, which comes back after 30 s. All times are append times of the log:

runner: from the kill to `lost`, and to the next start, of each rollout that the runner had in hand.
assembler, lifecycle: the longest wait of a rollout's end, or of the kill if that came later, for its trajectory or its
    terminal state.
broker: from its ready line to the first start, end and trajectory in the log after it.
lost, doubled: rollouts without a trajectory or a terminal state, and with two trajectories, after the drain.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from synthetic import COMMAND, Sender, environment, fresh_settings, rollout_id, task

from headrace.local.ports import free_port
from headrace.schemas.records import Record, RolloutState, Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.reading import read_topic
from headrace.streams.lifecycle.machine import TERMINAL
from headrace.streams.settings import Settings

AGENT = """import asyncio

from headrace import rollout


@rollout
async def agent(task):
    await asyncio.sleep(1.0)
    return 1.0
"""
PARTITIONS = 4
STEADY_SECONDS = 12.0
AWAY_SECONDS = 30.0
DRAIN_SECONDS = 90.0
KINDS = ("runner", "assembler", "lifecycle", "broker")
SETTLE = {"runner": 45.0, "assembler": 25.0, "lifecycle": 25.0, "broker": 20.0}  # after the kill, before the next


class Pipeline:
    """The processes; each can be killed and started again."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.running: dict[str, subprocess.Popen[str]] = {}
        self._commands: dict[str, tuple[str, ...]] = {
            "broker": ("broker", "--port", str(port), "--data", str(folder / "kafka"))
        }
        agent = folder / "agent.py"
        agent.write_text(AGENT)
        for n in (1, 2):
            argv = ("runner", f"{agent}:agent", "--concurrency", "32", "--worker-id", f"runner-{n}")
            self._commands[f"runner-{n}"] = argv
            for kind in ("assembler", "lifecycle"):
                self._commands[f"{kind}-{n}"] = ("processor", kind, "--worker-id", f"{kind}-{n}")

    def start(self, name: str, env: dict[str, str]) -> dict[str, Any]:
        """Starts a process; the facts of its ready line."""
        with (self._folder / f"{name}.log").open("a") as log:
            process = self.running[name] = subprocess.Popen(
                [COMMAND, *self._commands[name]], stdout=subprocess.PIPE, stderr=log, text=True, env=env
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"{name} did not start: {self._folder / name}.log"
        return json.loads(line)

    def kill(self, name: str) -> float:
        """Kills with -9; when."""
        process = self.running.pop(name)
        process.kill()
        at = time.time()
        process.wait()
        return at

    def stop(self) -> None:
        """Ends all, the broker last."""
        for names in ([n for n in self.running if n != "broker"], ["broker"]):
            for name in names:
                if name in self.running:
                    self.running[name].terminate()
            for name in names:
                if name in self.running:
                    self.running.pop(name).wait(60)


class Load(threading.Thread):
    """Tasks at a steady rate, whether or not a broker is there."""

    def __init__(self, settings: Settings, rate: float) -> None:
        super().__init__(daemon=True)
        self._sender = Sender(settings, linger_ms=5)
        self._rate = rate
        self.count = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(1 / self._rate):
            self._sender.send(task(self.count))
            self.count += 1
        self._sender.flush()


Stamped = tuple[float, Any]


def read(settings: Settings, name: str) -> list[Stamped]:
    """The records of a topic with their append times in seconds."""
    codec = Codec(settings)
    return [
        (message.timestamp()[1] / 1000, codec.decode(message.value()))
        for message in read_topic(settings, settings.topic(name), range(PARTITIONS), client_id="bench")
        if message.value() is not None
    ]


class Logs:
    """The topics of a drained run."""

    def __init__(self, settings: Settings) -> None:
        self.events: list[Stamped] = sorted(read(settings, "attempts"), key=lambda e: e[0])
        self.trajectories = [(at, t) for at, t in read(settings, "triplets") if t.revision == 0]
        self.states: list[tuple[float, RolloutState]] = read(settings, "rollouts")
        self.trajectory_at = {t.rollout_id: at for at, t in self.trajectories}
        self.terminal_at: dict[str, float] = {}
        for at, state in self.states:
            if state.status in TERMINAL:
                self.terminal_at.setdefault(state.rollout_id, at)
        self.ended_at: dict[str, float] = {}
        for at, event in self.events:
            if event.final:
                self.ended_at.setdefault(event.rollout_id, at)

    def restarts(self, worker: str, killed: float) -> tuple[list[float], list[float]]:
        """Seconds from the kill to `lost`, and to the next start, of what the worker had in hand."""
        in_hand: dict[str, int] = {}
        lost: list[float] = []
        waits: list[float] = []
        for at, event in self.events:
            if at <= killed:
                if event.worker_id == worker and event.type == "started":
                    in_hand[event.rollout_id] = event.delivery
                elif event.final:
                    in_hand.pop(event.rollout_id, None)
            elif event.type == "lost" and event.delivery == in_hand.get(event.rollout_id):
                lost.append(at - killed)
            elif event.type == "started" and event.delivery > in_hand.get(event.rollout_id, 1 << 30):
                waits.append(at - killed)
                del in_hand[event.rollout_id]
            elif event.final:  # it was on its way when the worker died
                in_hand.pop(event.rollout_id, None)
        return lost, [*waits, *(float("inf") for _ in in_hand)]

    def waits(self, answered: dict[str, float], killed: float, until: float) -> list[float]:
        """Seconds that the ends around a kill waited for what answers them."""
        around = [(r, at) for r, at in self.ended_at.items() if killed - 2 <= at <= until]
        waits = [answered.get(r, float("inf")) - max(at, killed) for r, at in around]
        return [max(0.0, w) for w in waits]


def figures(waits: list[float]) -> dict[str, Any]:
    """What is printed of waits."""
    if not waits:
        return {"count": 0}
    return {"count": len(waits), "p50": round(statistics.median(waits), 2), "max": round(max(waits), 2)}


def wait_drained(settings: Settings, expected: int) -> None:
    """Returns when each task has a trajectory, or the time is over."""
    seen: set[str] = set()

    def add(record: Record, message: Any) -> None:
        if isinstance(record, Trajectory):
            seen.add(record.rollout_id)

    follower = TopicFollower(settings, "triplets", add, client_id="bench-drain", partitions=range(PARTITIONS)).start()
    deadline = time.monotonic() + DRAIN_SECONDS
    while len(seen) < expected and time.monotonic() < deadline:
        time.sleep(0.2)
    follower.close()
    time.sleep(2.0)  # the last states


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=20.0)
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    kills: dict[str, tuple[float, float]] = {}
    back = 0.0
    with tempfile.TemporaryDirectory() as name:
        pipeline = Pipeline(Path(name), free_port())
        try:
            jvm = pipeline.start("broker", dict(os.environ))
            settings = fresh_settings(jvm["bootstrap"], PARTITIONS)
            env = environment(settings)
            for part in ("lifecycle-1", "lifecycle-2", "assembler-1", "assembler-2", "runner-1", "runner-2"):
                pipeline.start(part, env)
            load = Load(settings, options.rate)
            load.start()
            time.sleep(STEADY_SECONDS)
            for kind in options.only:
                if kind == "broker":
                    os.kill(jvm["pid"], signal.SIGKILL)
                    killed = time.time()
                    pipeline.running.pop("broker").wait(30)
                    time.sleep(AWAY_SECONDS)
                    jvm = pipeline.start("broker", dict(os.environ))
                    back = time.time()
                else:
                    killed = pipeline.kill(f"{kind}-1")
                time.sleep(SETTLE[kind])
                kills[kind] = (killed, time.time())
                if kind != "broker":
                    pipeline.start(f"{kind}-1", env)
                    time.sleep(STEADY_SECONDS)
            load.stopping.set()
            load.join()
            wait_drained(settings, load.count)
            logs = Logs(settings)
        finally:
            pipeline.stop()
    report(logs, kills, back, load.count)


def report(logs: Logs, kills: dict[str, tuple[float, float]], back: float, tasks: int) -> None:
    """Prints one JSON object."""
    result: dict[str, Any] = {"tasks": tasks}
    for kind, (killed, until) in kills.items():
        if kind == "runner":
            lost, starts = logs.restarts("runner-1", killed)
            result[kind] = {"lost": figures(lost), "start": figures(starts)}
        elif kind == "assembler":
            result[kind] = figures(logs.waits(logs.trajectory_at, killed, until))
        elif kind == "lifecycle":
            result[kind] = figures(logs.waits(logs.terminal_at, killed, until))
        else:
            starts = [at for at, e in logs.events if e.type == "started"]
            ends = [at for at, e in logs.events if e.type == "succeeded"]
            found = {"start": starts, "end": ends, "trajectory": [at for at, _ in logs.trajectories]}
            result[kind] = {
                what: round(min(at for at in times if at > back) - back, 2) for what, times in found.items()
            }
    produced = [rollout_id(n) for n in range(tasks)]
    result["lost"] = sum(r not in logs.trajectory_at or r not in logs.terminal_at for r in produced)
    result["doubled"] = len(logs.trajectories) - len(logs.trajectory_at)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
