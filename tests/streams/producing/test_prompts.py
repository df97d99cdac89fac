"""What the log says of prompts, whatever the order in which partitions are read."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.records import Trajectory, VersionRange
from headrace.streams.producing import TaskSpec
from headrace.streams.producing.prompts import PLACE, PROMPT, RECENT, Places, PromptBook, prompt_key

SPECS = [TaskSpec(input=f'{{"q":{n}}}') for n in range(3)]


def trajectory(
    group: str, sample: int, reward: float | None, *, prompt: int = 0, at: int = 0, size: int = 2, **more: object
) -> Trajectory:
    return Trajectory(
        rollout_id=f"{group}-{sample}",
        group_id=group,
        group_size=size,
        sample_index=sample,
        run_id="run",
        input=SPECS[prompt].input,
        status="succeeded",
        final_reward=reward,
        assembled_at=at,
        **more,  # pyright: ignore[reportArgumentType]
    )


def test_statistics_of_groups_that_have_ended() -> None:
    book = PromptBook("run", SPECS)
    book.asked({PLACE: "0", PROMPT: prompt_key(SPECS[0].input)})
    book.asked({PLACE: "4", PROMPT: prompt_key(SPECS[0].input)})
    book.asked({PLACE: "4", PROMPT: prompt_key(SPECS[0].input)})  # another rollout of the group
    book.asked({PLACE: "5", PROMPT: "of a line that is not in the file any more"})
    book.asked({"mine": "1"})
    book.asked({PLACE: "9" * 5000, PROMPT: prompt_key(SPECS[0].input)})  # no feeder's
    book.take(trajectory("a", 0, 1.0, policy_version=VersionRange(min=1, max=3)))
    assert book[0].groups == 0
    book.take(trajectory("a", 1, None))
    book.take(trajectory("b", 0, 0.0, at=5))
    book.take(trajectory("b", 1, 0.5, at=5))
    first = book[0]
    assert (first.input, first.asked, first.last_place, first.groups) == ({"q": 0}, 2, 4, 2)
    assert [result.rewards for result in first.recent] == [(1.0,), (0.0, 0.5)]
    assert (first.mean, first.version) == (0.5, 3)
    assert first.variance == (0.25 + 0.25) / 3
    assert (book[1].asked, book[1].mean, book[1].last_place) == (0, None, -1)
    assert book.next_place == 6
    book.take(trajectory("a", 1, 0.0, revision=1, at=9))  # a late reward changes its group, not when it ended
    assert [result.rewards for result in book[0].recent] == [(1.0, 0.0), (0.0, 0.5)]
    assert book[0].groups == 2


def test_other_runs_and_unknown_prompts_do_not_count() -> None:
    book = PromptBook("run", SPECS)
    for n in range(2):
        found = trajectory("a", n, 1.0)
        found.run_id = "other"
        book.take(found)
        found = trajectory("b", n, 1.0)
        found.input = "17"
        book.take(found)
    assert [book[n].groups for n in range(3)] == [0, 0, 0]


def test_lines_with_equal_inputs_are_one_prompt() -> None:
    book = PromptBook("run", [SPECS[0], SPECS[1], SPECS[0]])
    book.take(trajectory("a", 0, 1.0, size=1))
    assert [(book[n].index, book[n].groups) for n in range(3)] == [(0, 1), (1, 0), (2, 1)]


groups = st.lists(
    st.tuples(
        st.integers(0, 2),  # prompt
        st.integers(0, 30),  # when it ended
        st.lists(st.tuples(st.sampled_from([None, 0.0, 0.3, 1.0]), st.booleans()), min_size=1, max_size=3),
    ),
    max_size=60,
)


@given(groups, st.randoms(use_true_random=False))
def test_the_order_of_partitions_does_not_matter(found: list, shuffled: random.Random) -> None:
    logs = [
        [trajectory(f"g{n}", i, r, prompt=prompt, at=at, size=len(members)) for i, (r, _) in enumerate(members)]
        + [
            trajectory(f"g{n}", i, 0.7, prompt=prompt, at=at + 50, size=len(members), revision=1)
            for i, (_, revised) in enumerate(members)
            if revised
        ]
        for n, (prompt, at, members) in enumerate(found)
    ]

    def book(partitions: list[list[Trajectory]]) -> PromptBook:
        made = PromptBook("run", SPECS)
        left = [list(log) for log in partitions if log]
        while left:
            log = shuffled.choice(left)
            made.take(log.pop(0))
            left = [log for log in left if log]
        return made

    one, other = book(logs), book([[record for log in logs for record in log]])
    assert [one[n] for n in range(3)] == [other[n] for n in range(3)]
    assert sum(one[n].groups for n in range(3)) == len(found)
    assert all(len(one[n].recent) <= RECENT for n in range(3))


def test_rewards_that_no_sum_holds() -> None:
    book = PromptBook("run", SPECS)
    for n, reward in enumerate((1.7e308, 1.7e308, -1.7e308, float("nan"))):
        book.take(trajectory("a", n, reward, size=4))
    first = book[0]
    assert first.recent[0].rewards == (1.7e308, 1.7e308, -1.7e308)
    assert first.mean == pytest.approx(1.7e308 / 3)
    assert first.variance == float("inf")


@given(st.lists(st.integers(0, 5000)))
def test_places_are_a_set(places: list[int]) -> None:
    there, found = set[int](), Places()
    for place in places:
        assert found.add(place) == (place not in there)
        there.add(place)
