"""What answers are worth, and which trajectories are asked about."""

from datetime import timedelta
from typing import Any

import pytest

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import PromptPrefix, Reward, Trajectory, Triplet
from headrace.streams.agent.errors import InvalidRewardError
from headrace.streams.graders.rewards import MOST_DIMENSIONS, GradingRules, passed_over, rewards_of
from headrace.streams.graders.trajectory import GradedTrajectory

RULES = GradingRules("helpful", window=timedelta(days=7))
DAY_MS = 24 * 3600 * 1000


def trajectory(rollout_id: str = "r", **fields: Any) -> Trajectory:
    return Trajectory(rollout_id=rollout_id, attempt_id="r-1", status="succeeded", assembled_at=0, **fields)


def told(rewards: list[Reward]) -> list[tuple[str, str, bool, float]]:
    return [(r.reward_id, r.name, r.primary, r.value) for r in rewards]


def test_answers() -> None:
    assert told(rewards_of(True, trajectory(), RULES, at=1)) == [("grader/helpful/r", "helpful", True, 1.0)]
    assert rewards_of(None, trajectory(), RULES, at=1) == []
    (dimension,) = rewards_of(0.5, trajectory(), GradingRules("helpful", primary=False), at=1)
    assert not dimension.primary
    rules = GradingRules("judge", primary_key="quality")
    assert told(rewards_of({"quality": 1, "length": 0.25}, trajectory(), rules, at=1)) == [
        ("grader/judge/r/quality", "quality", True, 1.0),
        ("grader/judge/r/length", "length", False, 0.25),
    ]
    (reward,) = rewards_of(0, trajectory(), RULES, at=7)
    assert (reward.source, reward.attempt_id, reward.at) == ("grader", "r-1", 7)


def test_what_is_no_answer() -> None:
    for wrong in ("0.5", float("nan"), {"a": None}, [1.0]):
        with pytest.raises(InvalidRewardError):
            rewards_of(wrong, trajectory(), RULES, at=1)
    many = {str(n): 1.0 for n in range(MOST_DIMENSIONS + 1)}
    for wrong in (many, {"x" * 201: 1.0}, {"": 1.0}, {"\ud800": 1.0}):
        with pytest.raises(ValueError, match="dimension"):
            rewards_of(wrong, trajectory(), RULES, at=1)
    with pytest.raises(ValueError, match="primary_key='quality': the answer has"):
        rewards_of({"length": 1.0}, trajectory(), GradingRules("judge", primary_key="quality"), at=1)


def test_an_answer_that_comes_twice_has_the_same_ids() -> None:
    first, again = (told(rewards_of({"a": v, "b": 1}, trajectory(), RULES, at=at)) for v, at in ((0.1, 1), (0.9, 2)))
    assert [r[0] for r in first] == [r[0] for r in again]


def test_what_is_passed_over() -> None:
    def reason(record: Trajectory, age_ms: int = 0, rules: GradingRules = RULES) -> str | None:
        return passed_over(record, rules, appended_ms=0, now_ms=age_ms)

    assert reason(trajectory()) is None
    assert reason(trajectory(revision=1)) == "revisions"
    assert reason(trajectory(origin="external")) == "external"
    assert reason(trajectory(origin="external"), rules=GradingRules("g", external=True)) is None
    assert reason(trajectory(), age_ms=7 * DAY_MS) is None
    assert reason(trajectory(), age_ms=7 * DAY_MS + 1) == "too_old"


def test_a_kill_at_any_moment_loses_no_reward_and_gives_none_twice() -> None:
    """A grader that commits behind its writing, killed before every one of its steps."""
    log = [trajectory(f"r{n}") for n in range(4)]
    steps = [("write", n) for n in range(4)] + [("commit", n) for n in (2, 4)]
    orders = [steps, [("write", 1), ("write", 0), ("commit", 2), ("write", 3), ("write", 2), ("commit", 4)]]
    for order in orders:
        for killed_before in range(len(order) + 1):
            written: list[str] = []
            committed = 0
            for step, n in order[:killed_before]:
                if step == "write":
                    written += [r.reward_id for r in rewards_of(1.0, log[n], RULES, at=1)]
                elif all(f"grader/helpful/r{i}" in written for i in range(n)):
                    committed = n
            for record in log[committed:]:  # its successor
                written += [r.reward_id for r in rewards_of(1.0, record, RULES, at=2)]
            assert set(written) == {f"grader/helpful/r{n}" for n in range(4)}  # the first of an id counts


def test_what_a_function_is_given() -> None:
    def triplet(prompt: list[int], response: list[int], span_id: str, **fields: Any) -> Triplet:
        return Triplet(
            prompt_token_ids=pack_int32(prompt),
            response_token_ids=pack_int32(response),
            span_id=span_id,
            choice=0,
            model="m",
            **fields,
        )

    conversations = (
        '[{"span_id": "a", "choice": 0, "messages": [{"role": "user", "content": "hi"}, '
        '{"role": "assistant", "content": "ho"}]}, {"span_id": "b", "choice": 0, "messages": '
        '[{"role": "assistant", "content": [{"type": "text", "text": "last"}]}]}]'
    )
    record = trajectory(
        input='{"question": 1}',
        conversations=conversations,
        rewards={"own": 0.5},
        triplets=[
            triplet([1, 2], [3], "a"),
            triplet([4], [5], "b", prompt_prefix=PromptPrefix(triplet=0, length=3)),
            triplet([9], [9], "unknown"),
        ],
    )
    given = GradedTrajectory(record)
    assert given.input == {"question": 1}
    assert [c.prompt_token_ids for c in given.calls] == [[1, 2], [1, 2, 3, 4], [9]]
    assert [c.text for c in given.calls] == ["ho", "last", None]
    assert given.calls[0].messages[0] == {"role": "user", "content": "hi"}
    assert given.text == "last"
    assert given.rewards == {"own": 0.5}
    assert GradedTrajectory(trajectory()).text is None
    assert GradedTrajectory(trajectory()).calls == []
