"""Which prompts a feeder asks for: deterministic, the same after a restart, none forgotten."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.schemas.records import Trajectory
from headrace.streams.errors import SettingsError
from headrace.streams.producing import TaskSpec
from headrace.streams.producing.choosing import (
    ByWeight,
    Choice,
    Chooser,
    CurriculumError,
    Epochs,
    EveryPrompt,
    SkipRule,
    SkipSolved,
)
from headrace.streams.producing.prompts import GroupResult, PromptBook, PromptStatistics


def specs(count: int) -> list[TaskSpec]:
    return [TaskSpec(input=str(n)) for n in range(count)]


def ended(book: PromptBook, prompt: int, place: int, *rewards: float) -> None:
    """The group of a place has ended with these rewards."""
    for index, reward in enumerate(rewards):
        book.take(
            Trajectory(
                rollout_id=f"{place}-{index}",
                group_id=f"g{place}",
                group_size=len(rewards),
                sample_index=index,
                run_id="run",
                input=str(prompt),
                status="succeeded",
                final_reward=reward,
                assembled_at=place,
            )
        )


def ask(chooser: Chooser, book: PromptBook, count: int) -> list[Choice]:
    chosen = chooser(book.next_place, count, book)
    for choice in chosen:
        book.ask(choice.place, book.key(choice.prompt))
    return chosen


def test_every_epoch_has_every_prompt_once_in_an_order_of_its_own() -> None:
    epochs = Epochs(50, seed=3)
    first, second = ([epochs[e * 50 + n] for n in range(50)] for e in (0, 1))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != list(range(50))
    again = Epochs(50, seed=3)
    assert [again[50 + n] for n in range(50)] == second  # a second start finds its place
    plain = Epochs(50, seed=None)
    assert [plain[n] for n in range(100)] == list(range(50)) * 2


def test_without_results_nothing_is_skipped() -> None:
    book = PromptBook("run", specs(7))
    assert SkipSolved(7, 1, SkipRule())(0, 20, book) == EveryPrompt(7, 1)(0, 20, book)


@pytest.mark.parametrize(
    ("rule", "results", "solved"),
    [
        (SkipRule(groups=2), [(1.0, 1.0), (1.0, 1.0)], True),
        (SkipRule(groups=2), [(1.0, 1.0)], False),
        (SkipRule(groups=2), [(1.0, 1.0), (1.0, 0.0)], False),
        (SkipRule(groups=1, reward=0.5), [(0.0, 0.0), (1.0, 0.0)], True),
        (SkipRule(groups=1), [()], False),
        (SkipRule(rule="zero_variance", groups=2), [(0.0, 0.0), (1.0, 1.0)], True),
        (SkipRule(rule="zero_variance", groups=1), [(0.0, 0.1)], False),
        (SkipRule(rule="zero_variance", groups=1), [(0.0,)], False),  # one reward compares with nothing
    ],
)
def test_rules(rule: SkipRule, results: list[tuple[float, ...]], solved: bool) -> None:
    assert rule.solved([GroupResult(rewards, None) for rewards in results]) == solved


@pytest.mark.parametrize(
    "values", [{"rule": "nope"}, {"groups": 0}, {"revisit": 0}, {"reward": math.nan}, {"reward": math.inf}]
)
def test_a_rule_that_makes_no_sense(values: dict) -> None:
    with pytest.raises(SettingsError):
        SkipRule(**values)


def test_a_solved_prompt_comes_again_after_some_epochs_and_stays_when_it_is_not_solved_any_more() -> None:
    book, chooser = PromptBook("run", specs(3)), SkipSolved(3, None, SkipRule(groups=1, revisit=3))
    for choice in ask(chooser, book, 3):
        ended(book, choice.prompt, choice.place, 1.0 if choice.prompt == 1 else 0.0)
    assert [c.prompt for c in ask(chooser, book, 4)] == [0, 2, 0, 2]
    assert chooser.solved(book) == 1
    last = ask(chooser, book, 3)
    assert [(c.place, c.prompt) for c in last] == [(9, 0), (10, 1), (11, 2)]  # the third epoch after its last
    ended(book, 1, 10, 0.0)
    assert [c.prompt for c in ask(chooser, book, 6)] == [0, 1, 2, 0, 1, 2]


def test_where_all_are_solved_each_still_has_its_turn() -> None:
    book, chooser = PromptBook("run", specs(4)), SkipSolved(4, 0, SkipRule(groups=1, revisit=5))
    for choice in ask(chooser, book, 4):
        ended(book, choice.prompt, choice.place, 1.0)
    assert sorted(c.prompt for c in ask(chooser, book, 8)) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert book.next_place > 4 * 10


rewards = st.sampled_from([0.0, 1.0])


@given(
    st.integers(1, 6),
    st.sampled_from([None, 0, 7]),
    st.integers(1, 4),
    st.integers(1, 2),
    st.lists(st.tuples(st.integers(1, 5), st.lists(rewards, min_size=5, max_size=5)), max_size=15),
)
def test_a_second_start_goes_on_alike_and_no_unsolved_prompt_is_left_out(
    size: int, seed: int | None, revisit: int, last: int, rounds: list[tuple[int, list[float]]]
) -> None:
    rule = SkipRule(groups=last, revisit=revisit)
    book, log, results = PromptBook("run", specs(size)), [], []
    for count, outcomes in rounds:
        before = {n: rule.solved(book[n].recent) for n in range(size)}
        again = PromptBook("run", specs(size))
        for choice in log:
            again.ask(choice.place, again.key(choice.prompt))
        for result in sorted(results, key=lambda r: (r[0] % 3, r[1])):  # partitions are read one after the other
            ended(again, *result)
        chosen = ask(SkipSolved(size, seed, rule), book, count)
        assert SkipSolved(size, seed, rule)(again.next_place, count, again) == chosen
        assert len(chosen) == count
        first = log[-1].place + 1 if log else 0
        asked = {choice.place for choice in chosen}
        passed = [
            EveryPrompt(size, seed)(n, 1, book)[0].prompt for n in range(first, chosen[-1].place) if n not in asked
        ]
        assert all(before[prompt] for prompt in passed)
        log += chosen
        for choice, reward in zip(chosen, outcomes, strict=False):
            results.append((choice.prompt, choice.place, reward))
            ended(book, *results[-1])


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=8).filter(any), st.integers(0, 100), st.integers(1, 20))
def test_weights_draw_each_prompt_once_before_one_again(weights: list[float], place: int, count: int) -> None:
    book = PromptBook("run", specs(len(weights)))
    chooser = ByWeight(lambda statistics: weights, 5)
    chosen = chooser(place, count, book)
    assert chosen == ByWeight(lambda statistics: weights, 5)(place, count, book)
    assert [c.place for c in chosen] == list(range(place, place + count))
    positive = [n for n, weight in enumerate(weights) if weight > 0]
    prompts = [c.prompt for c in chosen]
    assert set(prompts[: len(positive)]) <= set(positive)
    assert len(set(prompts[: len(positive)])) == min(count, len(positive))
    assert chooser.solved(book) == len(weights) - len(positive)


def test_weights_are_chances() -> None:
    book = PromptBook("run", specs(3))
    chooser = ByWeight(lambda statistics: [3.0, 1.0, 0.0], 0)
    first = [chooser(place, 1, book)[0].prompt for place in range(2000)]
    assert 0.71 < first.count(0) / 2000 < 0.79  # three standard deviations
    assert first.count(2) == 0


def test_a_curriculum_sees_how_prompts_stand() -> None:
    book, seen = PromptBook("run", specs(2)), []

    def hardest(statistics: Sequence[PromptStatistics]) -> list[float]:
        seen.append([(s.input, s.asked, s.groups, s.mean) for s in statistics])
        return [1.0 - (s.mean or 0.0) for s in statistics]

    chooser = ByWeight(hardest, 0)
    ask(chooser, book, 2)
    ended(book, 1, 0, 1.0)
    assert {c.prompt for c in ask(chooser, book, 5)} == {0}
    assert seen == [[(0, 0, 0, None), (1, 0, 0, None)], [(0, 1, 0, None), (1, 1, 1, 1.0)]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1.0], "returned 1 weights; return one for each prompt"),
        ([1.0, -1.0], "prompt 1 the weight -1.0: return 0 or more"),
        ([math.nan, 1.0], "prompt 0 the weight nan"),
        ([0.0, 0.0], "there is nothing to ask for"),
        (None, "return a list of numbers"),
        (["x", 1], "return a list of numbers"),
    ],
)
def test_weights_that_choose_nothing_are_refused(given: object, said: str) -> None:
    with pytest.raises(CurriculumError, match=said):
        ByWeight(lambda statistics: given, 0)(0, 1, PromptBook("run", specs(2)))  # type: ignore[arg-type]
