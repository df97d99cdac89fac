"""Feedback as it is asked for."""

from typing import Any

import pytest

from headrace.streams.feedback.errors import FeedbackError
from headrace.streams.feedback.request import Target, read_feedback, reward_of

RO = {"rollout_id": "ro", "value": 1}


def test_what_it_becomes():
    given = read_feedback({**RO, "value": True, "name": "tone", "span_id": "s", "end": True, "metadata": {"by": "ann"}})
    reward = reward_of(given, Target("ro"), 7)
    assert (reward.rollout_id, reward.name, reward.primary, reward.value, reward.span_id) == (
        "ro",
        "tone",
        False,
        1.0,
        "s",
    )
    assert (reward.source, reward.at, reward.metadata) == ("feedback", 7, {"by": "ann", "end": "true"})


def _id(**fields: Any) -> str:
    return reward_of(read_feedback({**RO, **fields}), Target("ro"), 7).reward_id


def test_the_same_twice_is_one_and_a_change_is_another():
    assert _id() == _id(value=1.0) == _id(value=True, end=True)
    assert len({_id(), _id(value=2), _id(name="tone"), _id(span_id="s"), _id(key="k")}) == 5
    assert _id(key="k", value=3) == _id(key="k", value=1)


def test_segments_of_a_rollout_know_a_reward_by_one_id():
    given = read_feedback(RO)
    ids = [reward_of(given, Target(rollout), 0).reward_id for rollout in ("ro", "ro~2")]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"value": None}, "null_reward"),
        ({}, "null_reward"),
        ({"value": "1"}, "non_numeric_reward"),
        ({"value": [1]}, "non_numeric_reward"),
        ({"value": float("nan")}, "non_finite_reward"),
        ({"value": float("inf")}, "non_finite_reward"),
        ({"value": 10**400}, "non_finite_reward"),
        ({"value": 1, "rollout_id": ""}, "invalid_feedback"),
        ({"value": 1, "rollout_id": 7}, "invalid_feedback"),
        ({"value": 1, "rollout_id": "ro~x"}, "invalid_feedback"),
        ({"value": 1, "rollout_id": "~2"}, "invalid_feedback"),
        ({"value": 1, "rollout_id": "x" * 600}, "invalid_feedback"),
        ({"value": 1, "rollout_id": "a\nb"}, "invalid_feedback"),
        ({"value": 1, "rollout_id": "\ud800"}, "invalid_feedback"),
        ({"value": 1, "session_id": "two targets"}, "invalid_feedback"),
        ({"value": 1, "scope": "all"}, "invalid_feedback"),
        ({"value": 1, "end": "yes"}, "invalid_feedback"),
        ({"value": 1, "vaule": 1}, "invalid_feedback"),
        ({"value": 1, "metadata": {"a": 1}}, "invalid_feedback"),
        ({"value": 1, "metadata": {"end": "true"}}, "invalid_feedback"),
        ({"value": 1, "metadata": []}, "invalid_feedback"),
    ],
)
def test_what_cannot_be_is_refused_with_its_reason(fields: dict[str, Any], code: str):
    with pytest.raises(FeedbackError) as refused:
        read_feedback({"rollout_id": "ro", **fields})
    assert refused.value.code == code


@pytest.mark.parametrize("value", [None, [], "x", 1, {"value": 1}])
def test_without_a_target(value: Any):
    with pytest.raises(FeedbackError, match=r"JSON object|name what it is about"):
        read_feedback(value)


def test_a_segment_is_named_by_its_trajectory():
    assert read_feedback({"rollout_id": "ro~2", "value": 0}).id == "ro~2"
