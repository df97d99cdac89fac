"""What is left of a run: its line, its violations, and the trail of every rollout at fault."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.checker import Report
from tests.chaos.entries import Disturbance, Entry, Log
from tests.chaos.windows import decided_by

TRAILS = 50


def keep(out: Path, line: dict[str, Any], report: Report, log: Log, disturbances: Sequence[Disturbance]) -> None:
    """Writes summary.json, disturbances.json and, where something is wrong, violations.txt."""
    (out / "summary.json").write_text(json.dumps(line, indent=1) + "\n")
    (out / "disturbances.json").write_text(json.dumps([asdict(d) for d in disturbances], indent=0) + "\n")
    if not report.violations:
        return
    ids = list(dict.fromkeys(v.id for v in report.violations))[:TRAILS]
    text = [f"{v.kind} {v.id} {v.detail}" for v in report.violations]
    for id_ in ids:
        text += ["", f"== {id_}", *trail(log, id_)]
    (out / "violations.txt").write_text("\n".join(text) + "\n")


def trail(log: Log, rollout_id: str) -> list[str]:
    """All records of a rollout in the order of time."""
    found: list[tuple[int, str]] = []
    places: set[tuple[int, int]] = set()
    for name, entries in (("tasks", log.tasks), ("attempts", log.attempts), ("rollouts", log.rollouts)):
        found += [(e.at, f"{name} {_where(e)} {_words(e)}") for e in entries if e.key == rollout_id]
    found += [(e.at, f"assembled {_where(e)} {e['state']}") for e in log.assembled if e.key == rollout_id]
    for e in log.triplets:
        if e["rollout_id"] == rollout_id:
            places.add(e.place)
            found.append((e.at, f"triplets {_where(e)} revision {e['revision']} of {e['attempt_id']} {e['status']}"))
    for e in log.training:
        if e["window"] is not None:
            hits = [(place, how) for place, how in decided_by(e) if place in places]
            found += [(e.at, f"training {_where(e)} step {e['step']}: {p[0]}:{p[1]} {how}") for p, how in hits]
    return [f"{_clock(at)} {text}" for at, text in sorted(found)]


def _where(entry: Entry) -> str:
    return f"{entry.partition}:{entry.offset}"


def _words(entry: Entry) -> str:
    names = ("status", "type", "attempt_id", "attempt", "delivery", "final", "lost_reason", "worker_id")
    value = entry.value or {}
    return " ".join(f"{n}={value[n]}" for n in names if value.get(n) not in (None, False))


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
