"""The run from its start to its verdict: start the pipeline, feed it, follow the plan, drain, check."""

import shutil
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chaos.checker import TERMINAL, Report, check
from tests.chaos.entries import Entry, Log, by_key
from tests.chaos.feeding import Feeding
from tests.chaos.fleet import POLL_SECONDS, Fleet
from tests.chaos.members import PREFIX, Pipeline, choose_ports, parts_but
from tests.chaos.plan import Op, PlanSettings, first_members, plan
from tests.chaos.recovery import percentiles, recoveries
from tests.chaos.report import keep
from tests.chaos.topics import TopicReader
from tests.chaos.windows import decided_by

DRAINED_EVERY = 2.0
WARM_SECONDS = 3.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """A run.

    Attributes:
        kills: how many processes are killed.
        gap: mean seconds between two moments at which something happens.
        lease: seconds; a third of it and four thirds are the times for which a process is stopped.
        groups, period: so many groups of tasks are asked for every so many seconds.
        drain: seconds that the pipeline may take to finish what was asked for.
        without: parts that are left out.
        keep: the folder stays as it is even when nothing is wrong.
    """

    out: Path
    kills: int
    seed: int
    gap: float
    lease: float
    groups: int
    period: float
    drain: float
    without: tuple[str, ...] = ()
    keep: bool = False

    def plan_settings(self, parts: tuple[str, ...]) -> PlanSettings:
        """What the plan of this run depends on."""
        return PlanSettings(
            seed=self.seed,
            kills=self.kills,
            gap=self.gap,
            short=self.lease / 3,
            long=self.lease * 4 / 3,
            parts=parts,
        )


def run(options: Options) -> tuple[dict[str, Any], Report]:
    """The line that is printed, and the report behind it; a run with violations leaves its folder.

    Raises:
        NotReadyError: the pipeline did not start.
        FileExistsError: the folder is there already.
    """
    parts = parts_but(options.without)
    options.out.mkdir(parents=True)
    ops = plan(options.plan_settings(parts))
    pipeline = Pipeline(options.out, options.seed, options.lease, parts, choose_ports(parts))
    fleet = Fleet(options.out / "logs", pipeline.environment)
    began = time.monotonic()
    try:
        _start(pipeline, fleet)
        feeding = Feeding(pipeline, groups=options.groups, period=options.period)
        feeding.start()
        _say(f"{options.kills} kills in {ops[-1][0]:.0f} s, {len(parts)} parts, the broker at {pipeline.bootstrap}")
        _follow(ops, pipeline, fleet)
        _say("the feeder stops")
        feeding.stop()
        reader = TopicReader(pipeline.bootstrap, PREFIX)
        drained = _drain(options.drain, reader, pipeline, fleet, feeding.asked)
        fleet.end(*[n for n in fleet.members if n != "broker-1"])
        log = reader.read()
        dead_letters = dict(reader.dead_letters)
        reader.close()
    finally:
        fleet.end(*[n for n in fleet.members if n != "broker-1"])
        fleet.end()
    report = check(log, fleet.disturbances(), _view(pipeline), feeding.asked)
    line = _line(options, fleet, log, report) | {
        "drained": drained,
        "dead_letters": dead_letters,
        "cancelled": report.statuses.get("cancelled", 0),
        "commands_repeated": feeding.repeated,
        "seconds": round(time.monotonic() - began, 1),
    }
    keep(options.out, line, report, log, fleet.disturbances())
    if not report.violations and not options.keep:
        for name in ("kafka", "checkpoints", "model"):
            shutil.rmtree(options.out / name, ignore_errors=True)
    return line, report


def _start(pipeline: Pipeline, fleet: Fleet) -> None:
    fleet.start(pipeline.member("broker-1"))
    fleet.start(pipeline.make_model())
    fleet.wait_ready("broker-1")
    fleet.start(pipeline.topics())
    fleet.wait_ended("topics")
    names = [n for n in first_members(pipeline.parts) if n != "broker-1"]
    for name in names:
        fleet.start(pipeline.member(name))
    fleet.wait_ended("model")
    fleet.wait_ready(*names)
    time.sleep(WARM_SECONDS)


def _follow(ops: list[Op], pipeline: Pipeline, fleet: Fleet) -> None:
    began = time.monotonic()
    for at, what, name in ops:
        while (left := began + at - time.monotonic()) > 0:
            fleet.supervise()
            time.sleep(min(POLL_SECONDS, left))
        if what == "start":
            fleet.start(pipeline.member(name))
        else:
            {"kill": fleet.kill, "stop": fleet.stop, "wake": fleet.wake, "leave": fleet.leave}[what](name)


def _drain(seconds: float, reader: TopicReader, pipeline: Pipeline, fleet: Fleet, asked: list[str]) -> bool:
    """Waits until all that was asked for has ended and is decided; False where it takes too long."""
    deadline = time.monotonic() + seconds
    look_at = 0.0
    told = ""
    while (now := time.monotonic()) < deadline:
        fleet.supervise()
        if now >= look_at:
            left = unfinished(reader.read(), asked, _view(pipeline))
            if not left:
                return True
            if left != told:
                told = left
                _say(left)
            look_at = time.monotonic() + DRAINED_EVERY
        time.sleep(POLL_SECONDS)
    return False


def unfinished(log: Log, asked: list[str], view: list[tuple[str, str]] | None) -> str:
    """What is missing until the pipeline is drained; empty when nothing is."""
    states = {key: str(entries[-1]["status"]) for key, entries in by_key(log.rollouts).items()}
    wanted = {*asked, *(e.key for e in log.tasks)}
    open_ = sum(1 for i in wanted if states.get(i) not in TERMINAL)
    decided = {place for e in log.training if e["window"] is not None for place, _ in decided_by(e)}
    assembled = {str(e["rollout_id"]) for e in log.triplets}
    undecided = sum(1 for e in log.triplets if e.place not in decided)
    missing = {"open": open_, "without a trajectory": len(wanted - assembled), "undecided": undecided}
    if view is not None:
        rows = dict(view)
        missing["behind in the view"] = sum(1 for i, status in states.items() if rows.get(i) != status)
    return ", ".join(f"{n} {what}" for what, n in missing.items() if n)


def _view(pipeline: Pipeline) -> list[tuple[str, str]] | None:
    if "view" not in pipeline.parts:
        return None
    with closing(sqlite3.connect(f"file:{pipeline.view}?mode=ro", uri=True, timeout=10)) as database:
        return database.execute("SELECT rollout_id, status FROM rollouts").fetchall()


def _line(options: Options, fleet: Fleet, log: Log, report: Report) -> dict[str, Any]:
    disturbances = fleet.disturbances()

    def count(what: str) -> dict[str, int]:
        names = sorted(d.part for d in disturbances if d.what == what)
        return {part: names.count(part) for part in dict.fromkeys(names)}

    def times(what: str) -> dict[str, dict[str, float]]:
        return {part: percentiles(s) for part, s in sorted(recoveries(log, disturbances, what).items())}

    kinds = [v.kind for v in report.violations]
    return {
        "kills": count("kill"),
        "tasks": report.tasks,
        "lost": report.lost,
        "doubled": report.doubled,
        "started_twice": report.started_twice,
        "recovery_seconds": times("kill"),
        "violations": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        "seed": options.seed,
        "stops": count("stop"),
        "recovery_after_stop_seconds": times("stop"),
        "left": count("leave"),
        "exits": dict(fleet.exits),
        "orphans": dict(fleet.orphans),
        "statuses": report.statuses,
        "revisions": sum(1 for e in log.triplets if e["revision"]),
        "trained": report.trained,
        "dropped": report.dropped,
        "deliveries_lost": sum(1 for e in log.attempts if e["type"] == "lost"),
        "started": sum(1 for e in log.attempts if _is_start(e)),
    }


def _is_start(entry: Entry) -> bool:
    return entry["type"] == "started"


def _say(text: str) -> None:
    print(f"chaos: {text}", file=sys.stderr, flush=True)
