"""Starts a pipeline's processes, waits for their ready lines, counts what they cost, and ends every one of them."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any, cast

import psutil

from headrace.deploy.local.process import WRAPPER
from headrace.streams.errors import HeadraceError

log = logging.getLogger(__name__)

READY_SECONDS = 120.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
TAIL_LINES = 15
LINES = 16  # of what a part prints: an agent prints what it likes, for as long as it runs
FULL_BYTES = 1 << 20
LAST = 9
"""The stop order of what all others need to end well: Kafka."""


@dataclass(frozen=True)
class Part:
    """One process.

    Attributes:
        name: unique; of its log and of its row in a summary.
        argv: after `headrace`.
        stays: it runs until it is told to stop; else it is waited for.
        vital: the others are of no use without it; else they go on when it ends.
        stop_order: those of a lower number have ended before it is told to stop.
        stop_seconds: how long its end may take.
        environment: variables of its own.
        folder: where it runs; None is where its owner does.
    """

    name: str
    argv: tuple[str, ...]
    stays: bool = True
    vital: bool = True
    stop_order: int = 0
    stop_seconds: float = STOP_SECONDS
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    folder: Path | None = None

    def command(self) -> list[str]:
        """What is executed."""
        return [str(Path(sys.executable).parent / "headrace"), *self.argv]


class FolderError(HeadraceError):
    """The folder for logs cannot be made."""


class PartFailedError(HeadraceError):
    """A process ended, or never became ready."""


@dataclass
class Running:
    """A process that was started.

    Attributes:
        ready: the facts of its ready line.
        ready_cpu: CPU seconds of it and its children when it became ready.
        output: the last JSON lines after the ready line.
    """

    part: Part
    process: subprocess.Popen[str]
    log: Path
    ready: dict[str, Any] | None = None
    ready_seconds: float | None = None
    ready_cpu: float = 0.0
    output: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=LINES))
    reader: threading.Thread | None = None
    noise: str = ""
    """The last line of its standard output that was no JSON."""

    def last_line(self) -> dict[str, Any]:
        """The last JSON line of a part that has ended.

        Raises:
            PartFailedError: it printed none.
        """
        if self.reader is not None:
            self.reader.join(STOP_SECONDS)
        if not self.output:
            code = self.process.returncode
            reading = self.reader is not None and self.reader.is_alive()
            raise PartFailedError(
                f"{self.part.name} ended with exit code {code} and no result ({reading=}, {self.ready=}, "
                f"{len(self.noise)} characters of {self.noise[:200]!r}); its log is {self.log}"
            )
        return self.output[-1]


def interrupt_on_sigterm() -> None:
    """SIGTERM ends this process as Ctrl-C does."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, handler)


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and its living descendants."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0.0
    total = 0.0
    for process in family:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def pss_bytes(pid: int) -> int:
    """Proportional set size of a process and its living descendants, in bytes."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    total = 0
    for process in family:
        try:
            total += process.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


def _facts(line: str) -> dict[str, Any] | None:
    """A line that a command prints; None of what an agent or a library in its process has printed, a number, say."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


class Processes:
    """The processes of a pipeline. `stop` ends them all whatever happens; if their owner is killed, the kernel does."""

    def __init__(self, logs: Path, environment: dict[str, str] | None = None) -> None:
        try:
            logs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(f"cannot make {logs}: {error.strerror}; choose another folder") from error
        self._logs = logs
        self._environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._environment |= environment or {}
        self.started_at: float | None = None
        self.all: dict[str, Running] = {}
        self._begun: set[str] = set()
        self._stopping = False

    def start(self, part: Part) -> Running:
        """Starts a part. Its log is emptied the first time; what comes again writes on."""
        if self.started_at is None:
            self.started_at = time.monotonic()
        log = self._logs / f"{part.name}.log"
        with log.open("a" if part.name in self._begun else "w") as errors:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WRAPPER), str(os.getpid()), *part.command()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",  # an agent may print anything, and must not block since nobody reads it
                env={**self._environment, **part.environment},
                cwd=part.folder,
                start_new_session=True,  # Ctrl-C comes to the owner alone, which ends the parts in their order
            )
        running = self.all[part.name] = Running(part, process, log)
        self._begun.add(part.name)
        assert process.stdout is not None
        running.reader = threading.Thread(target=self._read, args=(running, process.stdout), daemon=True)
        running.reader.start()
        return running

    def _read(self, running: Running, stdout: IO[str]) -> None:
        for line in stdout:
            value = _facts(line)
            if value is None:
                running.noise = line
                continue
            if running.ready is None and ("ready" in value or "bootstrap" in value):
                running.ready_cpu = cpu_seconds(running.process.pid)
                running.ready_seconds = self.seconds()
                running.ready = value
            else:
                running.output.append(value)

    def seconds(self) -> float:
        """Seconds since the first process was started."""
        return time.monotonic() - self.started_at if self.started_at is not None else 0.0

    def wait_ready(self, *names: str, timeout: float = READY_SECONDS) -> None:
        """Waits for ready lines.

        Raises:
            PartFailedError: a process ended, or is not ready in time.
        """
        self.wait(lambda: all(self._is_ready(n) for n in names), f"{', '.join(names)} ready", timeout)

    def _is_ready(self, name: str) -> bool:
        running = self.all.get(name)  # gone: one that is not vital has ended
        return running is None or running.ready is not None

    def wait_ended(self, name: str, timeout: float = READY_SECONDS) -> None:
        """Waits for a part that does its work and ends.

        Raises:
            PartFailedError: it failed, another process ended, or it takes too long.
        """
        self.wait(lambda: self.all[name].process.poll() is not None, f"{name} done", timeout)
        if self.all[name].process.returncode != 0:
            raise PartFailedError(self.failure(self.all[name]))

    def wait(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        """Waits for a condition while all processes live.

        Raises:
            PartFailedError: a process ended that should stay, or the time is over.
        """
        deadline = time.monotonic() + timeout
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise PartFailedError(f"{what}: not within {timeout:.0f} s; the logs are in {self._logs}")
            time.sleep(POLL_SECONDS)

    def check(self) -> None:
        """Raises PartFailedError when a process has ended that should not have."""
        for running in list(self.all.values()):
            code = running.process.poll()
            if code is None or self._stopping or not (running.part.stays or code != 0):
                continue
            if running.part.vital:
                raise PartFailedError(self.failure(running))
            log.warning("going on without %s", self.failure(self.release(running.part.name)))

    def failure(self, running: Running) -> str:
        """What a dead part said last."""
        lines = running.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        if shutil.disk_usage(self._logs).free < FULL_BYTES:  # the log may say nothing for the same reason
            lines.append(f"the disk of {self._logs} is full")
        code = running.process.returncode
        return f"{running.part.name} ended with exit code {code}; the end of {running.log}:\n" + "\n".join(lines)

    def cpu(self, *names: str) -> dict[str, float]:
        """CPU seconds of living parts (all of them by default) since their ready lines."""
        return {
            name: max(0.0, cpu_seconds(running.process.pid) - running.ready_cpu)
            for name, running in self.all.items()
            if (name in names or not names) and running.ready is not None and running.process.poll() is None
        }

    def pss(self) -> dict[str, int]:
        """PSS of each living part, in bytes."""
        return {n: pss_bytes(r.process.pid) for n, r in self.all.items() if r.process.poll() is None}

    def release(self, name: str) -> Running:
        """Takes a part that has done its work out of the watch."""
        return self.all.pop(name)

    def stop(self, *names: str) -> None:
        """Ends parts (all of them by default) in their order: SIGTERM, and SIGKILL for what does not listen."""
        self._stopping = self._stopping or not names
        chosen = [self.all[n] for n in names if n in self.all] if names else list(self.all.values())
        for order in sorted({r.part.stop_order for r in chosen}):
            group = [r for r in chosen if r.part.stop_order == order]
            for running in group:
                if running.process.poll() is None:
                    running.process.terminate()
            began = time.monotonic()
            for running in group:
                try:
                    running.process.wait(max(0.1, began + running.part.stop_seconds - time.monotonic()))
                except subprocess.TimeoutExpired:
                    self.kill(running.part.name)
        for running in chosen:
            self.all.pop(running.part.name, None)

    def kill(self, *names: str) -> None:
        """SIGKILL to parts (all of them by default) and all that they started."""
        for name in names or tuple(self.all):
            running = self.all.get(name)
            if running is not None and running.process.poll() is None:
                os.killpg(running.process.pid, signal.SIGKILL)
                running.process.wait()
