"""Which prompts a feeder asks for next: each in turn, those that are not solved, or by weights of the user's. Pure."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, Protocol

from headrace.streams.errors import HeadraceError, InvalidValueError, SettingsError
from headrace.streams.producing.prompts import GroupResult, PromptBook, PromptStatistics

SKIP_RULES = ("reward", "zero_variance")


class CurriculumError(HeadraceError):
    """A user's curriculum gave weights that choose nothing."""


class Choice(NamedTuple):
    """A group to ask for.

    Attributes:
        place: in all that the run is asked for, from 0.
        prompt: index of the line.
    """

    place: int
    prompt: int


class Chooser(Protocol):
    """Chooses by the seed, the place and what the book says, and by nothing else: a second start chooses alike."""

    def __call__(self, place: int, count: int, book: PromptBook) -> list[Choice]:
        """The next `count` groups, `place` being the first that is free."""
        ...

    def solved(self, book: PromptBook) -> int:
        """Prompts that are passed over for now."""
        ...


class Epochs:
    """An endless order over prompts: every epoch each of them once, shuffled by (seed, epoch) or as they stand."""

    def __init__(self, size: int, seed: int | None) -> None:
        self.size = size
        self._seed = seed
        self._epoch = -1
        self._order: list[int] = []

    def __getitem__(self, place: int) -> int:
        """The prompt at a place of the order, from 0; cheap within an epoch."""
        epoch, at = divmod(place, self.size)
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = list(range(self.size))
            if self._seed is not None:
                random.Random(f"{self._seed}/{epoch}").shuffle(self._order)
        return self._order[at]


class EveryPrompt:
    """Each prompt once an epoch. See `Chooser`."""

    def __init__(self, size: int, seed: int | None) -> None:
        self._epochs = Epochs(size, seed)

    def __call__(self, place: int, count: int, book: PromptBook) -> list[Choice]:
        """See `Chooser`."""
        return [Choice(n, self._epochs[n]) for n in range(place, place + count)]

    def solved(self, book: PromptBook) -> int:
        """None is passed over."""
        return 0


@dataclass(frozen=True, kw_only=True)
class SkipRule:
    """When a prompt has nothing left to teach, for now.

    Attributes:
        rule: each of its last groups has a mean reward of at least `reward`, or in each of them all rewards are equal
            (`zero_variance`): solved or hopeless, group-relative advantages are zero.
        reward: of the rule of that name.
        groups: so many last groups, all of them ended.
        revisit: a prompt that is passed over is asked for again so many epochs after it was asked for last.
    """

    rule: str = "reward"
    reward: float = 1.0
    groups: int = 2
    revisit: int = 5

    def __post_init__(self) -> None:
        if self.rule not in SKIP_RULES:
            raise InvalidValueError(f"skip-solved {self.rule!r}: choose one of {', '.join(SKIP_RULES)}")
        if self.groups < 1 or self.revisit < 1 or not math.isfinite(self.reward):
            raise SettingsError("solved-groups and revisit must be at least 1, solved-reward a finite number")

    def solved(self, recent: Sequence[GroupResult]) -> bool:
        """Whether the rule holds for groups that have ended, oldest first."""
        last = recent[-self.groups :]
        return len(last) == self.groups and all(self._idle(result) for result in last)

    def _idle(self, result: GroupResult) -> bool:
        if self.rule == "zero_variance":
            return len(result.rewards) > 1 and not result.varies
        return result.mean is not None and result.mean >= self.reward


class SkipSolved:
    """As `EveryPrompt`, without those that are solved and not due again. See `Chooser`."""

    def __init__(self, size: int, seed: int | None, rule: SkipRule) -> None:
        self._epochs = Epochs(size, seed)
        self._rule = rule

    def __call__(self, place: int, count: int, book: PromptBook) -> list[Choice]:
        """See `Chooser`."""
        chosen: list[Choice] = []
        asked: dict[str, int] = {}
        while len(chosen) < count:  # after `revisit` epochs at most, everything is due
            prompt = self._epochs[place]
            last = max(book[prompt].last_place, asked.get(book.key(prompt), -1))
            due = place // self._epochs.size - last // self._epochs.size >= self._rule.revisit
            if due or last < 0 or not self._rule.solved(book[prompt].recent):
                chosen.append(Choice(place, prompt))
                asked[book.key(prompt)] = place
            place += 1
        return chosen

    def solved(self, book: PromptBook) -> int:
        """See `Chooser`."""
        return sum(self._rule.solved(book[prompt].recent) for prompt in range(self._epochs.size))


Curriculum = Callable[[Sequence[PromptStatistics]], Sequence[float]]
"""Gets the statistics of all prompts, in the order of their lines; a weight for each of them, 0: not now."""


class ByWeight:
    """Draws prompts by weights that the user's function gives. See `Chooser`.

    The function is asked once for all groups that are asked for together; each prompt is drawn once before one of them
    is drawn again.
    """

    def __init__(self, curriculum: Curriculum, seed: int | None) -> None:
        self._curriculum = curriculum
        self._seed = seed
        self._passed_over = 0

    def __call__(self, place: int, count: int, book: PromptBook) -> list[Choice]:
        """See `Chooser`.

        Raises:
            CurriculumError: there is not one finite weight for each prompt, or none is above zero.
        """
        weights = self._weights(book)
        positive = {prompt: weight for prompt, weight in enumerate(weights) if weight > 0}
        left: dict[int, float] = {}
        chosen: list[Choice] = []
        for n in range(place, place + count):
            left = left or dict(positive)
            prompt = _draw(left, random.Random(f"{self._seed}/{n}").random())
            del left[prompt]
            chosen.append(Choice(n, prompt))
        return chosen

    def solved(self, book: PromptBook) -> int:
        """Those that had the weight 0 the last time."""
        return self._passed_over

    def _weights(self, book: PromptBook) -> list[float]:
        given = self._curriculum([book[prompt] for prompt in range(len(book))])
        try:
            weights = [float(weight) for weight in given]
        except (TypeError, ValueError, OverflowError) as error:
            raise CurriculumError(f"the curriculum returned {given!r:.80}: return a list of numbers") from error
        if len(weights) != len(book):
            raise CurriculumError(f"the curriculum returned {len(weights)} weights; return one for each prompt")
        for prompt, weight in enumerate(weights):
            if not math.isfinite(weight) or weight < 0:
                raise CurriculumError(f"the curriculum gave prompt {prompt} the weight {weight}: return 0 or more")
        if not any(weights):
            raise CurriculumError("the curriculum gave every prompt the weight 0: there is nothing to ask for")
        self._passed_over = weights.count(0.0)
        return weights


def _draw(weights: dict[int, float], uniform: float) -> int:
    """A key with a probability that is proportional to its weight; `uniform` is from [0, 1)."""
    # The largest is 1: sums of finite numbers stay finite.
    largest = max(weights.values())
    sums = list(accumulate(weight / largest for weight in weights.values()))
    return next(
        (key for key, below in zip(weights, sums, strict=True) if uniform * sums[-1] < below), list(weights)[-1]
    )
