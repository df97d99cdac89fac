"""`@algorithm`: makes an algorithm of a coroutine function that asks by parameter name for what it needs."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from headrace.streams.errors import SettingsError
from headrace.trainers.custom.context import Context

CONTEXT = "ctx"
DATASETS = ("train_dataset", "val_dataset")


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What an algorithm may ask for beside its context.

    Attributes:
        datasets: inputs of tasks, by `train_dataset` and `val_dataset`; only those that are given.
        arguments: its other parameters.
    """

    datasets: Mapping[str, Sequence[Any]]
    arguments: Mapping[str, Any]


class CustomAlgorithm:
    """What `@algorithm` makes. It stays callable as the function that it wraps."""

    def __init__(self, function: Callable[..., Awaitable[Any]], name: str | None = None) -> None:
        self.function = function
        self.name = name or getattr(function, "__name__", "algorithm")
        if not inspect.iscoroutinefunction(function):
            raise SettingsError(f"@algorithm {self.name}: write it as `async def {self.name}(ctx, ...)`")
        self._parameters = inspect.signature(function).parameters
        if CONTEXT not in self._parameters:
            raise SettingsError(f"@algorithm {self.name}: it must ask for `{CONTEXT}`")
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        """The function itself."""
        return self.function(*args, **kwargs)

    def check(self, inputs: Inputs) -> None:
        """Looks whether the function can be called with these.

        Raises:
            SettingsError: it does not ask for one of them, or needs another one.
        """
        given = {CONTEXT, *inputs.datasets, *inputs.arguments}
        others = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self._parameters.values())
        unknown = sorted(given - set(self._parameters))
        if unknown and not others:
            raise SettingsError(
                f"@algorithm {self.name} does not ask for {', '.join(unknown)}; it has {', '.join(self._parameters)}"
            )
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        missing = [
            p.name
            for p in self._parameters.values()
            if p.default is inspect.Parameter.empty and p.kind not in kinds and p.name not in given
        ]
        if missing:
            raise SettingsError(
                f"@algorithm {self.name} needs {', '.join(missing)}: datasets by --train and --val, "
                "other parameters by --arg NAME=JSON"
            )

    async def run(self, ctx: Context, inputs: Inputs) -> Any:
        """Calls the function with what it asks for. Raises as `check`, and whatever it raises."""
        self.check(inputs)
        return await self.function(**{CONTEXT: ctx}, **inputs.datasets, **inputs.arguments)


@overload
def algorithm(function: Callable[..., Awaitable[Any]], /) -> CustomAlgorithm: ...
@overload
def algorithm(*, name: str | None = None) -> Callable[[Callable[..., Awaitable[Any]]], CustomAlgorithm]: ...
def algorithm(function: Callable[..., Awaitable[Any]] | None = None, /, *, name: str | None = None) -> Any:
    """Makes an algorithm of a coroutine function.

    It asks by parameter name: `ctx` is the `Context`, `train_dataset` and `val_dataset` are lists of task inputs; other
    parameters are given as arguments of the run. What it returns is a JSON value, the result of the run.

    Raises:
        SettingsError: it is no coroutine function, or does not ask for `ctx`.
    """
    if function is None:
        return functools.partial(CustomAlgorithm, name=name)
    return CustomAlgorithm(function, name)
