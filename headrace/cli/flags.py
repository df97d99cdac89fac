"""Flags that several commands have stand once, as the fields of a dataclass that a command takes as one parameter."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer is to see it: in the place of each parameter that is a dataclass, a flag for each field.

    Fields are annotated as typer's parameters are; one without a default is required. Flags stand in the order of the
    parameters and fields.
    """
    hints = get_type_hints(command, include_extras=True)
    kinds: dict[str, Any] = {}
    flags: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if is_dataclass(kind):
            kinds[name] = kind
            flags += _flags(kind)
        else:
            flags.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def spread_out(**given: Any) -> None:
        sets = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in kinds.items()}
        command(**given, **sets)

    spread_out.__signature__ = inspect.Signature(flags)  # pyright: ignore[reportAttributeAccessIssue]
    spread_out.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return spread_out


def _flags(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
