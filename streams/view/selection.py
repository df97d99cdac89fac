"""Which items, in which order, which page; `queries` applies the same to SQL."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

T = TypeVar("T")
Get = Callable[[T, str], Any]
"""The value of a field of an item."""


class Condition(NamedTuple):
    """`in`: the field is one of the values; `contains`: the text is part of it; `since`: it is the value or greater.

    A field without a value meets none.
    """

    field: str
    test: Literal["in", "contains", "since"]
    value: Any


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A query as Agent Lightning's store takes them (`query_rollouts`, `query_spans`).

    Attributes:
        logic: whether all conditions must hold or any; where there are none, everything is selected.
        sort_by: a field; items without a value come last in either order.
        ties: the fields that order items which are equal in `sort_by`; together they differ.
    """

    conditions: tuple[Condition, ...] = ()
    logic: Literal["and", "or"] = "and"
    sort_by: str
    ties: tuple[str, ...] = ()
    descending: bool = False
    limit: int | None = None
    offset: int = 0


def select_from(items: Iterable[T], selection: Selection, get: Get[T]) -> list[T]:
    """The items that a selection names."""
    joined = all if selection.logic == "and" else any
    conditions = selection.conditions
    found = [i for i in items if not conditions or joined(_holds(get(i, c.field), c) for c in conditions)]
    by, ties = selection.sort_by, selection.ties

    def order(item: T) -> tuple[Any, ...]:
        return (get(item, by), *(get(item, tie) for tie in ties))

    having = [item for item in found if get(item, by) is not None]
    having.sort(key=order, reverse=selection.descending)
    lacking = [item for item in found if get(item, by) is None]
    lacking.sort(key=lambda item: tuple(get(item, tie) for tie in ties), reverse=selection.descending)
    found = having + lacking
    end = None if selection.limit is None else selection.offset + selection.limit
    return found[selection.offset : end]


def _holds(value: Any, condition: Condition) -> bool:
    if value is None:
        return False
    if condition.test == "in":
        return value in condition.value
    if condition.test == "contains":
        return condition.value in value
    return value >= condition.value
