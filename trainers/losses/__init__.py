"""Per-token losses and how they add up. Torch; every tensor is flat over the trained tokens, shape [tokens]."""

from headrace.trainers.losses.aggregation import AGGREGATIONS, token_weights
from headrace.trainers.losses.policy import clipped, clipped_loss
from headrace.trainers.losses.scores import k3, logprobs_and_entropy

__all__ = ["AGGREGATIONS", "clipped", "clipped_loss", "k3", "logprobs_and_entropy", "token_weights"]
