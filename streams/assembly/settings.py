"""How traces become trajectories: the choices that assembly takes from its user."""

import re
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
