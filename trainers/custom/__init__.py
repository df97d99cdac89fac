"""Custom algorithms: coroutines that ask for rollouts, await their trajectories and publish resources, exactly once."""

from headrace.trainers.custom.context import Context, RolloutResult
from headrace.trainers.custom.decorator import CustomAlgorithm, algorithm
from headrace.trainers.custom.journal import NondeterminismError

__all__ = ["Context", "CustomAlgorithm", "NondeterminismError", "RolloutResult", "algorithm"]
