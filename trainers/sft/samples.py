"""A trajectory to the rows that are imitated, with the reason for every answer that is not. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from headrace.schemas.packing import pack_int32
from headrace.schemas.records import Trajectory, Triplet
from headrace.trainers.batch import TokenRow
from headrace.trainers.rows import Level, Row, make_rows
from headrace.trainers.sft.rendering import Renderer, RenderError

MARKED = "mask/generation_tag"
"""Counter of answers whose template marks otherwise than the prefix says."""


@dataclass(frozen=True, kw_only=True)
class ImitationRules:
    """What can be trained; see `SftSettings`."""

    policy: str
    recorded: str
    level: Level
    vocab_size: int
    max_row_tokens: int


def imitated_rows(
    trajectory: Trajectory, rules: ImitationRules, renderer: Renderer | None, *, rollout: int
) -> tuple[list[TokenRow], Counter[str]]:
    """The rows of a trajectory: recorded tokens where they are this model's, else its conversations rendered.

    Args:
        renderer: None where the model has no chat template.

    Returns:
        Rows, each with a trained token, and how many answers are left out, by reason: too_long, bad_token_ids,
        empty_prompt, bad_triplets, no_conversations, bad_conversations, no_chat_template and those of `RenderError`.
    """
    refused: Counter[str] = Counter()
    made, _ = rows_of(trajectory, rules, renderer, refused)
    rows: list[TokenRow] = []
    for row in made:
        if row.token_ids.size > rules.max_row_tokens:
            refused["too_long"] += len(row.turns)
            continue
        # As unsigned numbers, negative ids are above every vocabulary.
        if row.token_ids.size and int(row.token_ids.view(np.uint32).max()) >= rules.vocab_size:
            refused["bad_token_ids"] += len(row.turns)
            continue
        if row.turns[0].start == 0:  # its first token is predicted by nothing
            refused["empty_prompt"] += 1
            row.loss_mask[: row.turns[0].end] = False
        if row.loss_mask.any():
            rows.append(
                TokenRow(
                    token_ids=row.token_ids,
                    loss_mask=row.loss_mask,
                    logprobs=np.zeros(row.token_ids.size, dtype=np.float32),
                    rollout=rollout,
                )
            )
    return rows, refused


def rows_of(
    trajectory: Trajectory, rules: ImitationRules, renderer: Renderer | None, refused: Counter[str]
) -> tuple[list[Row], str]:
    """Rows whatever their length, and where they come from: `recorded` or `rendered`."""
    if has_own_ids(trajectory, rules):
        try:
            return make_rows(trajectory, rules.level).rows, "recorded"
        except ValueError:
            refused["bad_triplets"] += len(trajectory.triplets)
            return [], "recorded"
    if renderer is None:
        refused["no_chat_template"] += 1
        return [], "rendered"
    if trajectory.conversations is None:
        refused["no_conversations"] += 1
        return [], "rendered"
    calls = _calls(trajectory.conversations)
    if calls is None:
        refused["bad_conversations"] += 1
        return [], "rendered"
    triplets = rendered_triplets(calls, renderer, refused)
    return make_rows(msgspec.structs.replace(trajectory, triplets=triplets), rules.level).rows, "rendered"


def _calls(conversations: str) -> list[dict[str, Any]] | None:
    """None where these are no calls as the assembler writes them."""
    try:
        calls = msgspec.json.decode(conversations, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return None
    told = (message for call in calls for message in call.get("messages") or [None])
    return calls if all(isinstance(message, dict) for message in told) else None


def has_own_ids(trajectory: Trajectory, rules: ImitationRules) -> bool:
    """Whether the recorded token ids are those of the model that is trained."""
    if rules.recorded == "never" or not trajectory.triplets:
        return False
    return rules.recorded == "always" or all(t.policy == rules.policy for t in trajectory.triplets)


def rendered_triplets(
    conversations: Sequence[dict[str, Any]], renderer: Renderer, refused: Counter[str]
) -> list[Triplet]:
    """One a call and choice: its last message is the answer, and what stands before it the prompt."""
    triplets: list[Triplet] = []
    for entry in conversations:
        try:
            answer = renderer.answer(entry["messages"], entry.get("tools"))
        except RenderError as error:
            refused[error.reason] += 1
            continue
        refused[MARKED] += answer.marked
        triplets.append(
            Triplet(
                prompt_token_ids=pack_int32(answer.prompt),
                response_token_ids=pack_int32(answer.response),
                span_id=str(entry.get("span_id", "")),
                choice=int(entry.get("choice", 0)),
            )
        )
    return triplets
