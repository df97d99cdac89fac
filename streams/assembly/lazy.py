"""Attributes that are worked out once, for objects of one thread."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class lazy(Generic[T]):
    """As `functools.cached_property`, whose lock (until Python 3.12) costs more than most values that stand here."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    def __get__(self, instance: Any, owner: type[Any]) -> T:
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value
