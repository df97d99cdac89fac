"""From the rewards of a window's groups to the advantages of its rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from headrace.trainers.advantages.credit import scores
from headrace.trainers.advantages.estimators import GAE, Values, whiten
from headrace.trainers.advantages.gae import gae
from headrace.trainers.advantages.window import Scored, estimate
from headrace.trainers.batch import TokenRow
from headrace.trainers.groups import Group, Member
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.layout import Ints


class Estimator(Protocol):
    """See `advantages.window.estimate`."""

    def __call__(self, groups: Sequence[Sequence[Scored]], name: str, *, epsilon: float) -> list[list[Values]]: ...


@dataclass(frozen=True, slots=True)
class Sample:
    """A member that counts in its group's baseline.

    Attributes:
        scores: see `advantages.credit.scores`; for a value head and credit `return`, the rewards of its calls.
        rollout: index among the trained rollouts; None of a member that is not trained.
    """

    scores: Values
    rollout: int | None


def score(member: Member, settings: GrpoSettings) -> Values:
    """What a member is compared by."""
    trajectory = member.trajectory
    calls = [triplet.reward for triplet in trajectory.triplets]
    # The value head's advantages hand rewards back themselves.
    credit = "own" if settings.advantage == GAE and settings.credit == "return" else settings.credit
    return scores(credit, trajectory.final_reward, calls, gamma=settings.gamma)


def unscored(values: Values, settings: GrpoSettings) -> frozenset[int]:
    """Indices of the calls that have no reward to answer for."""
    if settings.credit == "final" or settings.advantage == GAE:
        return frozenset()
    return frozenset(np.flatnonzero(np.isnan(values)).tolist())


class Assigner:
    """Gives the rows of one window their advantages.

    Args:
        groups: members that are compared with each other, those of one group in one list.
        centred: samples that are compared with `baseline` instead of with each other.
        baseline: of those.
        estimator: from scores to advantages; see `advantages.window.estimate`.
    """

    def __init__(
        self,
        settings: GrpoSettings,
        groups: Sequence[Sequence[Sample]],
        centred: Sequence[Sample] = (),
        baseline: float = 0.0,
        estimator: Estimator = estimate,
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._centred = centred
        self._baseline = baseline
        self._estimator = estimator

    def __call__(self, rows: list[TokenRow]) -> list[TokenRow]:
        """The rows with their advantages, and for a value head with their returns."""
        by_rollout: dict[int, list[int]] = {}
        for index, row in enumerate(rows):
            by_rollout.setdefault(row.rollout, []).append(index)
        if self._settings.advantage == GAE:
            return self._by_token(rows, by_rollout)
        return self._by_score(rows, by_rollout)

    def _by_score(self, rows: list[TokenRow], by_rollout: dict[int, list[int]]) -> list[TokenRow]:
        s = self._settings
        groups = [[self._scored(sample, rows, by_rollout) for sample in group] for group in self._groups]
        found = self._estimator(groups, s.advantage, epsilon=s.advantage_epsilon)
        advantages: dict[int, Values] = {}
        for group, values in zip(self._groups, found, strict=True):
            advantages |= {m.rollout: v for m, v in zip(group, values, strict=True) if m.rollout is not None}
        for sample in self._centred:
            if sample.rollout is not None:
                advantages[sample.rollout] = self._scored(sample, rows, by_rollout).scores - self._baseline
        return [_with_advantage(row, advantages[row.rollout], s.credit) for row in rows]

    def _scored(self, sample: Sample, rows: list[TokenRow], by_rollout: dict[int, list[int]]) -> Scored:
        """Counts the tokens that answer for each score, and takes the divergence off it where it is in the reward."""
        values, tokens = sample.scores, np.zeros(sample.scores.size, dtype=np.int64)
        if sample.rollout is None:
            return Scored(values, tokens)
        penalties = np.zeros(sample.scores.size)
        for index in by_rollout.get(sample.rollout, []):
            row, divergence = rows[index], self._divergence(rows[index])
            start = 0
            for call, size in row.calls:
                place = 0 if self._settings.credit == "final" else call
                tokens[place] += size
                if divergence is not None:
                    penalties[place] += float(divergence[start : start + size].sum())
                start += size
        if self._settings.credit == "return":
            for call in range(penalties.size - 2, -1, -1):
                penalties[call] += self._settings.gamma * penalties[call + 1]
        return Scored(values - self._settings.kl_beta * penalties, tokens)

    def _divergence(self, row: TokenRow) -> Values | None:
        s = self._settings
        if not s.needs_reference or s.kl_in != "reward":
            return None
        assert row.scored is not None
        assert row.scored.reference is not None
        log_ratio = row.logprobs[row.loss_mask].astype(np.float64) - row.scored.reference
        return log_ratio if s.kl == "k1" else np.expm1(-log_ratio) + log_ratio

    def _by_token(self, rows: list[TokenRow], by_rollout: dict[int, list[int]]) -> list[TokenRow]:
        s = self._settings
        members = {m.rollout: m for group in (*self._groups, self._centred) for m in group if m.rollout is not None}
        advantages: dict[tuple[int, int], Values] = {}
        returns: dict[tuple[int, int], Values] = {}
        for rollout, indices in by_rollout.items():
            places = sorted(
                (call, index, start, start + size) for index in indices for call, start, size in _calls(rows[index])
            )
            rewards, values = self._token_rewards(members[rollout], rows, places)
            found = gae(rewards, values, gamma=s.gamma, lam=s.gae_lambda)
            bounds = np.cumsum([end - start for _, _, start, end in places])[:-1]
            for (_, index, start, _), a, r in zip(places, *(np.split(x, bounds) for x in found), strict=True):
                advantages[index, start], returns[index, start] = a, r
        order = sorted(advantages)
        white = whiten(np.concatenate([advantages[key] for key in order]), _ones(advantages))
        parts = np.split(white, np.cumsum([advantages[key].size for key in order])[:-1])
        pieces: dict[int, list[tuple[Values, Values]]] = {}
        for key, part in zip(order, parts, strict=True):
            pieces.setdefault(key[0], []).append((part, returns[key]))
        return [
            replace(
                row,
                advantage=np.concatenate([a for a, _ in pieces[index]]).astype(np.float32),
                returns=np.concatenate([r for _, r in pieces[index]]).astype(np.float32),
            )
            for index, row in enumerate(rows)
        ]

    def _token_rewards(
        self, sample: Sample, rows: list[TokenRow], places: list[tuple[int, int, int, int]]
    ) -> tuple[Values, Values]:
        """Reward and value at each of a rollout's trained tokens, in the order of its calls."""
        s = self._settings
        rewards: list[Values] = []
        values: list[Values] = []
        for n, (call, index, start, end) in enumerate(places):
            row = rows[index]
            assert row.scored is not None
            assert row.scored.values is not None
            divergence = self._divergence(row)
            given = np.zeros(end - start) if divergence is None else -s.kl_beta * divergence[start:end]
            own = sample.scores[0] if s.credit == "final" and n == len(places) - 1 else 0.0
            if s.credit == "return":
                own = sample.scores[call]
            given[-1] += 0.0 if np.isnan(own) else own
            rewards.append(given)
            values.append(row.scored.values[start:end].astype(np.float64))
        return np.concatenate(rewards), np.concatenate(values)


def _with_advantage(row: TokenRow, values: Values, credit: str) -> TokenRow:
    if credit == "final":
        return replace(row, advantage=float(values[0]))
    each = np.repeat(values[[call for call, _ in row.calls]], [size for _, size in row.calls])
    return replace(row, advantage=each.astype(np.float32))


def _calls(row: TokenRow) -> list[tuple[int, int, int]]:
    """Call, first trained token and number of trained tokens of each response in a row."""
    found: list[tuple[int, int, int]] = []
    start = 0
    for call, size in row.calls:
        found.append((call, start, size))
        start += size
    return found


def _ones(advantages: dict[tuple[int, int], Values]) -> Ints:
    return np.ones(sum(values.size for values in advantages.values()), dtype=np.int64)


def of_group(group: Group, samples: dict[tuple[int, int], Sample]) -> list[Sample]:
    """The members of a group that have a score, by sample_index."""
    return [samples[member.at] for member in group.in_order() if member.at in samples]
