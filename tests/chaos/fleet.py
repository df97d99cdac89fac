"""Starts, kills, stops and wakes processes, and starts again those that end by themselves, as a supervisor would."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import psutil

from headrace.deploy.local.process import WRAPPER
from headrace.local.processes import Part
from tests.chaos.entries import Disturbance
from tests.chaos.plan import part_of

AGAIN_SECONDS = 1.0
ORPHAN_SECONDS = 10.0  # the kernel ends the children of a killed process at once
AGAIN_MOST_SECONDS = 8.0  # between starts of one that ends by itself again and again
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
READY_SECONDS = 120.0


class NotReadyError(Exception):
    """A process was not ready in time."""


@dataclass
class _Member:
    part: Part
    process: subprocess.Popen[bytes]
    output: Path
    began: int
    leaving: bool = False


@dataclass
class Fleet:
    """The processes. Use it on one thread, which outlives them: the kernel ends them with it.

    Attributes:
        done: every disturbance so far; those under way end at the time of `disturbances`.
        exits: processes that ended by themselves, by part and exit code.
        orphans: children that outlived their killed process, by part.
    """

    logs: Path
    environment: dict[str, str]
    members: dict[str, _Member] = field(default_factory=dict[str, "_Member"])
    done: list[Disturbance] = field(default_factory=list[Disturbance])
    exits: Counter[str] = field(default_factory=Counter[str])
    orphans: Counter[str] = field(default_factory=Counter[str])
    _children: list[tuple[float, Part, psutil.Process]] = field(
        default_factory=list[tuple[float, Part, psutil.Process]]
    )
    _failed: Counter[str] = field(default_factory=Counter[str])
    _down: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    _again: dict[str, tuple[float, Part]] = field(default_factory=dict[str, tuple[float, Part]])
    _journal: TextIO | None = None

    def start(self, part: Part) -> None:
        """Starts a process; one of its name that still ends is killed first."""
        old = self.members.get(part.name)
        if old is not None and old.process.poll() is None:
            self._signal(old, signal.SIGKILL)
            old.process.wait()
        self._again.pop(part.name, None)
        self.logs.mkdir(parents=True, exist_ok=True)
        output = self.logs / f"{part.name}.out"
        with output.open("ab") as out, (self.logs / f"{part.name}.log").open("ab") as log:
            began = out.tell()
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WRAPPER), str(os.getpid()), *part.command()],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **self.environment},
                start_new_session=True,
            )
            log.write(f"=== pid {process.pid}, {time.strftime('%H:%M:%S')}\n".encode())
        self.members[part.name] = _Member(part, process, output, began)
        self._ends(part.name)
        self.note("start", part.name)

    def kill(self, name: str) -> None:
        """kill -9 of the process alone: its children have to end by themselves."""
        self._begins("kill", name)
        member = self.members[name]
        children = _family(member)[1:]
        member.process.kill()
        member.process.wait()
        self._children += [(time.monotonic() + ORPHAN_SECONDS, member.part, child) for child in children]

    def stop(self, name: str) -> None:
        """SIGSTOP."""
        self._begins("stop", name)
        self._signal(self.members[name], signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """SIGCONT."""
        self._signal(self.members[name], signal.SIGCONT)
        self._ends(name)
        self.note("wake", name)

    def leave(self, name: str) -> None:
        """SIGTERM, without a restart."""
        self._begins("leave", name)
        self._again.pop(name, None)
        self.members[name].leaving = True
        self.members[name].process.terminate()

    def alive(self, name: str) -> bool:
        """Whether a process runs, or is stopped."""
        return name in self.members and self.members[name].process.poll() is None

    def supervise(self) -> None:
        """Starts again what has ended by itself."""
        now = time.monotonic()
        for name, member in list(self.members.items()):
            code = member.process.poll()
            if code is None or (name in self._down and not member.leaving) or name in self._again:
                continue
            if member.leaving:
                self._ends(name)
                if code != 0:
                    self._exited(name, code)
                del self.members[name]
            elif member.part.stays:
                self._exited(name, code)
                pause = min(AGAIN_MOST_SECONDS, AGAIN_SECONDS * 2 ** self._failed[name])
                self._failed[name] = 0 if self.ready(name) else self._failed[name] + 1
                self._again[name] = (now + pause, member.part)
        for at, part in list(self._again.values()):
            if now >= at:
                self.start(part)
        for late in [c for c in self._children if now >= c[0]]:
            self._children.remove(late)
            _, part, child = late
            if _lives(child):
                self.orphans[part_of(part.name)] += 1
                self.note(f"orphan {child.pid}", part.name)
                child.kill()

    def ready(self, name: str) -> dict[str, Any] | None:
        """The facts of a member's ready line; None where it has printed none."""
        member = self.members[name]
        with member.output.open("rb") as lines:
            lines.seek(member.began)
            text = lines.read()
        for line in text.splitlines():
            if line.startswith(b"{"):
                return json.loads(line)
        return None

    def wait_ready(self, *names: str) -> None:
        """Waits for ready lines.

        Raises:
            NotReadyError: one did not come in time, or its process has ended.
        """
        deadline = time.monotonic() + READY_SECONDS
        while missing := [n for n in names if self.ready(n) is None]:
            if any(not self.alive(n) for n in missing) or time.monotonic() > deadline:
                raise NotReadyError(f"{', '.join(missing)}: not ready; the logs are in {self.logs}")
            time.sleep(POLL_SECONDS)

    def wait_ended(self, name: str) -> None:
        """Waits for a process that does its work and ends.

        Raises:
            NotReadyError: it failed.
        """
        if self.members.pop(name).process.wait(READY_SECONDS) != 0:
            raise NotReadyError(f"{name} failed; the logs are in {self.logs}")

    def disturbances(self) -> list[Disturbance]:
        """All so far, in the order of their beginnings."""
        under_way = [Disturbance(what, name, since, _now()) for name, (what, since) in self._down.items()]
        return sorted([*self.done, *under_way], key=lambda d: d.since)

    def end(self, *names: str) -> None:
        """SIGTERM, then SIGKILL for what does not listen."""
        chosen = [m for n, m in self.members.items() if n in names or not names]
        for member in chosen:
            member.leaving = True
            self._signal(member, signal.SIGCONT)
            member.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for member in chosen:
            try:
                member.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.note("would not end", member.part.name)
                self._signal(member, signal.SIGKILL)
                member.process.wait()
            self.members.pop(member.part.name, None)

    def note(self, what: str, name: str) -> None:
        """Writes a line of the journal."""
        if self._journal is None:
            self._journal = (self.logs.parent / "journal.jsonl").open("a", buffering=1)
        self._journal.write(json.dumps({"at": _now(), "what": what, "name": name}) + "\n")

    def _exited(self, name: str, code: int) -> None:
        self.exits[f"{part_of(name)} {code}"] += 1
        self.note(f"exit {code}", name)

    def _begins(self, what: str, name: str) -> None:
        self._ends(name)
        self._down[name] = (what, _now())
        self.note(what, name)

    def _ends(self, name: str) -> None:
        if name in self._down:
            what, since = self._down.pop(name)
            self.done.append(Disturbance(what, name, since, _now()))

    @staticmethod
    def _signal(member: _Member, number: signal.Signals) -> None:
        for process in _family(member):
            try:
                process.send_signal(number)
            except psutil.NoSuchProcess:
                continue


def _family(member: _Member) -> list[psutil.Process]:
    """A process and its descendants; empty when it has ended."""
    try:
        root = psutil.Process(member.process.pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.is_running()
    except psutil.NoSuchProcess:
        return False


def _now() -> int:
    return int(time.time() * 1000)
