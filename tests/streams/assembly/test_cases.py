"""Every recorded case gives what it expects, and gives the same when its requests are split or sent again."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace.cli.answers import answer, replay_directory
from headrace.connectors.casedir.reader import Clock, Entry, Request, read_entries, read_settings
from headrace.connectors.casedir.replay import replay
from headrace.streams.assembly.settings import AssemblySettings

CASES = sorted(path.parent for path in (Path(__file__).parents[2] / "cases").glob("*/case.json"))


def names(case: Path) -> str:
    return case.name


def holds(expected: Any, found: Any) -> bool:
    """Whether all that is expected is found; numbers within 1e-9, keys that are not named are free."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(holds(value, found.get(key)) for key, value in expected.items())
    if isinstance(expected, list):
        return isinstance(found, list) and len(expected) == len(found) and all(map(holds, expected, found))
    if isinstance(expected, float | int) and isinstance(found, float | int):
        return abs(expected - found) < 1e-9
    return expected == found or (expected is None and found == [])


def rows(trajectory: dict[str, Any]) -> Counter[str]:
    return Counter(json.dumps([row["token_ids"], row["loss_mask"]]) for row in trajectory["rows"])


@pytest.mark.parametrize("case", CASES, ids=names)
def test_case(case: Path):
    expected = json.loads((case / "case.json").read_text())["expect"]
    found = replay_directory(case)
    by_id = {trajectory["rollout_id"]: trajectory for trajectory in found["trajectories"]}
    if "trajectories" in expected:
        assert set(by_id) == {trajectory["rollout_id"] for trajectory in expected["trajectories"]}
    for trajectory in expected.get("trajectories", []):
        answered = by_id[trajectory["rollout_id"]]
        if "rows" in trajectory:
            assert rows(trajectory) == rows(answered)
        if "dropped" in trajectory:
            assert trajectory["dropped"] == answered["dropped"]
        for key, value in trajectory.items():
            if key != "rows":
                assert holds(value, answered[key]), (key, value, answered[key])
    calls = expected.get("calls", [])
    if calls:
        assert len(calls) == len(found["calls"])
    for call, answered in zip(calls, found["calls"], strict=False):
        assert answered["span_id"] in call["span_ids"]
        assert holds({key: value for key, value in call.items() if key != "span_ids"}, answered)
    if "rejected" in expected:
        assert Counter(expected["rejected"]) == Counter(found["rejected"])
    assert holds(expected.get("counters", {}), found["counters"])


def run(entries: list[Entry], case: Path) -> dict[str, Any]:
    settings = read_settings(case)
    level = settings.pop("level", "trajectory")
    chosen = msgspec.convert(settings, AssemblySettings)
    return answer(replay(entries, chosen), level, chosen)


def split(entry: Entry) -> list[Entry]:
    """A request as one request a span."""
    if not isinstance(entry, Request):
        return [entry]
    return [
        Request(json.dumps({"resourceSpans": [{**resource, "scopeSpans": [{**scope, "spans": [span]}]}]}))
        for resource in json.loads(entry.body)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


@pytest.mark.parametrize("case", CASES, ids=names)
def test_split_and_resent_requests_change_nothing(case: Path):
    entries = list(read_entries(case))
    once = run(entries, case)
    assert run([part for entry in entries for part in split(entry)], case) == once
    twice = [entry for entry in entries for _ in range(2 if isinstance(entry, Request) else 1)]
    assert run(twice, case) == once


@pytest.mark.parametrize("case", CASES, ids=names)
def test_repeated_records_change_nothing(case: Path):
    entries = list(read_entries(case))
    repeated = [entry for entry in entries for _ in range(1 if isinstance(entry, Clock) else 2)]
    assert run(repeated, case) == run(entries, case)
