"""`operation`: a step of the agent as a span, by `with`, `async with` or as a decorator; and the `reward` decorator."""

import functools
import inspect
import json
import time
from collections.abc import Callable
from contextvars import Token
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast, overload

from headrace.streams.agent.emit import REWARD_SPAN, emit_reward, emit_span, exception_event
from headrace.streams.agent.errors import AttemptOverError
from headrace.streams.agent.tracer import CURRENT, OPERATION, AttemptTracer
from headrace.streams.tracecontext import new_span_id

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
        self.span_id = new_span_id()
        self._attributes = attributes
        self._start = 0
        self._parent: str | None = None
        self._token: Token[str | None] | None = None
        self._entered: tuple[AttemptTracer, Any] | None = None

    def set(self, **attributes: Any) -> None:
        """Adds attributes to the span."""
        self._attributes |= attributes

    def __enter__(self) -> Self:
        if self._start:  # entered before: a step of its own
            self.span_id = new_span_id()
        tracer = CURRENT.get()
        self._parent = OPERATION.get() if tracer is None else tracer.span_id
        self._token = OPERATION.set(self.span_id)
        self._entered = None
        if tracer is not None and tracer.contexts is not None:
            self._entered = tracer, tracer.contexts.enter(self.span_id)
        self._start = time.time_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            OPERATION.reset(self._token)
        if self._entered is not None and (contexts := self._entered[0].contexts) is not None:
            contexts.leave(self._entered[1])
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


@overload
def reward(function: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def reward(*, primary_key: str) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def reward(function: Any = None, /, *, primary_key: str | None = None) -> Any:
    """Decorates a function whose result is the reward: in a rollout it is emitted, and returned as it is.

    It is an operation named `agentlightning.reward`: model calls inside it that carry its trace (`llm.client()`, and
    what the tracer sees) judge the agent, and are not trained. Outside a rollout the function is itself.

    Args:
        primary_key: of a function that returns dimensions as {name: number}: which of them is the primary reward.

    Raises:
        InvalidRewardError: from the call, where the result is no number.
    """
    if function is None:
        return functools.partial(_rewarding, primary_key=primary_key)
    return _rewarding(function, primary_key)


def _rewarding(function: Callable[..., Any], primary_key: str | None) -> Callable[..., Any]:
    name = {NAME: getattr(function, "__name__", REWARD_SPAN)}
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def rewarded_async(*args: Any, **kwargs: Any) -> Any:
            if CURRENT.get() is None:
                return await function(*args, **kwargs)
            with Operation(REWARD_SPAN, dict(name)) as step:
                value = await function(*args, **kwargs)
                step.set(**_told(OUTPUT, value))
            await emit_reward(value, primary_key=primary_key)
            return value

        return rewarded_async

    @functools.wraps(function)
    def rewarded(*args: Any, **kwargs: Any) -> Any:
        if CURRENT.get() is None:
            return function(*args, **kwargs)
        with Operation(REWARD_SPAN, dict(name)) as step:
            value = function(*args, **kwargs)
            step.set(**_told(OUTPUT, value))
        emit_reward(value, primary_key=primary_key)
        return value

    return rewarded
