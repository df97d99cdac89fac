"""The demo's tasks: what is asked, what is right, and what learning them takes. Imports nothing heavy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypedDict


class Sample(TypedDict):
    """The input of one task."""

    prompt: str
    answer: str


@dataclass(frozen=True, slots=True)
class DemoTask:
    """A task that a model of 0.2 M parameters learns on a CPU.

    Attributes:
        problems: all problems; few enough that each comes again within a few windows.
        answers: what a warm start may answer, at random: the format, never the solution.
        goal: the mean reward of the last 200 samples that the demo must reach.
        training: settings of the trainer that differ from its defaults.
        budget: seconds of learning after which the demo gives up.
    """

    name: str
    problems: tuple[Sample, ...]
    answers: tuple[str, ...]
    goal: float
    training: dict[str, float] = field(default_factory=dict[str, float])
    budget: float = 300.0

    @property
    def chance(self) -> float:
        """The mean reward of answers drawn uniformly."""
        return 1 / len(self.answers)

    def samples(self, seed: int) -> Iterator[Sample]:
        """Task inputs without end: all problems in a random order, then again in another one."""
        rng = random.Random(f"{self.name} samples {seed}")
        while True:
            yield from rng.sample(self.problems, len(self.problems))

    @property
    def texts(self) -> list[str]:
        """What the tokenizer of its model is made for."""
        return [problem["prompt"] for problem in self.problems]

    def warm_start(self, seed: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """Conversations that await an answer, and the answer, without end; it is drawn with no regard to them."""
        rng = random.Random(f"{self.name} warm start {seed}")
        while True:
            yield (rng.choice(self.problems)["prompt"],), rng.choice(self.answers)

    def reward(self, sample: Sample, text: str) -> float:
        """1.0 for exactly the right answer (spaces around it aside), else 0.0."""
        return float(text.strip() == sample["answer"])


@dataclass(frozen=True, slots=True)
class Guess(DemoTask):
    """Finding a number: what is told after each wrong guess leads to the next one.

    Attributes:
        guesses: calls of the model that a rollout has.
    """

    guesses: int = 3

    @property
    def chance(self) -> float:
        """The share of numbers that guesses drawn uniformly find."""
        return 1 - (1 - 1 / len(self.answers)) ** self.guesses

    @property
    def texts(self) -> list[str]:
        """The prompt, and what may be told."""
        return [problem["prompt"] for problem in self.problems] + [HIGHER, LOWER] * len(self.problems)

    def warm_start(self, seed: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """Conversations of any length, with guesses and replies that are drawn too and know of no number."""
        rng = random.Random(f"{self.name} warm start {seed}")
        while True:
            texts = [rng.choice(self.problems)["prompt"]]
            for _ in range(rng.randrange(self.guesses)):
                texts += [rng.choice(self.answers), rng.choice((HIGHER, LOWER))]
            yield tuple(texts), rng.choice(self.answers)


HIGHER, LOWER, RIGHT = "higher", "lower", "right"
"""What is told of a guess: where the number is."""


def reply(number: str, guess: str) -> str | None:
    """What is told of a guess; None of one that is no number."""
    text = guess.strip()
    if not text.isascii() or not text.isdigit():
        return None
    if text == number:
        return RIGHT
    return HIGHER if int(text) < int(number) else LOWER


def _pick(digit: int) -> Sample:
    return {"prompt": f"Please pick the digit {digit}.", "answer": str(digit)}


def _add(a: int, b: int) -> Sample:
    return {"prompt": f"What is {a} plus {b}?", "answer": str(a + b)}


PICK_DIGIT = DemoTask(
    name="pick-digit",
    problems=tuple(_pick(digit) for digit in range(10)),
    answers=tuple(str(digit) for digit in range(10)),
    goal=0.9,
    # Short gradients at a higher rate: over twelve seeds the slowest needed 12,000 samples instead of 21,000.
    training={
        "group_size": 16,
        "window_groups": 10,
        "learning_rate": 1.5e-3,
        "max_grad_norm": 0.3,
        "entropy": 0.02,
    },
)

ADDITION = DemoTask(
    name="addition",
    problems=tuple(_add(a, b) for a in range(5) for b in range(5)),
    answers=tuple(str(total) for total in range(9)),
    goal=0.8,
    # Small windows: two thirds of the samples that windows of all problems need.
    training={
        "group_size": 16,
        "window_groups": 10,
        "learning_rate": 1e-3,
        "max_grad_norm": 1.0,
        "entropy": 0.02,
    },
)

GUESS = Guess(
    name="guess",
    # Three guesses find each of seven numbers, if each halves what is left.
    problems=tuple({"prompt": "Guess my number from 1 to 7.", "answer": str(number)} for number in range(1, 8)),
    answers=tuple(str(number) for number in range(1, 8)),
    goal=0.7,
    budget=600.0,
    training={
        "group_size": 16,
        "window_groups": 7,
        "learning_rate": 1.5e-3,
        "max_grad_norm": 0.3,
        "entropy": 0.02,
    },
)

TASKS = {task.name: task for task in (PICK_DIGIT, ADDITION, GUESS)}
