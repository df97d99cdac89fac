"""Turns to rows: what holds for every trajectory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import Trajectory, Triplet
from headrace.streams.assembly.prompts import pack_prompts
from headrace.trainers.rows import COMPACTED, FIRST, NO_LOGPROBS, OTHER_AGENT, RETOKENISED, make_rows

Turns = list[tuple[list[int], list[int], str | None]]


@st.composite
def turns(draw: st.DrawFn) -> Turns:
    """Turns that continue earlier ones, branch off, or begin anew; responses are never empty."""
    tokens = st.lists(st.integers(0, 3), min_size=1, max_size=6)
    found: Turns = []
    for _ in range(draw(st.integers(1, 8))):
        before: list[int] = []
        if found and draw(st.booleans()):
            prompt, response, _ = draw(st.sampled_from(found))
            before = prompt + (response if draw(st.booleans()) else response[:1])
        found.append((before + draw(tokens), draw(tokens), draw(st.sampled_from([None, "a", "b"]))))
    return found


def trajectory(turns: Turns, *, logprobs: bool = True) -> Trajectory:
    triplets = [
        Triplet(
            prompt_token_ids=pack_int32(prompt),
            response_token_ids=pack_int32(response),
            logprobs=pack_float32([-float(i) - 0.5] * len(response)) if logprobs else None,
            agent_name=agent,
            span_id=str(i),
        )
        for i, (prompt, response, agent) in enumerate(turns)
    ]
    pack_prompts(triplets)
    return Trajectory(rollout_id="ro", status="succeeded", triplets=triplets, assembled_at=0)


@given(turns())
def test_each_response_is_trained_once_with_its_own_logprobs_and_context(given_turns: Turns):
    made = make_rows(trajectory(given_turns))
    seen: list[int] = []
    for row in made.rows:
        trained = np.zeros(len(row.token_ids), dtype=bool)
        for turn in row.turns:
            prompt, response, _ = given_turns[turn.triplet]
            seen.append(turn.triplet)
            assert row.token_ids[: turn.end].tolist() == prompt + response
            assert turn.start == len(prompt)
            assert set(row.logprobs[turn.start : turn.end].tolist()) == {-float(turn.triplet) - 0.5}
            trained[turn.start : turn.end] = True
        assert (row.loss_mask == trained).all()
        assert (row.logprobs[~trained] == 0).all()
    assert sorted(seen) == list(range(len(given_turns)))
    assert sum(made.reasons.values()) == len(made.rows)
    assert made.rows[0].reason == FIRST


@given(turns())
def test_transition_gives_a_row_a_triplet(given_turns: Turns):
    made = make_rows(trajectory(given_turns), "transition")
    assert [row.token_ids.tolist() for row in made.rows] == [prompt + response for prompt, response, _ in given_turns]
    assert all(row.prompt_length == len(given_turns[i][0]) for i, row in enumerate(made.rows))


@given(turns())
def test_the_trajectory_level_never_makes_more_rows_or_other_samples(given_turns: Turns):
    whole, single = make_rows(trajectory(given_turns)), make_rows(trajectory(given_turns), "transition")
    assert len(whole.rows) <= len(single.rows)
    assert sum(row.loss_mask.sum() for row in whole.rows) == sum(row.loss_mask.sum() for row in single.rows)


def test_why_rows_begin():
    made = make_rows(
        trajectory(
            [
                ([1, 2], [3, 4], "a"),
                ([1, 2, 34, 5], [6], "a"),  # the answer came back as another token
                ([9, 9], [6], "a"),  # another context
                ([1, 2], [7], "b"),
                ([1, 2, 3, 4, 8], [6], "a"),  # goes on from the first
            ]
        )
    )
    assert [row.reason for row in made.rows] == [FIRST, RETOKENISED, COMPACTED, OTHER_AGENT]
    assert [turn.triplet for turn in made.rows[0].turns] == [0, 4]


def test_responses_without_logprobs_are_masked_where_they_are_required():
    plain = trajectory([([1], [2, 3], None)], logprobs=False)
    assert make_rows(plain).rows[0].loss_mask.tolist() == [False, True, True]
    masked = make_rows(plain, require_logprobs=True)
    assert masked.rows[0].loss_mask.tolist() == [False, False, False]
    assert masked.reasons[NO_LOGPROBS] == 1
