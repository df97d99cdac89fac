"""A trajectory as a grader's function gets it: decoded, and with whole prompts."""

import json
from functools import cached_property
from typing import Any, cast

from headrace.schemas.packing import unpack_int32
from headrace.schemas.records import Trajectory, Triplet
from headrace.streams.assembly.prompts import whole_prompts


class GradedCall:
    """One model call and choice of a rollout.

    Attributes:
        messages: the conversation up to this answer as OpenAI messages, the answer last; empty without conversations.
        text: the content of the answer; None without conversations.
        prompt_token_ids, response_token_ids: what was sampled, and from what.
        reward: what the agent itself gave to this call.
    """

    def __init__(self, triplet: Triplet, prompt: bytes, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        self.text: str | None = _content(messages[-1]) if messages else None
        self.reward = triplet.reward
        self.agent_name = triplet.agent_name
        self.model = triplet.model
        self.finish_reason = triplet.finish_reason
        self.response_id = triplet.response_id
        self.span_id = triplet.span_id
        self._prompt = prompt
        self._response = triplet.response_token_ids

    @cached_property
    def prompt_token_ids(self) -> list[int]:
        """Token ids of the whole prompt."""
        return unpack_int32(self._prompt)

    @cached_property
    def response_token_ids(self) -> list[int]:
        """Token ids of the answer."""
        return unpack_int32(self._response)


class GradedTrajectory:
    """What a grader judges.

    Attributes:
        record: the whole record, for what is not here.
        input: the task's input, decoded.
        status: how the attempt ended: succeeded, failed, timeout, ...
        final_reward: the agent's own primary reward; None if it gave none.
        rewards: the agent's rewards by name.
        conversations: the assembler's list of {span_id, choice, messages, tools}; empty unless it runs with
            `--conversations`.
    """

    def __init__(self, record: Trajectory) -> None:
        self.record = record
        self.rollout_id = record.rollout_id
        self.attempt_id = record.attempt_id
        self.group_id = record.group_id
        self.sample_index = record.sample_index
        self.session_id = record.session_id
        self.run_id = record.run_id
        self.mode = record.mode
        self.origin = record.origin
        self.status = record.status
        self.final_reward = record.final_reward
        self.rewards = dict(record.rewards)

    @cached_property
    def input(self) -> Any:
        """The task's input, decoded; None of an external rollout."""
        return json.loads(self.record.input)

    @cached_property
    def conversations(self) -> list[dict[str, Any]]:
        """One a call and choice, in the order of the calls."""
        return cast("list[dict[str, Any]]", json.loads(self.record.conversations or "[]"))

    @cached_property
    def calls(self) -> list[GradedCall]:
        """The triplets, in causal order."""
        told = {(c["span_id"], c["choice"]): c["messages"] for c in self.conversations}
        prompts = whole_prompts(self.record.triplets)
        return [
            GradedCall(triplet, prompt, told.get((triplet.span_id, triplet.choice), []))
            for triplet, prompt in zip(self.record.triplets, prompts, strict=True)
        ]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation of the last call, its answer last; empty without conversations."""
        return self.conversations[-1]["messages"] if self.conversations else []

    @property
    def text(self) -> str | None:
        """The content of the last answer; None without conversations."""
        return _content(self.messages[-1]) if self.messages else None


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "".join(str(part.get("text", "")) for part in parts)
    return content or ""
