"""Generalised advantage estimation over the tokens of a rollout. arXiv:1506.02438."""

import numpy as np

from headrace.trainers.advantages.estimators import Values


def gae(rewards: Values, values: Values, *, gamma: float, lam: float) -> tuple[Values, Values]:
    """Advantages and returns of a rollout's trained tokens, both [tokens], in the order in which they were sampled.

    What the environment added between two of them is passed over, as in verl: a token's successor is the next sampled
    one, so that cutting a row in two changes nothing. After the last token nothing is expected.

    Args:
        rewards: given at each token, [tokens].
        values: expected before each token, [tokens].
        gamma: discount from token to token.
        lam: 1 is the return less the value, 0 one step's surprise.
    """
    advantages = np.empty_like(rewards)
    running = following = 0.0
    for t in range(rewards.size - 1, -1, -1):
        surprise = rewards[t] + gamma * following - values[t]
        running = surprise + gamma * lam * running
        advantages[t] = running
        following = values[t]
    return advantages, advantages + values
