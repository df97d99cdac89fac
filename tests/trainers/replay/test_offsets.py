"""Where a replay begins and ends."""

import pytest

from headrace.schemas.records import TrainingStep, Window
from headrace.streams.errors import InvalidValueError
from headrace.trainers.replay.changes import Changes, parse_changes
from headrace.trainers.replay.errors import ReplayError
from headrace.trainers.replay.offsets import Bound, Places, parse_bound, select
from headrace.trainers.replay.settings import ReplaySettings
from tests.trainers.make import RUN, at


def step(number: int, *samples: tuple[int, int]) -> TrainingStep:
    return TrainingStep(
        run_id=RUN,
        step=number,
        policy="policy",
        policy_version=number,
        window=Window(samples=[at(p, o) for p, o in samples]),
        started_at=0,
        ended_at=0,
    )


STEPS = [step(1, (0, 0), (1, 3)), step(2, (0, 4), (1, 1)), step(3, (0, 5), (1, 7)), step(4, (0, 9), (1, 9))]


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("earliest", Bound("earliest", edge="earliest")),
        ("0:12", Bound("0:12", offsets={0: 12})),
        ("0:12,3:0", Bound("0:12,3:0", offsets={0: 12, 3: 0})),
        ("step:40", Bound("step:40", step=40)),
        ("2026-01-31T12:00", Bound("2026-01-31T12:00", at_ms=1769860800000)),
        ("2026-01-31T12:00+01:00", Bound("2026-01-31T12:00+01:00", at_ms=1769857200000)),
        ("2026-01-31T12:00:00.250Z", Bound("2026-01-31T12:00:00.250Z", at_ms=1769860800250)),
    ],
)
def test_forms_of_offsets(text: str, bound: Bound) -> None:
    assert parse_bound(text, "--from") == bound


@pytest.mark.parametrize("text", ["", "newest", "0:12,", "0:-1", "0:1,0:2", "12", "step:", "2026-13-01", "1:2:3"])
def test_what_is_none_of_them(text: str) -> None:
    with pytest.raises(InvalidValueError, match="--to"):
        parse_bound(text, "--to")


@pytest.mark.parametrize(
    ("start", "end", "chosen", "before", "cut"),
    [
        (None, None, [1, 2, 3, 4], None, []),
        (Places({0: 1, 1: 0}), None, [2, 3, 4], 1, [1]),
        (Places({0: 4, 1: 2}), None, [3, 4], 2, [1, 2]),  # step 2 has a sample before it, so that step 1 is out too
        (None, Places({0: 9, 1: 9}), [1, 2, 3], None, []),
        (None, Places({0: 6, 1: 2}), [], None, []),
        (Places({}, 2), Places({}, 4), [2, 3], 1, []),
    ],
)
def test_steps_between_bounds(
    start: Places | None, end: Places | None, chosen: list[int], before: int | None, cut: list[int]
) -> None:
    if not chosen:
        with pytest.raises(ReplayError, match="steps 1 to 4 with samples at 0:0-9, 1:1-9"):
            select(STEPS, start, end)
        return
    selection = select(STEPS, start, end)
    assert [s.step for s in selection.steps] == chosen
    assert (selection.before and selection.before.step) == before
    assert list(selection.cut) == cut


def test_settings_of_the_assembler() -> None:
    assert parse_changes([]) == Changes()
    given = parse_changes(["reward-policy=final_only", "keep_incomplete=true", "agent_match=", "level=transition"])
    assert given.assembly == {"reward_policy": "final_only", "keep_incomplete": True, "agent_match": None}
    assert given.names() == {**given.assembly, "level": "transition"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dedup=off", "there is no 'dedup', but agent_match, reward_policy"),
        ("reward_policy", "write NAME=VALUE"),
        ("reward_policy=best", "Invalid enum value 'best'"),
        ("keep_incomplete=perhaps", "bool"),
        ("agent_match=(", "no regular expression"),
        ("settle_seconds=9", "says when a rollout closes"),
        ("level=token", "choose transition or trajectory"),
    ],
)
def test_settings_that_there_are_not(text: str, why: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        parse_changes([text])
    assert why in str(refused.value)


@pytest.mark.parametrize(
    "told",
    [
        {"recorded": True, "reward": "a.py:b"},
        {"recorded": True, "changes": Changes({"agent_match": "x"})},
        {"until": 3, "end": parse_bound("latest", "--to")},
        {"primary_key": "helpful"},
    ],
)
def test_what_does_not_go_together(told: dict[str, object], tmp_path: object) -> None:
    with pytest.raises(InvalidValueError):
        ReplaySettings(run_id=RUN, checkpoints=tmp_path, **told)  # type: ignore[arg-type]
