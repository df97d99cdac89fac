"""The names that users import. Each is loaded when it is first used, so that `import headrace` is cheap."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.local.pipeline import Pipeline, up
    from headrace.streams.agent.base import Agent, rollout
    from headrace.streams.agent.emit import (
        emit_annotation,
        emit_exception,
        emit_message,
        emit_object,
        emit_reward,
    )
    from headrace.streams.agent.hooks import Hook
    from headrace.streams.agent.operations import operation, reward
    from headrace.streams.agent.resources import LLM, PromptTemplate, Resources
    from headrace.streams.agent.rollout_facts import Rollout
    from headrace.streams.producing import TaskProducer
    from headrace.trainers.custom import algorithm

__all__ = [
    "LLM",
    "Agent",
    "Hook",
    "Pipeline",
    "PromptTemplate",
    "Resources",
    "Rollout",
    "TaskProducer",
    "algorithm",
    "emit_annotation",
    "emit_exception",
    "emit_message",
    "emit_object",
    "emit_reward",
    "operation",
    "reward",
    "rollout",
    "up",
]

_HOMES = {
    "LLM": "streams.agent.resources",
    "PromptTemplate": "streams.agent.resources",
    "Resources": "streams.agent.resources",
    "Rollout": "streams.agent.rollout_facts",
    "Agent": "streams.agent.base",
    "Hook": "streams.agent.hooks",
    "rollout": "streams.agent.base",
    "emit_annotation": "streams.agent.emit",
    "emit_exception": "streams.agent.emit",
    "emit_message": "streams.agent.emit",
    "emit_object": "streams.agent.emit",
    "emit_reward": "streams.agent.emit",
    "operation": "streams.agent.operations",
    "reward": "streams.agent.operations",
    "TaskProducer": "streams.producing",
    "algorithm": "trainers.custom",
    "Pipeline": "local.pipeline",
    "up": "local.pipeline",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"headrace.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
