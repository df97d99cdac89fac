"""The demo's tasks: what a warm start may know, and what a perfect player of `guess` reaches."""

from collections import Counter
from itertools import islice

import pytest

from headrace.demo.tasks import GUESS, HIGHER, LOWER, RIGHT, TASKS, DemoTask, reply


def test_a_guess_is_told_where_the_number_is() -> None:
    assert reply("4", " 4 ") == RIGHT
    assert reply("4", "2") == HIGHER
    assert reply("4", "7") == LOWER
    assert reply("4", "four") is None
    assert reply("4", "") is None


def test_halving_what_is_left_finds_every_number() -> None:
    for problem in GUESS.problems:
        low, high, told = 1, len(GUESS.problems), None
        for _ in range(GUESS.guesses):
            middle = (low + high) // 2
            told = reply(problem["answer"], str(middle))
            if told == RIGHT:
                break
            low, high = (middle + 1, high) if told == HIGHER else (low, middle - 1)
        assert told == RIGHT


@pytest.mark.parametrize("task", TASKS.values(), ids=lambda task: task.name)
def test_a_warm_start_knows_no_answer_and_a_goal_is_above_chance(task: DemoTask) -> None:
    pairs = list(islice(task.warm_start(1), 6000))
    answers = {answer for _, answer in pairs}
    assert answers == set(task.answers)
    # After each conversation that is frequent enough to tell, every answer comes.
    for texts, count in Counter(texts for texts, _ in pairs).most_common(5):
        assert count > 100
        assert {answer for t, answer in pairs if t == texts} == answers
    assert task.goal >= task.chance + 0.2
    assert all(len(texts) % 2 == 1 for texts, _ in pairs)
