"""Asks for tasks at a steady rate, and for the cancels that belong to them, on threads of their own."""

import heapq
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from tests.chaos.members import Pipeline
from tests.chaos.tasks import batch, cancels
from tests.processes import COMMAND

AGAIN_SECONDS = 1.0
CANCEL_SECONDS = 2.0
COMMAND_SECONDS = 60.0


class Feeding:
    """`headrace tasks produce` every `period` seconds; a command that fails is repeated with the same ids.

    Attributes:
        asked: rollouts whose tasks a command said that it had produced.
        repeated: commands that failed, and were given again.
    """

    def __init__(self, pipeline: Pipeline, *, groups: int, period: float) -> None:
        self._pipeline = pipeline
        self._groups = groups
        self._period = period
        self._stopping = threading.Event()
        self._cancels: list[tuple[float, str]] = []
        self._lock = threading.Lock()
        self.asked: list[str] = []
        self.repeated = 0
        self._feeder = threading.Thread(target=self._feed, name="feeder", daemon=True)
        self._canceller = threading.Thread(target=self._cancel, name="canceller", daemon=True)

    def start(self) -> None:
        """Begins."""
        self._feeder.start()
        self._canceller.start()

    def stop(self) -> None:
        """No more tasks; returns when the last command has said that it is done, and all cancels are asked for."""
        self._stopping.set()
        self._feeder.join()
        self._canceller.join()

    def _feed(self) -> None:
        number = 0
        folder = self._pipeline.out / "tasks"
        folder.mkdir(parents=True, exist_ok=True)
        next_at = time.monotonic()
        while not self._stopping.is_set():
            lines = batch(self._pipeline.seed, number, self._groups, self._pipeline.lease)
            file = folder / f"{number}.jsonl"
            file.write_text("".join(json.dumps(line) + "\n" for line in lines))
            self._produce(file, lines)
            with self._lock:
                for after, rollout_id in cancels(self._pipeline.seed, number, lines):
                    heapq.heappush(self._cancels, (time.monotonic() + after, rollout_id))
            number += 1
            next_at = max(next_at + self._period, time.monotonic())
            self._stopping.wait(next_at - time.monotonic())

    def _produce(self, file: Path, lines: list[dict[str, Any]]) -> None:
        while not self._run("tasks", "produce", str(file), "--json"):
            self.repeated += 1
            time.sleep(AGAIN_SECONDS)
        self.asked += [line["rollout_id"] for line in lines]

    def _cancel(self) -> None:
        while self._cancels or not self._stopping.is_set() or self._feeder.is_alive():
            with self._lock:
                due: list[str] = []
                while self._cancels and self._cancels[0][0] <= time.monotonic():
                    due.append(heapq.heappop(self._cancels)[1])
            if due and not self._run("rollouts", "cancel", *due):
                self.repeated += 1
                with self._lock:
                    for rollout_id in due:
                        heapq.heappush(self._cancels, (time.monotonic(), rollout_id))
            time.sleep(CANCEL_SECONDS)

    def _run(self, *argv: str) -> bool:
        log = self._pipeline.out / "logs" / f"{argv[0]}.log"
        environment = {**os.environ, **self._pipeline.environment}
        with log.open("ab") as errors:
            try:
                done = subprocess.run(
                    [COMMAND, *argv],
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=environment,
                    timeout=COMMAND_SECONDS,
                )
            except subprocess.TimeoutExpired:
                return False
        return done.returncode == 0
