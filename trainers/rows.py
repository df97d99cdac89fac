"""Turns to rows: the sequences that a trainer's model sees, made from a trajectory's triplets.

At level `transition` each triplet is a row. At level `trajectory` a triplet whose prompt starts with all of an earlier
row extends that row: mask 1 on what the policy sampled, 0 on what the environment added. Interleaved sub-agents merge
each with their own, since every row stays open. Each response is trained once.
"""

from collections import Counter
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from headrace.schemas.packing import float32_array, int32_array
from headrace.schemas.records import Trajectory, Triplet
from headrace.streams.assembly.prompts import common_tokens, whole_prompts

Level = Literal["transition", "trajectory"]
ID_BYTES = 4

FIRST = "first"
OTHER_AGENT = "other_agent"
RETOKENISED = "retokenised"
COMPACTED = "compacted"
NO_LOGPROBS = "no_logprobs"


class Turn(msgspec.Struct, frozen=True, gc=False):
    """The tokens of one response within a row, as [start, end)."""

    triplet: int  # index in the trajectory
    start: int
    end: int


class Row(msgspec.Struct, kw_only=True):
    """A sequence of n tokens."""

    token_ids: npt.NDArray[np.int32]  # (n,)
    loss_mask: npt.NDArray[np.bool_]  # (n,): true where the policy sampled the token and it is trained
    logprobs: npt.NDArray[np.float32]  # (n,): behaviour log-probability of each token that is trained; 0 elsewhere,
    # and in responses that do not have one a token
    turns: list[Turn]
    agent_name: str | None
    reason: str  # why the row begins: first, other_agent, retokenised or compacted; at level transition: first

    @property
    def prompt_length(self) -> int:
        """How many tokens stand before the first response."""
        return self.turns[0].start


class Rows(msgspec.Struct):
    """The rows of a trajectory, in the order in which they begin."""

    rows: list[Row]
    reasons: Counter[str]  # why rows begin, and how many responses are masked out as no_logprobs


class _OpenRow:
    __slots__ = ("agent_name", "last_prompt", "reason", "tokens", "turns")

    def __init__(self, reason: str, agent_name: str | None) -> None:
        self.tokens = b""
        self.turns: list[Turn] = []
        self.last_prompt = 0  # tokens of the last turn's prompt
        self.reason = reason
        self.agent_name = agent_name

    def extend(self, index: int, prompt: bytes, response: bytes) -> None:
        start = len(prompt) // ID_BYTES
        self.tokens = prompt + response
        self.last_prompt = start
        self.turns.append(Turn(index, start, len(self.tokens) // ID_BYTES))


def make_rows(trajectory: Trajectory, level: Level = "trajectory", *, require_logprobs: bool = False) -> Rows:
    """The rows of a trajectory. Pure.

    Args:
        trajectory: triplets with whole or shortened prompts.
        level: `transition` (a row a triplet) or `trajectory` (rows as long as prompts continue them).
        require_logprobs: mask out responses without behaviour log-probabilities (counted as `no_logprobs`).

    Raises:
        ValueError: a prompt refers to tokens that are not there, or ids are no int32.
    """
    triplets = trajectory.triplets
    rows: list[_OpenRow] = []
    for index, (triplet, prompt) in enumerate(zip(triplets, whole_prompts(triplets), strict=True)):
        if len(prompt) % ID_BYTES or len(triplet.response_token_ids) % ID_BYTES:
            raise ValueError(f"triplet {index}: its token ids are no whole number of int32")
        row = _longest_match(rows, prompt) if level == "trajectory" else None
        if row is None:
            reason = _reason(rows, triplet, prompt) if level == "trajectory" else FIRST
            row = _OpenRow(reason, triplet.agent_name)
            rows.append(row)
        row.extend(index, prompt, triplet.response_token_ids)
    reasons = Counter(row.reason for row in rows)
    return Rows([_close(row, triplets, require_logprobs, reasons) for row in rows], reasons)


def _longest_match(rows: list[_OpenRow], prompt: bytes) -> _OpenRow | None:
    best: _OpenRow | None = None
    for row in rows:
        if (best is None or len(row.tokens) > len(best.tokens)) and prompt.startswith(row.tokens):
            best = row
    return best


def _reason(rows: list[_OpenRow], triplet: Triplet, prompt: bytes) -> str:
    """Why a prompt continues no row. Retokenised: it holds an earlier prompt whole, but not the answer to it."""
    if not rows:
        return FIRST
    if all(row.agent_name != triplet.agent_name for row in rows):
        return OTHER_AGENT
    if any(row.last_prompt and common_tokens(prompt, row.tokens) >= row.last_prompt for row in rows):
        return RETOKENISED
    return COMPACTED


def _close(row: _OpenRow, triplets: list[Triplet], require_logprobs: bool, reasons: Counter[str]) -> Row:
    token_ids = int32_array(row.tokens)
    mask = np.zeros(len(token_ids), dtype=np.bool_)
    logprobs = np.zeros(len(token_ids), dtype=np.float32)
    for turn in row.turns:
        recorded = triplets[turn.triplet].logprobs
        if recorded is None and require_logprobs:
            reasons[NO_LOGPROBS] += 1
            continue
        mask[turn.start : turn.end] = True
        if recorded is not None and len(recorded) == ID_BYTES * (turn.end - turn.start):
            logprobs[turn.start : turn.end] = float32_array(recorded)
    return Row(
        token_ids=token_ids,
        loss_mask=mask,
        logprobs=logprobs,
        turns=row.turns,
        agent_name=row.agent_name,
        reason=row.reason,
    )
