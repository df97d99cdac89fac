"""How many on-policy samples a window's off-policy ones are worth: Kish's effective sample size.

(sum w)^2 / sum w^2 over importance weights w, current over behaviour probability, as the window begins: before its
optimizer steps. L. Kish, Survey Sampling, 1965; for importance sampling A. Kong, 1992. All in logarithms: the weight of
a rollout is a product over all its tokens.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from headrace.trainers.layout import Ints
from headrace.trainers.ranks import Ranks

Doubles = npt.NDArray[np.float64]
SAMPLES, SHARE, TOKENS, LOG_WEIGHT = "ess/samples", "ess/share", "ess/tokens", "ess/log_weight"


def log_sum_exp(values: Doubles) -> float:
    """log(sum(exp(values))); -inf of none."""
    most = float(values.max(initial=-np.inf))
    return most if not np.isfinite(most) else most + float(np.log(np.exp(values - most).sum()))


def effective_size(log_weights: Doubles) -> float:
    """Of weights given by their logarithms; between 1 and their number, 0 of none."""
    return 0.0 if not log_weights.size else float(np.exp(2 * log_sum_exp(log_weights) - log_sum_exp(2 * log_weights)))


class ImportanceWeights:
    """Of the tokens and rollouts of one window, added up over micro-batches and ranks."""

    def __init__(self) -> None:
        self._rollouts: dict[int, float] = {}
        self._tokens: list[Doubles] = []

    def add(self, rollouts: Sequence[int], counts: Ints, log_weights: Doubles) -> None:
        """Takes a micro-batch: the rollout and the number of tokens of each row, the log-weights of all, [tokens]."""
        self._tokens.append(log_weights)
        sums = np.add.reduceat(log_weights, np.cumsum(counts) - counts)  # each row has a trained token
        for rollout, more in zip(rollouts, sums.tolist(), strict=True):
            self._rollouts[rollout] = self._rollouts.get(rollout, 0.0) + more

    def metrics(self, ranks: Ranks) -> dict[str, float]:
        """By metric name; `LOG_WEIGHT` is the logarithm of the mean weight of a rollout."""
        whole: dict[int, float] = {}
        tokens: list[Doubles] = []
        gathered: list[tuple[dict[int, float], list[Doubles]]] = ranks.gather((self._rollouts, self._tokens))
        for rollouts, more in gathered:
            tokens += more
            for rollout, log_weight in rollouts.items():
                whole[rollout] = whole.get(rollout, 0.0) + log_weight
        each = np.fromiter(whole.values(), dtype=np.float64, count=len(whole))
        size = effective_size(each)
        return {
            SAMPLES: size,
            SHARE: size / max(1, each.size),
            TOKENS: effective_size(np.concatenate(tokens)) if tokens else 0.0,
            LOG_WEIGHT: log_sum_exp(each) - float(np.log(max(1, each.size))),
        }


def total_size(windows: Iterable[tuple[int, Mapping[str, float]]]) -> float:
    """The effective number of samples of several windows together.

    Args:
        windows: the number of trained samples of each, and its metrics.
    """
    sums: list[float] = []
    squares: list[float] = []
    for count, metrics in windows:
        if count and metrics.get(SAMPLES, 0.0) > 0:
            sums.append(float(np.log(count)) + metrics[LOG_WEIGHT])
            squares.append(2 * sums[-1] - float(np.log(metrics[SAMPLES])))
    return float(np.exp(2 * log_sum_exp(np.array(sums)) - log_sum_exp(np.array(squares)))) if sums else 0.0
