"""`operation`: a step of the agent as a span, by `with`, `async with` or as a decorator; and the `reward` decorator."""

import functools
import inspect
import json
import secrets
import time
from collections.abc import Callable
from contextvars import Token
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast, overload

from headrace.streams.agent.emit import emit_reward, emit_span, exception_event
from headrace.streams.agent.errors import AttemptOverError
from headrace.streams.agent.tracer import CURRENT, OPERATION

P = ParamSpec("P")
T = TypeVar("T")
NAME = "agentlightning.operation.name"
INPUT = "agentlightning.operation.input"
OUTPUT = "agentlightning.operation.output"


class Operation:
    """A step. Outside a rollout it does nothing, so that an agent's functions can be called by themselves.

    Attributes:
        span_id: what `emit_reward(..., span_id=...)` may name.
    """

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self.name = name
        self.span_id = secrets.token_hex(8)
        self._attributes = attributes
        self._start = 0
        self._parent: str | None = None
        self._token: Token[str | None] | None = None

    def set(self, **attributes: Any) -> None:
        """Adds attributes to the span."""
        self._attributes |= attributes

    def __enter__(self) -> Self:
        self._parent = OPERATION.get()
        self._token = OPERATION.set(self.span_id)
        self._start = time.time_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            OPERATION.reset(self._token)
        if CURRENT.get() is None:
            return
        try:
            emit_span(
                self.name,
                {NAME: self.name, **self._attributes},
                span_id=self.span_id,
                parent_id=self._parent,
                start_ns=self._start,
                events=[] if error is None else [exception_event(error)],
                error=None if error is None else f"{type(error).__name__}: {error}",
            )
        except AttemptOverError:
            if error is None:
                raise

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Decorates a function: each call is a step of its own."""
        plain: Callable[..., Any] = function
        name, attributes = self.name, self._attributes
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def traced_async(*args: Any, **kwargs: Any) -> Any:
                with Operation(name, {**attributes, **_told(INPUT, {"args": args, "kwargs": kwargs})}) as step:
                    result = await plain(*args, **kwargs)
                    step.set(**_told(OUTPUT, result))
                    return result

            return cast(Callable[P, T], traced_async)

        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with Operation(name, {**attributes, **_told(INPUT, {"args": args, "kwargs": kwargs})}) as step:
                result = plain(*args, **kwargs)
                step.set(**_told(OUTPUT, result))
                return result

        return cast(Callable[P, T], traced)


@overload
def operation(name: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def operation(name: str, /, **attributes: Any) -> Operation: ...
def operation(name: Any, /, **attributes: Any) -> Any:
    """A step of the agent as a span.

    `with operation("search", query=q) as step:`, `@operation`, or `@operation("search")`; a decorated function's
    arguments and result stand on the span where JSON can hold them. What is emitted inside stands below it.
    """
    if callable(name):
        function = cast(Callable[..., Any], name)
        return Operation(getattr(function, "__name__", "operation"), {})(function)
    return Operation(name, attributes)


def _told(key: str, value: Any) -> dict[str, Any]:
    try:
        return {key: json.dumps(value, ensure_ascii=False)}
    except (TypeError, ValueError):  # not JSON: the span says what it can
        return {}


def reward(function: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function whose result is the primary reward: in a rollout it is emitted, and returned as it is.

    Raises:
        InvalidRewardError: from the call, where the result is no number.
    """
    plain: Callable[..., Any] = function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def rewarded_async(*args: Any, **kwargs: Any) -> Any:
            value = await plain(*args, **kwargs)
            if CURRENT.get() is not None:
                await emit_reward(value)
            return value

        return cast(Callable[P, T], rewarded_async)

    @functools.wraps(function)
    def rewarded(*args: Any, **kwargs: Any) -> Any:
        value = plain(*args, **kwargs)
        if CURRENT.get() is not None:
            emit_reward(value)
        return value

    return cast(Callable[P, T], rewarded)
