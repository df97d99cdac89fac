"""Finds the algorithm that `MODULE_OR_FILE:NAME` names."""

from headrace.streams.errors import SettingsError
from headrace.streams.runner.loading import load_object
from headrace.trainers.custom.decorator import CustomAlgorithm


def load_algorithm(spec: str) -> CustomAlgorithm:
    """The `@algorithm` of a spec, found as a runner finds its agent.

    Raises:
        AgentLoadError: says what is not there; of an error in the user's own code, its traceback.
        SettingsError: it is no `@algorithm`.
    """
    found = load_object(spec, "best_prompt.py:find_best_prompt")
    if not isinstance(found, CustomAlgorithm):
        raise SettingsError(f"{spec} is a plain {type(found).__name__}: decorate it with @headrace.algorithm")
    return found
