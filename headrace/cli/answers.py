"""What a replay of recorded traces gave, as plain JSON."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headrace.connectors.casedir.reader import CaseError, read_entries, read_settings
from headrace.connectors.casedir.replay import Replay, replay
from headrace.schemas.packing import float32_array, unpack_int32
from headrace.schemas.records import Trajectory, Triplet
from headrace.streams.assembly.drop import HTTP_ERROR, STATUS_ERROR
from headrace.streams.assembly.evidence import Evidence
from headrace.streams.assembly.messages.message import Message, ToolCall
from headrace.streams.assembly.messages.read import read_conversation
from headrace.streams.assembly.offline import OfflineRollout
from headrace.streams.assembly.prompts import whole_prompts
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import read_attempt
from headrace.streams.assembly.values import Call, Node
from headrace.trainers.rows import make_rows


def replay_directory(case: Path) -> dict[str, Any]:
    """The answer for one directory.

    Raises:
        CaseError: it holds no traces, or its settings are wrong.
    """
    settings = read_settings(case)
    level = settings.pop("level", "trajectory")
    try:
        chosen = msgspec.convert(settings, AssemblySettings)
    except msgspec.ValidationError as error:
        raise CaseError(f"{case / 'case.json'}: settings: {error}") from error
    return answer(replay(read_entries(case), chosen), level, chosen)


def answer(run: Replay, level: str, settings: AssemblySettings) -> dict[str, Any]:
    """What came out, as plain JSON."""
    rollouts = run.assembler.rollouts.values()
    trajectories = [rollout.trajectory for rollout in rollouts if rollout.trajectory is not None]
    return {
        "trajectories": [trajectory_json(trajectory, level) for trajectory in trajectories],
        "rejected": sorted(run.refused.values()),
        "dead_letters": run.dead_letters,
        "counters": dict(run.assembler.counters),
        "calls": [call for rollout in rollouts if rollout.closed for call in calls_json(rollout, settings)],
    }


def trajectory_json(trajectory: Trajectory, level: str) -> dict[str, Any]:
    """A trajectory with whole prompts and its rows."""
    rows = make_rows(trajectory, "transition" if level == "transition" else "trajectory")
    prompts = whole_prompts(trajectory.triplets)
    fields: dict[str, Any] = msgspec.to_builtins(trajectory)
    fields.pop("source")
    return {
        **fields,
        "triplets": [triplet_json(t, prompt) for t, prompt in zip(trajectory.triplets, prompts, strict=True)],
        "dropped": trajectory.diagnostics.dropped,
        "rows": [
            {"token_ids": row.token_ids.tolist(), "loss_mask": row.loss_mask.astype(np.int8).tolist()}
            for row in rows.rows
        ],
        "row_reasons": dict(rows.reasons),
    }


def triplet_json(triplet: Triplet, prompt: bytes) -> dict[str, Any]:
    """A triplet with its ids as lists."""
    fields: dict[str, Any] = msgspec.to_builtins(triplet)
    fields.pop("prompt_prefix")
    logprobs = triplet.logprobs
    return {
        **fields,
        "prompt_token_ids": unpack_int32(prompt),
        "response_token_ids": unpack_int32(triplet.response_token_ids),
        "logprobs": [float(str(value)) for value in float32_array(logprobs)] if logprobs is not None else None,
    }


def calls_json(rollout: OfflineRollout, settings: AssemblySettings) -> list[dict[str, Any]]:
    """The model calls of a rollout's attempt, in the order of their starts, with what was said."""
    read = read_attempt(rollout.records, settings, rollout.limit)
    return [call_json(call, read.nodes) for call in sorted(read.calls, key=lambda call: call.outer.span.start)]


def call_json(call: Call, nodes: list[Node]) -> dict[str, Any]:
    """One call."""
    conversation = read_conversation(call, nodes)
    reasons = [choice.finish_reason for choice in call.choices if choice.finish_reason]
    usages = [Evidence(node.span, node.attributes).usage for node in call.copies]
    usage = call.node.span.llm.usage if call.node.span.llm is not None else None
    usage = usage or next((found for found in usages if found is not None), None)
    return {
        "span_id": call.node.span.span_id,
        "span_ids": [node.span.span_id for node in call.copies],
        "response_id": call.response_id,
        "model": call.model,
        "agent_name": call.agent_name,
        "messages_in": [message_json(message) for message in conversation.sent],
        "messages_out": [message_json(message) for message in conversation.answered],
        "tool_calls": [tool_json(tool) for message in conversation.answered for tool in message.tool_calls],
        "usage": msgspec.to_builtins(usage) if usage is not None else None,
        "finish_reason": reasons[0] if reasons else None,
        "error": call.reason in (HTTP_ERROR, STATUS_ERROR) or call.failed,
        "http_status": call.http_status,
        "reason": call.reason,
    }


def message_json(message: Message) -> dict[str, Any]:
    """A message; images by the digest and length of their URL."""
    content = message.content
    return {
        "role": message.role,
        "content": [_part_json(part) for part in content] if isinstance(content, list) else content,
        "tool_calls": [tool_json(call) for call in message.tool_calls],
        "tool_call_id": message.tool_call_id,
    }


def tool_json(call: ToolCall) -> dict[str, Any]:
    """A tool call with decoded arguments, where they are JSON."""
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        arguments = call.arguments
    return {"id": call.id, "name": call.name, "arguments": arguments}


def _part_json(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image_url":
        return part
    url: str = part["image_url"]["url"]
    return {"type": "image_url", "sha256": hashlib.sha256(url.encode()).hexdigest(), "length": len(url)}
