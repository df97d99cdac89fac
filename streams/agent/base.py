"""`Agent`, the class form, and `rollout`, the decorator that makes an agent of a function."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, overload

from headrace.streams.agent.errors import AgentError
from headrace.streams.agent.resources import Resources
from headrace.streams.agent.rollout_facts import Rollout

PARAMETERS = ("task", "llm", "prompt_template", "resources", "rollout")
Result = Any


class Agent:
    """An agent as a class: override `rollout` (runs in a thread) or `rollout_async` (runs on the event loop).

    `training_rollout` and `validation_rollout` (and their `_async` forms) are called for tasks of mode `train` and for
    all others; they call `rollout` unless overridden. Each returns a number, the reward, or None when it has emitted
    its rewards.

    Attributes:
        uses_llm: whether a gateway is waited for before tasks are taken.
    """

    uses_llm: bool = True

    def rollout(self, task: Any, resources: Resources, rollout: Rollout) -> Result:
        """One rollout, in a thread."""
        raise NotImplementedError(f"{type(self).__name__} has neither rollout nor rollout_async")

    async def rollout_async(self, task: Any, resources: Resources, rollout: Rollout) -> Result:
        """One rollout, on the event loop."""
        raise NotImplementedError(f"{type(self).__name__} has neither rollout nor rollout_async")

    def training_rollout(self, task: Any, resources: Resources, rollout: Rollout) -> Result:
        """A rollout of mode train."""
        return self.rollout(task, resources, rollout)

    def validation_rollout(self, task: Any, resources: Resources, rollout: Rollout) -> Result:
        """A rollout of any other mode."""
        return self.rollout(task, resources, rollout)

    async def training_rollout_async(self, task: Any, resources: Resources, rollout: Rollout) -> Result:
        """A rollout of mode train."""
        return await self.rollout_async(task, resources, rollout)

    async def validation_rollout_async(self, task: Any, resources: Resources, rollout: Rollout) -> Result:
        """A rollout of any other mode."""
        return await self.rollout_async(task, resources, rollout)

    def is_async(self) -> bool:
        """Whether any of the `_async` forms is overridden."""
        names = ("rollout_async", "training_rollout_async", "validation_rollout_async")
        return any(getattr(type(self), name) is not getattr(Agent, name) for name in names)

    def call(self, task: Any, resources: Resources, rollout: Rollout) -> Result | Awaitable[Result]:
        """The rollout of the task's mode: an awaitable if `is_async()`, else the result, after it has run."""
        train = rollout.mode == "train"
        if self.is_async():
            method = self.training_rollout_async if train else self.validation_rollout_async
        else:
            method = self.training_rollout if train else self.validation_rollout
        return method(task, resources, rollout)


class FunctionAgent(Agent):
    """What `@rollout` makes. It stays callable as the function that it wraps."""

    def __init__(self, function: Callable[..., Any], uses_llm: bool | None = None) -> None:
        self.function = function
        self.wants = _wanted(function)
        self.uses_llm = bool({"llm", "resources"} & set(self.wants)) if uses_llm is None else uses_llm
        functools.update_wrapper(self, function)
        self._is_async = inspect.iscoroutinefunction(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself."""
        return self.function(*args, **kwargs)

    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return self._is_async

    def call(self, task: Any, resources: Resources, rollout: Rollout) -> Result | Awaitable[Result]:
        """Calls the function with what it asks for."""
        arguments: dict[str, Any] = {}
        for name in self.wants:
            if name == "task":
                arguments[name] = task
            elif name == "llm":
                arguments[name] = resources.llm
            elif name == "prompt_template":
                arguments[name] = resources.prompt_template
            elif name == "resources":
                arguments[name] = resources
            else:
                arguments[name] = rollout
        return self.function(**arguments)


def _wanted(function: Callable[..., Any]) -> tuple[str, ...]:
    wanted: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in PARAMETERS and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
            wanted.append(parameter.name)
        elif parameter.default is inspect.Parameter.empty and parameter.kind not in (
            inspect.Parameter.VAR_POSITIONAL,
            inspect.Parameter.VAR_KEYWORD,
        ):
            name = getattr(function, "__qualname__", repr(function))
            raise AgentError(
                f"@rollout {name}: parameter {parameter.name!r} is none of {', '.join(PARAMETERS)}; "
                "give it a default, or one of these names"
            )
    if "task" not in wanted:
        raise AgentError(f"@rollout {getattr(function, '__qualname__', function)}: it must ask for `task`")
    return tuple(wanted)


@overload
def rollout(function: Callable[..., Any], /) -> FunctionAgent: ...
@overload
def rollout(*, uses_llm: bool | None = None) -> Callable[[Callable[..., Any]], FunctionAgent]: ...
def rollout(function: Callable[..., Any] | None = None, /, *, uses_llm: bool | None = None) -> Any:
    """Makes an agent of a function, sync or async, that asks by parameter name for what it needs.

    The names are `task` (the decoded input), `llm`, `prompt_template`, `resources` and `rollout`. It returns a number,
    the reward, or None when it has emitted its rewards.

    Raises:
        AgentError: it asks for something else, or for no task.
    """
    if function is None:
        return functools.partial(FunctionAgent, uses_llm=uses_llm)
    return FunctionAgent(function, uses_llm)
