"""Reading values whose shape a library decides: JSON or Python text, flattened lists, wrong types."""

import ast
import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec

_decode = msgspec.json.decode
EMPTY: Mapping[str, Any] = {}
LONGEST_LITERAL = 4_000_000  # characters; Python text beyond that is not worth the parser's memory
LONGEST_INDEX = 9  # digits


def read_text(text: str) -> Any:
    """The value that JSON or Python text tells; None if it tells none."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    if len(text) > LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def as_mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else EMPTY  # pyright: ignore[reportUnknownVariableType]


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, a tuple as one, else an empty list. Not to be changed: it may be the value itself."""
    if type(value) is list:
        return value  # pyright: ignore[reportUnknownVariableType]
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else []


def as_number(value: Any) -> float | None:
    """The value if it is a finite number and no bool. An integer that no double holds is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return value if math.isfinite(value) else None
        except OverflowError:
            return None
    return None


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """`prefix.0.role`, `prefix.1.role` and so on as a list of nested mappings, in the order of the numbers.

    Below, a mapping whose keys are all numbers becomes a list in turn. Gaps close.
    """
    tree: dict[str, Any] = {}
    start = prefix + "."
    for key, value in attributes.items():
        if not key.startswith(start):
            continue
        *path, last = key[len(start) :].split(".")
        place = tree
        for part in path:
            below = place.get(part)
            if not isinstance(below, dict):
                below = place[part] = {}
            place = cast("dict[str, Any]", below)
        if not isinstance(place.get(last), dict):
            place[last] = value
    value = _listed(tree)
    return cast("list[Any]", value) if isinstance(value, list) else []


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    tree = {key: _listed(below) for key, below in cast("dict[str, Any]", value).items()}
    if tree and all(key.isdecimal() and len(key) <= LONGEST_INDEX for key in tree):
        return [tree[key] for key in sorted(tree, key=int)]
    return tree
