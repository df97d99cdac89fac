from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import PromptPrefix, Sampling, Trajectory
from headrace.trainers.batch import TokenRow
from headrace.trainers.samples import SampleRules, token_rows
from tests.trainers.make import POLICY, trajectory, triplet

RULES = SampleRules(policy=POLICY, level="trajectory", vocab_size=48, max_row_tokens=20)


def made(record: Trajectory, rules: SampleRules = RULES) -> tuple[list[TokenRow], dict[str, int]]:
    rows, refused = token_rows(record, rules, advantage=0.5, rollout=3, staleness=2)
    return rows, dict(refused)


def with_call(**fields: Any) -> Trajectory:
    return trajectory("a", 0, triplets=[triplet([5, 6], [7, 8], [-0.5, -0.25], **fields)])


def test_a_call_becomes_a_row() -> None:
    rows, refused = made(with_call(sampling=Sampling(temperature=0.7)))
    assert refused == {}
    (row,) = rows
    assert row.token_ids.tolist() == [5, 6, 7, 8]
    assert row.loss_mask.tolist() == [False, False, True, True]
    assert row.logprobs.tolist() == [0.0, 0.0, -0.5, -0.25]
    assert (row.temperature, row.advantage, row.rollout, row.staleness) == (0.7, 0.5, 3, 2)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"sampling": Sampling(top_p=0.9)}, "off_support"),
        ({"sampling": Sampling(top_k=5)}, "off_support"),
        ({"sampling": Sampling(min_p=0.1)}, "off_support"),
        ({"sampling": Sampling(presence_penalty=0.1)}, "off_support"),
        ({"sampling": Sampling(frequency_penalty=-0.1)}, "off_support"),
        ({"sampling": Sampling(repetition_penalty=1.1)}, "off_support"),
        ({"sampling": Sampling(temperature=0.0)}, "off_support"),
        ({"sampling": Sampling(constraints='{"regex": "a"}')}, "off_support"),
        ({"sampling": Sampling(temperature=0.5), "logprobs_mode": "raw"}, "off_support"),
        ({"policy": "other"}, "other_policy"),
        ({"logprobs": None}, "no_logprobs"),
        ({"logprobs": pack_float32([-0.5, float("nan")])}, "bad_logprobs"),
        ({"logprobs": pack_float32([-0.5, float("-inf")])}, "bad_logprobs"),
        ({"logprobs": pack_float32([-0.5, 0.5])}, "bad_logprobs"),
    ],
)
def test_what_cannot_be_trained_has_a_reason(fields: dict[str, Any], reason: str) -> None:
    record = with_call()
    for name, value in fields.items():
        setattr(record.triplets[0], name, value)
    assert made(record) == ([], {reason: 1})


@pytest.mark.parametrize(
    ("prompt", "response", "logprobs", "reason"),
    [
        ([5, 48], [7], [-1.0], "bad_token_ids"),
        ([5, -1], [7], [-1.0], "bad_token_ids"),
        ([5] * 20, [7], [-1.0], "too_long"),
        ([], [7], [-1.0], "empty_prompt"),
        ([5], [7, 8], [-1.0], "bad_logprobs"),
        ([5], [7, 8], [-1.0] * 3, "bad_logprobs"),
        ([5], [7, 8], [], "bad_logprobs"),
    ],
)
def test_rows_that_cannot_be_trained(
    prompt: list[int], response: list[int], logprobs: list[float], reason: str
) -> None:
    assert made(trajectory("a", 0, triplets=[triplet(prompt, response, logprobs)])) == ([], {reason: 1})


def test_raw_logprobs_are_those_that_were_sampled_at_temperature_one() -> None:
    assert made(with_call(logprobs_mode="raw"))[1] == {}
    assert made(with_call(sampling=None))[0][0].temperature == 1.0


def test_one_bad_response_leaves_the_others_of_its_row() -> None:
    calls = [
        triplet([5], [6], [-1.0]),
        triplet([5, 6, 9], [7, 8], [-1.0, -2.0], sampling=Sampling(top_p=0.5)),
        triplet([5, 6, 9, 7, 8], [4], [-3.0], sampling=Sampling(temperature=2.0)),
    ]
    rows, refused = made(trajectory("a", 0, triplets=calls))
    assert refused == {"off_support": 1}
    (row,) = rows
    assert np.flatnonzero(row.loss_mask).tolist() == [1, 5]
    assert isinstance(row.temperature, np.ndarray)
    assert row.temperature[row.loss_mask].tolist() == [1.0, 2.0]


def test_a_prompt_that_refers_to_nothing_is_named() -> None:
    call = triplet([5], [6], [-1.0], prompt_prefix=PromptPrefix(triplet=3, length=2))
    assert made(trajectory("a", 0, triplets=[call])) == ([], {"bad_triplets": 1})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"logprobs": pack_float32([-1.0, -2.0])[:-1]}, "bad_logprobs"),
        ({"response_token_ids": pack_int32([7, 8])[:-1]}, "bad_triplets"),
        # Together they are a whole number of ids, of which none is right.
        ({"prompt_token_ids": pack_int32([5, 6])[:-1], "response_token_ids": pack_int32([7, 8])[:-3]}, "bad_triplets"),
    ],
)
def test_bytes_that_are_no_numbers_are_named(fields: dict[str, bytes], reason: str) -> None:
    record = with_call()
    for name, value in fields.items():
        setattr(record.triplets[0], name, value)
    assert made(record) == ([], {reason: 1})


def test_lengths_that_disagree_leave_the_other_responses_of_their_row() -> None:
    calls = [
        triplet([5], [6], [-1.0]),
        triplet([5, 6, 9], [7, 8], [-1.0, -2.0, -3.0]),
        triplet([4], [3, 2], [-1.0, -2.0]),
    ]
    rows, refused = made(trajectory("a", 0, triplets=calls))
    assert refused == {"bad_logprobs": 1}
    assert [np.flatnonzero(row.loss_mask).tolist() for row in rows] == [[1], [1, 2]]
    assert rows[1].logprobs.tolist() == [0.0, -1.0, -2.0]


def test_an_over_long_row_is_cut_behind_its_last_response_that_fits() -> None:
    calls = [triplet([5], [6], [-1.0]), triplet([5, 6, 9], [7] * 10, [-1.0] * 10), triplet([8] * 30, [1], [-1.0])]
    record = trajectory("a", 0, triplets=calls)
    rules = SampleRules(policy=POLICY, level="trajectory", vocab_size=48, max_row_tokens=12, over_long="cut")
    rows, refused = made(record, rules)
    assert refused == {"too_long": 2}
    (row,) = rows
    assert row.token_ids.tolist() == [5, 6]
    assert row.loss_mask.tolist() == [False, True]
    assert row.calls == ((0, 1),)
    whole, refused = made(record, replace(rules, over_long="drop"))
    assert (whole, refused) == ([], {"too_long": 3})


def test_calls_without_a_reward_or_a_version_are_masked() -> None:
    calls = [triplet([5], [6], [-1.0]), triplet([7, 5], [6, 7], [-1.0, -1.0])]
    rows, refused = token_rows(trajectory("a", 0, triplets=calls), RULES, rollout=0, staleness=0, unscored={0})
    assert dict(refused) == {"no_call_reward": 1}
    assert [row.calls for row in rows] == [((1, 2),)]
    assert made(with_call(policy_version=None)) == ([], {"no_policy_version": 1})
