"""The demo from start to end: start the parts, wait for the goal, drain, check, report."""

import shutil
import signal
import time

from headrace.demo.checker import check
from headrace.demo.display import Display
from headrace.demo.plan import Plan
from headrace.demo.progress import Progress
from headrace.demo.report import Costs, Outcome, write
from headrace.local.processes import FolderError, Part, Processes, Running
from headrace.streams.settings import Settings, load_settings

DRAIN_SECONDS = 60.0
START_SECONDS = 300.0  # vLLM and Ray on a busy machine
TICK_SECONDS = 0.25
PSS_AFTER_STEPS = 20  # by then every part has its full size


class Demo:
    """One run of the demo."""

    def __init__(self, plan: Plan, display: Display, budget_seconds: float) -> None:
        self._plan = plan
        self._display = display
        self._budget = budget_seconds
        self._processes = Processes(plan.out / "logs")
        self._kafka = plan.out / "kafka"
        self._own_data = False
        self._costs = Costs({}, {}, {})
        self._pss: dict[str, int] = {}
        self._feeder_cpu: dict[str, float] = {}  # as long as it can be asked: it ends before the drain

    def run(self) -> Outcome:
        """Runs it; the broker is left running, all else has ended.

        Raises:
            FolderError: the folder holds another demo's Kafka.
            PartFailedError: a part ended, or was not ready in time.
        """
        if self._kafka.exists():
            raise FolderError(f"{self._kafka} is there already: choose another --out, or remove it")
        self._own_data = True
        self._plan.write_dataset()
        settings = self._settings()
        broker = self._start()
        progress = Progress(settings, self._plan.run_id, self._processes.seconds)
        progress.start()
        try:
            feeder = self._processes.start(self._plan.feeder())
            self._say("learning")
            self._learn(progress)
            reached_after = progress.curve.goal_reached_after
            seconds = reached_after if reached_after is not None else self._processes.seconds()
            self._say("draining")
            self._drain(progress, feeder)
            cpu = {**self._feeder_cpu, **self._processes.cpu()}
            self._costs = Costs(cpu, self._ready_seconds(), self._pss or self._processes.pss())
        finally:
            progress.close()
        self._say("checking the topics")
        self._processes.stop(*[name for name in self._processes.all if name != "broker"])
        verdict = check(settings, self._plan.run_id)
        outcome = Outcome(
            self._plan,
            str((broker.ready or {}).get("version")),
            seconds,
            verdict,
            progress.curve,
            self._costs,
            self._budget,
        )
        write(outcome)
        return outcome

    def hold(self) -> None:
        """Keeps the broker until Ctrl-C."""
        while True:
            self._processes.check()
            time.sleep(TICK_SECONDS)

    def stop(self) -> None:
        """Ends every process, and removes the data of its own broker."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._processes.stop()
        if self._own_data:
            shutil.rmtree(self._kafka, ignore_errors=True)

    def _settings(self) -> Settings:
        return load_settings(bootstrap=self._plan.bootstrap, prefix=self._plan.prefix)

    def _say(self, phase: str) -> None:
        self._display.say(phase, self._processes.seconds())

    def _start(self) -> Running:
        processes, plan = self._processes, self._plan
        broker = processes.start(plan.broker())
        self._say("starting Kafka, making a model")
        processes.start(plan.make_model())
        processes.wait_ready("broker")
        processes.start(plan.topics())
        processes.wait_ended("topics")
        self._say("starting engine, trainer, gateway, processors, runners")
        services: list[Part] = list(plan.services())
        for part in services:
            processes.start(part)
        awaited = [p.name for p in services if not p.name.startswith("runner")]
        processes.wait_ready(*awaited, timeout=START_SECONDS)
        processes.wait_ended("model")
        return broker

    def _learn(self, progress: Progress) -> None:
        deadline = time.monotonic() + self._budget
        while progress.curve.goal_reached_after is None and time.monotonic() < deadline:
            self._processes.check()
            self._display.update(progress.curve, progress.rates(), self._processes.seconds())
            self._feeder_cpu = self._processes.cpu("feeder") or self._feeder_cpu
            if not self._pss and progress.curve.steps >= PSS_AFTER_STEPS:
                self._pss = self._processes.pss()
            time.sleep(TICK_SECONDS)

    def _drain(self, progress: Progress, feeder: Running) -> None:
        if progress.curve.goal_reached_after is None:
            feeder.process.terminate()
        self._processes.wait(lambda: feeder.process.poll() is not None, "feeder stopped", DRAIN_SECONDS)
        self._processes.release("feeder")
        produced = int(feeder.last_line()["produced"])

        def decided() -> bool:
            self._display.update(progress.curve, progress.rates(), self._processes.seconds())
            return progress.curve.decided >= produced

        self._processes.wait(decided, f"{produced} rollouts decided", DRAIN_SECONDS)

    def _ready_seconds(self) -> dict[str, float]:
        return {n: round(r.ready_seconds, 2) for n, r in self._processes.all.items() if r.ready_seconds is not None}
