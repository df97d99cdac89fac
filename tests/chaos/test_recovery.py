"""Recovery times from hand-made topics."""

from tests.chaos.entries import Disturbance, Entry, Log
from tests.chaos.recovery import percentiles, recoveries


def event(at: int, worker_id: str, **more: object) -> Entry:
    return Entry(0, at, at, "r", {"type": "started", "worker_id": worker_id, "lost_reason": None, **more})


def test_a_runner_has_recovered_with_its_first_own_event() -> None:
    log = Log(
        attempts=[
            event(900, "runner-1"),
            event(1_500, "runner-2"),
            event(2_000, "runner-1", type="lost", lost_reason="lease"),
            event(4_000, "runner-1"),
        ]
    )
    kill = Disturbance("kill", "runner-1", 1_000, 1_200)
    assert recoveries(log, [kill], "kill") == {"runner": [3.0]}
    assert recoveries(log, [kill], "stop") == {}
    assert recoveries(log, [Disturbance("stop", "runner-1", 1_000, 3_500)], "stop") == {"runner": [0.5]}


def test_a_recovery_that_was_hit_again_gives_no_figure() -> None:
    log = Log(attempts=[event(4_000, "runner-1")])
    twice = [Disturbance("kill", "runner-1", 1_000, 1_200), Disturbance("kill", "runner-1", 2_000, 2_100)]
    assert recoveries(log, twice, "kill") == {"runner": [2.0]}


def test_a_processor_has_recovered_when_its_last_partition_goes_on() -> None:
    states = [Entry(p, at, at, "r", {"status": "queuing"}) for p, at in ((0, 900), (1, 950), (0, 1_100), (1, 5_000))]
    kill = Disturbance("kill", "lifecycle-1", 1_000, 1_200)
    assert recoveries(Log(rollouts=states), [kill], "kill") == {"lifecycle": [4.0]}


def test_an_engine_has_recovered_with_its_first_loaded_version() -> None:
    workers = [
        Entry(0, n, at, "engine-1", {"status": "idle", "loaded_version": v})
        for n, (at, v) in enumerate([(1_100, 0), (1_900, 7)])
    ]
    kill = Disturbance("kill", "engine-1", 1_000, 1_050)
    assert recoveries(Log(workers=workers), [kill], "kill") == {"engine": [0.9]}


def test_percentiles_are_nearest_ranks() -> None:
    assert percentiles([3.0, 1.0, 2.0]) == {"p50": 2.0, "p99": 3.0, "n": 3}
