from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.schemas.records import TrainingStep, VersionRange, Window
from headrace.streams.errors import SettingsError
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings
from tests.trainers.make import POLICY, RUN, at, trajectory, triplet

SECOND = 1_000_000


def windows(**fields: Any) -> Windows:
    return Windows(WindowSettings(**({"run_id": RUN, "policy": POLICY, "groups": 1} | fields)))


def dropped(window: Window) -> dict[str, list[tuple[int, int]]]:
    return {d.reason: [(s.partition, s.offset) for s in d.samples] for d in window.dropped}


def trained(window: Window) -> list[tuple[int, int]]:
    return [(s.partition, s.offset) for s in window.samples]


def take_all(w: Windows, version: int = 0, now: int = 0) -> Window:
    groups = w.close(version, now) or []
    for group in groups:
        w.train(w.trainable(group))
    return w.decisions()


def test_a_window_closes_on_complete_groups_and_orders_samples_by_index() -> None:
    w = windows(groups=2)
    w.take((0, 0), 0, trajectory("a", 1))
    w.take((1, 0), 0, trajectory("b", 0))
    w.take((1, 1), 0, trajectory("b", 1))
    assert w.close(0, 0) is None
    w.take((0, 1), 0, trajectory("a", 0))
    window = take_all(w)
    assert trained(window) == [(1, 0), (1, 1), (0, 1), (0, 0)]
    assert window.group_ids == ["b", "a"]
    assert w.decided == 4


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"mode": "val"}, "mode"),
        ({"mode": None}, "mode"),
        ({"origin": "external"}, "external_not_accepted"),
        ({"policy": "other"}, "wrong_policy"),
        ({"policy": None}, "wrong_policy"),
        ({"policy": None, "triplets": [], "run_id": "run-2"}, "other_run"),
        ({"run_id": "run-2"}, "other_run"),
        ({"group_id": None}, "no_group"),
        ({"revision": 1, "supersedes": at(0, 5)}, "already_decided"),
    ],
)
def test_what_is_not_for_this_run_is_dropped_at_once(fields: dict[str, Any], reason: str) -> None:
    w = windows()
    w.take((0, 7), 0, trajectory("a", 0, **fields))
    assert dropped(w.decisions()) == {reason: [(0, 7)]}
    assert w.position()[0].next == 8


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"triplets": [], "policy": None, "policy_version": None}, "no_triplets"),
        ({"triplets": [], "policy": None, "policy_version": None, "run_id": None}, "no_triplets"),
        ({"final_reward": None}, "no_reward"),
        ({"policy_version": None}, "no_policy_version"),
        ({"policy_version": VersionRange(min=1, max=5)}, "stale"),
    ],
)
def test_members_that_cannot_be_trained_still_complete_their_group(fields: dict[str, Any], reason: str) -> None:
    w = windows(max_staleness=3)
    w.take((0, 0), 0, trajectory("a", 0, policy_version=VersionRange(min=2, max=2)))
    w.take((0, 1), 0, trajectory("a", 1, **fields))
    groups = w.close(5, 0)
    assert groups is not None
    assert sorted(groups[0].members) == [0, 1]
    w.train(w.trainable(groups[0]))
    window = w.decisions()
    assert (trained(window), dropped(window)) == ([(0, 0)], {reason: [(0, 1)]})


def test_staleness_counts_from_the_oldest_version() -> None:
    w = windows(max_staleness=3)
    w.take((0, 0), 0, trajectory("a", 0, policy_version=VersionRange(min=2, max=5)))
    w.take((0, 1), 0, trajectory("a", 1, policy_version=VersionRange(min=5, max=5)))
    groups = w.close(5, 0)
    assert groups is not None
    assert [m.staleness for m in w.trainable(groups[0])] == [3, 0]


def test_late_and_repeated_members() -> None:
    w = windows()
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), 0, trajectory("a", 0, rollout_id="again"))
    w.take((0, 2), 0, trajectory("a", 1))
    take_all(w)
    w.take((0, 3), 0, trajectory("a", 1, rollout_id="late"))
    assert dropped(w.decisions()) == {"group_decided": [(0, 3)]}


def test_a_revision_replaces_the_pending_one_and_is_decided_with_it() -> None:
    w = windows()
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), 0, trajectory("a", 0, revision=1, supersedes=at(0, 0), final_reward=9.0))
    assert w.decided == 0
    assert w.position()[0].next == 0
    w.take((0, 2), 0, trajectory("a", 1))
    groups = w.close(0, 0)
    assert groups is not None
    assert groups[0].members[0].trajectory.final_reward == 9.0
    # In the window under way, not yet in any step.
    w.take((0, 3), 0, trajectory("a", 1, revision=1, supersedes=at(0, 2)))
    w.train([m for m in groups[0].in_order() if m.at in ((0, 1), (0, 2))])
    window = w.decisions()
    assert trained(window) == [(0, 1), (0, 2)]
    assert dropped(window)["superseded"] == [(0, 0)]
    assert w.decided == 2


def test_a_group_times_out_by_log_time() -> None:
    for incomplete, reasons in (("drop", {"group_timeout": [(0, 0), (0, 1)]}), ("train", {})):
        w = windows(group_timeout_seconds=10, incomplete=incomplete)
        w.take((0, 0), 5 * SECOND, trajectory("a", 0, group_size=3))
        w.take((0, 1), 6 * SECOND, trajectory("a", 1, group_size=3))
        assert w.close(0, 14 * SECOND) is None
        window = take_all(w, now=15 * SECOND)
        assert dropped(window) == reasons
        assert len(window.samples) == (0 if incomplete == "drop" else 2)


def test_sample_count_and_time_close_a_window() -> None:
    w = windows(groups=9, samples=2)
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), 0, trajectory("a", 1))
    assert len(w.close(0, 0) or []) == 1
    w = windows(groups=9, seconds=3)
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), SECOND, trajectory("a", 1))
    assert w.close(0, 3 * SECOND) is None
    assert len(w.close(0, 4 * SECOND) or []) == 1


@pytest.mark.parametrize(
    ("fields", "rewards", "reason"),
    [
        ({"zero_variance": "drop"}, (1.0, 1.0), "zero_variance"),
        ({"zero_variance": "drop"}, (1.0, None), "zero_variance"),
        ({"thin": "drop"}, (1.0, None), "thin_group"),
        ({"skip_solved": 0.9}, (1.0, 0.9), "solved"),
    ],
)
def test_a_group_that_teaches_nothing_gives_its_place_to_the_next(
    fields: dict[str, Any], rewards: tuple[float, float | None], reason: str
) -> None:
    w = windows(groups=1, **fields)
    for index, reward in enumerate(rewards):
        w.take((0, index), 0, trajectory("idle", index, final_reward=reward))
    assert w.close(0, 0) is None
    w.take((0, 2), 0, trajectory("b", 0))
    w.take((0, 3), 0, trajectory("b", 1))
    window = take_all(w)
    assert trained(window) == [(0, 2), (0, 3)]
    assert dropped(window) == {reason: [(0, 0), (0, 1)]}
    assert window.group_ids == ["idle", "b"]
    w.take((0, 4), 0, trajectory("idle", 1, rollout_id="late"))
    assert dropped(w.decisions()) == {"group_decided": [(0, 4)]}


def test_a_curriculum_names_its_reason() -> None:
    w = Windows(windows().settings, lambda group: "too_easy" if min(group.rewards) > 0 else None)
    w.take((0, 0), 0, trajectory("a", 0, final_reward=0.5))
    w.take((0, 1), 0, trajectory("a", 1))
    assert w.close(0, 0) is None
    assert dropped(w.decisions()) == {"too_easy": [(0, 0), (0, 1)]}


def test_a_group_waits_for_its_rewards_until_it_times_out() -> None:
    w = windows(require_rewards=("judge",), group_timeout_seconds=10)
    judged = {"judge": 0.5}
    w.take((0, 0), 0, trajectory("a", 0, rewards=judged))
    w.take((0, 1), 0, trajectory("a", 1))
    assert w.close(0, SECOND) is None
    w.take((0, 2), 2 * SECOND, trajectory("a", 1, revision=1, supersedes=at(0, 1), rewards=judged))
    assert trained(take_all(w, now=2 * SECOND)) == [(0, 0), (0, 2)]
    w.take((0, 3), 0, trajectory("b", 0, rewards=judged))
    w.take((0, 4), 0, trajectory("b", 1))
    window = take_all(w, now=10 * SECOND)
    assert (trained(window), dropped(window)) == ([(0, 3)], {"no_required_reward": [(0, 4)]})


def test_samples_without_a_group_are_complete_by_themselves() -> None:
    w = windows(groups=2, ungrouped="window", zero_variance="drop", thin="drop")
    w.take((0, 0), 0, trajectory(None, 0, group_size=8))
    w.take((0, 1), 0, trajectory(None, 0, rollout_id="other"))
    w.take((0, 2), 0, trajectory(None, 0, revision=1, supersedes=at(0, 1), final_reward=2.0))
    window = take_all(w)
    assert trained(window) == [(0, 0), (0, 2)]
    assert dropped(window) == {"superseded": [(0, 1)]}
    assert window.group_ids == []
    assert w.decided == 2


def test_staleness_counts_the_oldest_call_whatever_the_trajectory_says() -> None:
    w = windows(max_staleness=3)
    old = triplet([1], [2], [-1.0], policy_version=VersionRange(min=0, max=5))
    foreign = triplet([1], [2], [-1.0], policy="other", policy_version=VersionRange(min=0, max=0))
    at_five = VersionRange(min=5, max=5)
    w.take((0, 0), 0, trajectory("a", 0, policy_version=at_five, triplets=[old]))
    w.take((0, 1), 0, trajectory("a", 1, policy_version=at_five, triplets=[foreign]))
    groups = w.close(5, 0)
    assert groups is not None
    assert [m.at for m in w.trainable(groups[0])] == [(0, 1)]
    assert dropped(w.decisions()) == {"stale": [(0, 0)]}


def test_a_group_that_is_split_over_a_revision_is_decided_once() -> None:
    """The first revision was trained before a restart, the second comes after it."""
    w = windows()
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), 0, trajectory("a", 1))
    groups = w.close(0, 0)
    assert groups is not None
    w.train(w.trainable(groups[0]))
    again = Windows.restored(w.settings, [step(w)])
    again.take((0, 2), 0, trajectory("a", 1, revision=1, supersedes=at(0, 1), final_reward=9.0))
    assert again.close(1, 0) is None
    window = again.decisions()
    assert (trained(window), dropped(window)) == ([], {"already_decided": [(0, 2)]})
    assert again.position()[0].next == 3


def test_timers_judge_only_what_is_read_and_begin_anew_after_an_outage() -> None:
    w = windows(group_timeout_seconds=10, groups=2, seconds=1)
    w.take((0, 0), 0, trajectory("a", 0))
    assert w.close(0, 100 * SECOND, timers=False) is None
    w.restart_timers(100 * SECOND)
    assert w.close(0, 109 * SECOND) is None
    w.take((0, 1), 109 * SECOND, trajectory("a", 1))
    assert w.close(0, 111 * SECOND, timers=False) is None
    assert trained(take_all(w, now=111 * SECOND)) == [(0, 0), (0, 1)]
    w.take((0, 2), 111 * SECOND, trajectory("b", 0))
    assert dropped(take_all(w, now=121 * SECOND)) == {"group_timeout": [(0, 2)]}


def test_a_window_of_dropped_samples_only_is_decided_without_a_step() -> None:
    w = windows(max_staleness=0)
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), 0, trajectory("a", 1))
    groups = w.close(9, 0)
    assert groups is not None
    assert w.trainable(groups[0]) == []
    assert dropped(w.decisions()) == {"stale": [(0, 0), (0, 1)]}
    assert w.position()[0].next == 2


def test_unknown_policies_name_the_known() -> None:
    for fields, known in (
        ({"thin": "keep"}, "train, drop"),
        ({"zero_variance": "no"}, "train, drop"),
        ({"ungrouped": "mean"}, "drop, window, running, value"),
    ):
        with pytest.raises(SettingsError, match=known):
            windows(**fields)


def test_after_the_end_everything_is_decided_as_run_finished() -> None:
    w = windows(groups=5)
    w.take((0, 0), 0, trajectory("a", 0))
    w.finish()
    w.take((0, 1), 0, trajectory("a", 1))
    w.take((0, 2), 0, trajectory("b", 1, mode="val"))
    window = w.decisions()
    assert dropped(window) == {"run_finished": [(0, 0), (0, 1)], "mode": [(0, 2)]}
    assert w.position()[0].next == 3


def test_markers_between_records_are_finished() -> None:
    w = windows()
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 4), 0, trajectory("b", 0))
    w.take((0, 6), 0, trajectory("b", 1))
    w.reached(0, 8)
    take_all(w)
    position = w.position()[0]
    assert position.next == 0
    assert [(r.first, r.last) for r in position.finished] == [(1, 7)]


def test_what_retention_took_while_it_was_held_is_named() -> None:
    w = windows()
    w.take((0, 0), 0, trajectory("a", 0))
    w.take((0, 1), 0, trajectory("a", 1, mode="val"))
    again = Windows.restored(w.settings, [step(w)])
    again.take((0, 5), 0, trajectory("b", 0))
    assert dropped(again.decisions()) == {"expired": [(0, 0)]}


def step(w: Windows) -> TrainingStep:
    return TrainingStep(
        run_id=RUN,
        step=1,
        policy=POLICY,
        policy_version=1,
        window=w.decisions(),
        decided=w.decided,
        started_at=0,
        ended_at=0,
    )


KINDS = ("train", "train", "train", "val", "revise", "old", "alone", "rewarded")
Event = tuple[int, int, int, str]
POLICIES = st.fixed_dictionaries(
    {
        "groups": st.integers(1, 2),
        "samples": st.sampled_from([None, 2]),
        "seconds": st.sampled_from([None, 3.0]),
        "group_timeout_seconds": st.sampled_from([5.0, 1000.0]),
        "incomplete": st.sampled_from(["train", "drop"]),
        "thin": st.sampled_from(["train", "drop"]),
        "zero_variance": st.sampled_from(["train", "drop"]),
        "skip_solved": st.sampled_from([None, 1.5]),
        "ungrouped": st.sampled_from(["drop", "window"]),
        "require_rewards": st.sampled_from([(), ("judge",)]),
        "max_staleness": st.integers(0, 2),
    }
)


def records_of(events: list[Event], data: st.DataObject) -> dict[int, list[tuple[int, Any]]]:
    """Three partitions of records, with gaps between their offsets."""
    log: dict[int, list[tuple[int, Any]]] = {p: [] for p in range(3)}
    for partition, group, index, kind in events:
        records = log[partition]
        offset = records[-1][0] + data.draw(st.integers(1, 3)) if records else 0
        version = data.draw(st.integers(0, 3))
        fields: dict[str, Any] = {"group_size": 3, "rollout_id": f"{partition}-{group}-{index}"}
        fields["policy_version"] = VersionRange(min=version, max=version)
        if kind == "val":
            fields["mode"] = "val"
        if kind == "old":
            fields["policy_version"] = VersionRange(min=-9, max=0)
        if kind == "rewarded":
            fields["rewards"] = {"judge": 1.0}
        if kind == "revise" and records:
            before, _ = data.draw(st.sampled_from(records))
            fields |= {"revision": 1, "supersedes": at(partition, before), "rewards": {"judge": 1.0}}
        records.append((offset, trajectory(None if kind == "alone" else f"{partition}-{group}", index, **fields)))
    return log


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.integers(0, 2), st.sampled_from(KINDS)), max_size=60),
    POLICIES,
    st.data(),
)
def test_every_record_is_decided_exactly_once_over_restarts(
    events: list[Event], policies: dict[str, Any], data: st.DataObject
) -> None:
    """Cut anywhere, with steps carried or lost at the cut: the steps that the log has name each record once.

    No offset passes what is undecided, and nothing is trained beyond the bound of staleness.
    """
    log = records_of(events, data)
    everything = {(p, offset): record for p, records in log.items() for offset, record in records}
    w = windows(**policies)
    committed: list[TrainingStep] = []
    version = 0
    lives = data.draw(st.integers(1, 4))
    for life in range(lives):
        last = life == lives - 1
        starts = w.starts()
        left = {p: [r for r in log[p] if r[0] >= starts.get(p, 0)] for p in log}
        for now in range(10_000 if last else data.draw(st.integers(0, 40))):
            ready = [p for p in left if left[p]]
            if not ready:
                break
            partition = data.draw(st.sampled_from(ready))
            offset, record = left[partition].pop(0)
            w.take((partition, offset), now * SECOND, record)
            if data.draw(st.booleans()):
                groups = w.close(version, now * SECOND, timers=data.draw(st.booleans())) or []
                for group in groups:
                    for member in w.trainable(group):
                        oldest = everything[member.at].policy_version.min
                        assert max(0, version - oldest) == member.staleness <= w.settings.max_staleness
                    w.train(w.trainable(group))
                version += bool(groups)
                if w.carrying:
                    committed.append(msgspec.convert(msgspec.to_builtins(step(w)), TrainingStep))
                    assert_no_offset_passes_the_undecided(committed, everything)
        if last:
            w.finish()
            committed.append(step(w))
        else:
            w = Windows.restored(w.settings, committed)
    seen = Counter(place for c in committed for place in decided_by(c))
    assert seen == Counter(list(everything))
    decided_groups = [g for c in committed for g in c.window.group_ids]
    assert len(decided_groups) == len(set(decided_groups))
    for position in committed[-1].window.position:
        assert position.next == log[position.partition][-1][0] + 1
        assert position.finished == []


def decided_by(step: TrainingStep) -> list[tuple[int, int]]:
    window = step.window
    return [(s.partition, s.offset) for s in [*window.samples, *(x for d in window.dropped for x in d.samples)]]


def assert_no_offset_passes_the_undecided(
    committed: list[TrainingStep], everything: dict[tuple[int, int], Any]
) -> None:
    decided = {place for c in committed for place in decided_by(c)}
    for position in committed[-1].window.position:
        runs = [(0, position.next - 1), *((r.first, r.last) for r in position.finished)]
        finished = {p for p in everything if p[0] == position.partition and any(a <= p[1] <= b for a, b in runs)}
        assert finished <= decided
