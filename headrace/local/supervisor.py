"""Keeps a pipeline's processes running: starts them in their order, starts again what ends, and ends all of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.local.backoff import Backoff
from headrace.local.health import Health
from headrace.local.plan import BROKER, FEEDER, JOB, SERVICE, PipelinePlan, Planned
from headrace.local.processes import PartFailedError, Processes, Running
from headrace.streams.settings import Settings, load_settings

log = logging.getLogger(__name__)

TICK_SECONDS = 0.2
HEALTH_SECONDS = 5.0
Event = Callable[[dict[str, Any]], None]


class _StopError(Exception):
    """It was told to stop while it waited."""


@dataclass
class _Watched:
    """A part over all its processes."""

    planned: Planned
    backoff: Backoff
    started: float = 0.0
    due: float | None = None
    was_ready: bool = False
    restarts: int = 0
    ended: int | None = None
    """Exit code of one that does not start again."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


class Supervisor:
    """Runs a plan; use `run` from one thread, which must live as long as the parts: the kernel ends them with it.

    Args:
        event: hears what happens after all is ready: `ended`, `ready` (again), `hung`.
    """

    def __init__(self, plan: PipelinePlan, event: Event = lambda facts: None) -> None:
        self.plan = plan
        self._event = event
        self._processes = Processes(plan.logs)
        self._watched = {p.part.name: _Watched(p, Backoff(p.may_end, p.restart)) for p in plan.parts}
        self._health: Health | None = None
        self._looked = 0.0
        self._done = False

    def run(self, stop: threading.Event, ready: Event = lambda facts: None) -> None:
        """Works until `stop` is set, or a part that ends all has done its work; all that it started has ended then.

        Args:
            ready: called once, when every part is.

        Raises:
            PartFailedError: a part was never ready.
            FolderError: the folder cannot be written.
        """
        try:
            self.plan.write_files()
            self._start(stop)
            ready(self.facts())
            self._looked = time.monotonic()
            while not self._done and not stop.wait(TICK_SECONDS):
                self._tick(time.monotonic())
        except _StopError:
            log.info("stopped before all parts were ready")
        finally:
            if self._health is not None:
                self._health.close()
            self._processes.stop()

    def kill(self) -> None:
        """Ends everything at once, for who does not want to wait for `run` to return."""
        self._processes.kill()

    def settings(self) -> Settings:
        """How this process reaches the pipeline."""
        return load_settings(bootstrap=self.plan.bootstrap, prefix=self.plan.prefix, registry=self.plan.registry)

    def facts(self) -> dict[str, Any]:
        """Where the pipeline is and what runs of it, as JSON values."""
        parts = [self._part_facts(name, watched) for name, watched in self._watched.items()]
        gateways = [w.facts["url"] for n, w in self._watched.items() if n.startswith("gateway") and "url" in w.facts]
        return {
            "bootstrap": self.plan.bootstrap,
            "prefix": self.plan.prefix,
            "folder": str(self.plan.folder),
            "gateways": gateways,
            "parts": [p for p in parts if p is not None],
            "elsewhere": list(self.plan.elsewhere),
        }

    def _part_facts(self, name: str, watched: _Watched) -> dict[str, Any] | None:
        running = self._processes.all.get(name)
        state = "running" if running is not None else "waits to start again" if watched.due is not None else "ended"
        facts = {k: v for k, v in watched.facts.items() if k not in ("ready", "pid")}
        return {
            "name": name,
            "state": state,
            "pid": running.process.pid if running is not None else None,
            "restarts": watched.restarts,
            **facts,
            "log": str(self.plan.logs / f"{name}.log"),
        }

    def _start(self, stop: threading.Event) -> None:
        jobs = self.plan.stage(JOB)
        if any(p.part.name == BROKER for p in jobs):
            self._begin(BROKER)
        # What needs no Kafka is made while it starts.
        for planned in jobs:
            if planned.part.name.startswith("model"):
                self._begin(planned.part.name)
        self._await(stop, [BROKER])
        for planned in jobs:
            if planned.part.name not in self._processes.all:
                self._begin(planned.part.name)
        self._await(stop, [p.part.name for p in jobs])
        for stage in (SERVICE, FEEDER):
            names = [p.part.name for p in self.plan.stage(stage)]
            for name in names:
                self._begin(name)
            self._await(stop, names)
        self._health = Health(self.settings())
        self._health.start()

    def _begin(self, name: str) -> None:
        watched = self._watched[name]
        watched.due = None
        watched.started = time.monotonic()
        watched.was_ready = False
        self._processes.start(watched.planned.part)

    def _await(self, stop: threading.Event, names: list[str]) -> None:
        """Waits until each of them is ready, or has done its work.

        Raises:
            PartFailedError: it has ended without, or takes too long.
        """
        waiting = [n for n in names if n in self._processes.all]
        while waiting:
            if stop.is_set():
                raise _StopError
            for name, running in list(self._processes.all.items()):
                watched = self._watched[name]
                code = running.process.poll()
                self._see_ready(watched, running)
                if code is not None and code == 0 and watched.planned.may_end:
                    watched.ended = 0
                    self._done |= watched.planned.ends_all
                    self._processes.release(name)
                elif code is not None:
                    raise PartFailedError(self._processes.failure(running))
                elif name in waiting and time.monotonic() - watched.started > watched.planned.ready_seconds:
                    raise PartFailedError(
                        f"{name} is not ready after {watched.planned.ready_seconds:.0f} s "
                        f"(`ready_seconds` of its table); its log is {running.log}"
                    )
            waiting = [n for n in names if n in self._processes.all and not self._is_ready(n)]
            time.sleep(0.05)

    def _is_ready(self, name: str) -> bool:
        watched = self._watched[name]
        return watched.was_ready

    def _see_ready(self, watched: _Watched, running: Running) -> bool:
        """Takes a ready line; true the first time."""
        if watched.was_ready or running.ready is None:
            return False
        watched.was_ready = True
        watched.facts = dict(running.ready)
        return True

    def _tick(self, now: float) -> None:
        for name, running in list(self._processes.all.items()):
            watched = self._watched[name]
            code = running.process.poll()
            if self._see_ready(watched, running):
                self._event({"event": "ready", "part": name, "pid": running.process.pid})
            if code is not None:
                self._ended(name, watched, code, now)
            elif not watched.was_ready and now - watched.started > watched.planned.ready_seconds:
                log.warning("%s is not ready after %.0f s and is ended", name, now - watched.started)
                self._processes.kill(name)
        for name, watched in self._watched.items():
            if watched.due is not None and now >= watched.due:
                watched.restarts += 1
                self._begin(name)
        if now - self._looked > HEALTH_SECONDS:
            self._looked = now
            self._look()

    def _ended(self, name: str, watched: _Watched, code: int, now: float) -> None:
        failure = self._processes.failure(self._processes.release(name))
        if self._health is not None and (worker := watched.facts.get("worker_id")):
            self._health.forget(worker)
        wait = watched.backoff.wait(code, now - watched.started)
        watched.due = None if wait is None else now + wait
        watched.ended = code if wait is None else None
        self._event({"event": "ended", "part": name, "exit_code": code, "again_in": wait})
        if wait is not None:
            log.warning("%s\n%s starts again in %g s", failure, name, wait)
        elif code == 0:
            log.info("%s has done its work", name)
            self._done |= watched.planned.ends_all
        else:
            log.error("%s\n%s does not start again", failure, name)

    def _look(self) -> None:
        assert self._health is not None
        workers = {w.facts["worker_id"]: n for n, w in self._watched.items() if "worker_id" in w.facts and w.was_ready}
        alive = {worker: name for worker, name in workers.items() if name in self._processes.all}
        for worker in self._health.hung(alive):
            name = alive[worker]
            log.warning("%s lives, but says nothing any more: it is ended", name)
            self._event({"event": "hung", "part": name})
            self._health.forget(worker)
            self._processes.kill(name)
