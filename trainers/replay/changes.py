"""What is to be otherwise than in the first run: settings of the assembler, given as NAME=VALUE. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headrace.streams.assembly.settings import OF_THE_CLOSE, AssemblySettings
from headrace.streams.errors import InvalidValueError

LEVEL = "level"
LEVELS = ("transition", "trajectory")
FLAG = "--assembler-setting"


@dataclass(frozen=True)
class Changes:
    """Settings by name.

    Attributes:
        assembly: of `AssemblySettings`; the others are as the first run's assembler had them.
        level: of the rows that triplets become; None: as in the first run.
    """

    assembly: Mapping[str, Any] = field(default_factory=dict[str, Any])
    level: str | None = None

    def __bool__(self) -> bool:
        return bool(self.assembly) or self.level is not None

    def of(self, recorded: AssemblySettings) -> AssemblySettings:
        """The settings that a trajectory is assembled with now."""
        return msgspec.structs.replace(recorded, **self.assembly) if self.assembly else recorded

    def names(self) -> dict[str, Any]:
        """All of them, as JSON values."""
        return {**self.assembly, **({} if self.level is None else {LEVEL: self.level})}


def parse_changes(texts: Iterable[str]) -> Changes:
    """The settings of texts such as `reward_policy=final_only`; hyphens are as good as underscores.

    Raises:
        InvalidValueError: there is no such setting, it changes nothing in a replay, or the value is none of its.
    """
    given: dict[str, str] = {}
    names = [name for name in AssemblySettings.__struct_fields__ if name != OF_THE_CLOSE]
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise InvalidValueError(f"{FLAG} {text!r}: write NAME=VALUE, such as reward_policy=final_only")
        if name == OF_THE_CLOSE:
            raise InvalidValueError(
                f"{FLAG} {text}: it says when a rollout closes; a replay takes the records that it was closed with"
            )
        if name not in (*names, LEVEL):
            raise InvalidValueError(f"{FLAG} {text}: there is no {name!r}, but {', '.join([*names, LEVEL])}")
        if name in given:
            raise InvalidValueError(f"{FLAG} {text}: {name} is given twice")
        given[name] = value
    level = given.pop(LEVEL, None)
    if level is not None and level not in LEVELS:
        raise InvalidValueError(f"{FLAG} level={level}: choose {' or '.join(LEVELS)}")
    return Changes(_converted(given), level)


def _converted(given: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = dict(given)
    if given.get("agent_match") == "":
        values["agent_match"] = None  # all agents
    try:
        settings = msgspec.convert(values, AssemblySettings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidValueError(f"{FLAG} {', '.join(f'{k}={v}' for k, v in given.items())}: {error}") from error
    try:
        re.compile(settings.agent_match or "")
    except re.error as error:
        raise InvalidValueError(f"{FLAG} agent_match={settings.agent_match}: no regular expression: {error}") from error
    return {name: getattr(settings, name) for name in given}
