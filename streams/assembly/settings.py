"""How traces become trajectories: the choices that assembly takes from its user."""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Literal

import msgspec

RewardPolicy = Literal["first_occurrence", "first_sibling", "final_only", "explicit"]


class AssemblySettings(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Settings of the assembler. They change what is made of the records, never which records are read."""

    agent_match: str | None = None
    """Regular expression, searched in the agent's name; calls of other agents give no triplet."""
    reward_policy: RewardPolicy = "first_occurrence"
    """Which call a reward goes to."""
    settle_seconds: float = 5.0
    """How long an attempt without a `complete` end stays open for what is still on its way."""
    keep_incomplete: bool = False
    """Keep answers whose stream was cut."""
    conversations: bool = False
    """Write the calls as OpenAI messages into the trajectory."""

    @cached_property
    def agent_pattern(self) -> re.Pattern[str] | None:
        return re.compile(self.agent_match) if self.agent_match is not None else None


HEADER = "assembler"
"""Header of a trajectory's record: the settings it was assembled with, where they are not the defaults, as JSON."""
OF_THE_CLOSE = "settle_seconds"  # says when a rollout closes, nothing of what is made of its records


def settings_header(settings: AssemblySettings) -> list[tuple[str, str | bytes | None]]:
    """The header that `settings_of_header` reads back; none where all are the defaults."""
    defaults = AssemblySettings()
    names = [name for name in settings.__struct_fields__ if name != OF_THE_CLOSE]
    changed = {name: value for name in names if (value := getattr(settings, name)) != getattr(defaults, name)}
    return [(HEADER, msgspec.json.encode(changed, order="sorted"))] if changed else []


def settings_of_header(headers: Iterable[tuple[str, str | bytes | None]] | None) -> AssemblySettings:
    """The settings that a trajectory was assembled with. Those of a newer version that are unknown here are left out.

    Raises:
        msgspec.DecodeError: somebody else's header of the same name.
    """
    value = next((value for name, value in headers or () if name == HEADER), None)
    return AssemblySettings() if value is None else msgspec.json.decode(value, type=AssemblySettings)
