"""A directory of recorded traces: `otlp.jsonl`, `events.jsonl` and the settings of `case.json`.

`otlp.jsonl` holds one OTLP/JSON export request a line, in the order of arrival. `events.jsonl` holds all else, one JSON
object a line; `after_batch: n` puts it after line n of the requests.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.connectors.otlp.record import KINDS, STATUSES
from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import AttemptEvent, Record, Reward, Span, Task
from headrace.streams.assembly.reward_forms import refusal
from headrace.streams.errors import HeadraceError

RECORD_OF_TOPIC: dict[str, type[Record]] = {"tasks": Task, "attempts": AttemptEvent, "spans": Span, "rewards": Reward}
JSON_FIELDS = ("attributes", "events", "links", "resource", "scope", "input", "request", "response", "tool_calls")


class CaseError(HeadraceError):
    """The directory holds no readable traces."""


class Request(msgspec.Struct, frozen=True):
    """An OTLP/JSON export request."""

    body: str


class Clock(msgspec.Struct, frozen=True):
    """The clock moves."""

    seconds: float


class Taken(msgspec.Struct, frozen=True):
    """A record of a topic. `judged`: an attempt event says itself whether it is final."""

    record: Record
    judged: bool = True


class Unreadable(msgspec.Struct, frozen=True):
    """A record that has to become a dead letter, as bytes or as JSON that fits no record."""

    topic: str
    value: bytes


class RefusedReward(msgspec.Struct, frozen=True):
    """A reward value that is refused at the edge."""

    code: str
    identity: str


Entry = Request | Clock | Taken | Unreadable | RefusedReward


def read_settings(case: Path) -> dict[str, Any]:
    """The `settings` of case.json; empty if there is none."""
    path = case / "case.json"
    if not path.exists():
        return {}
    return cast("dict[str, Any]", json.loads(path.read_text()).get("settings") or {})


def read_entries(case: Path) -> Iterator[Entry]:
    """All lines of both files in the order of arrival.

    Raises:
        CaseError: there is nothing to read, or a line of events.jsonl is no JSON object.
    """
    requests_file, events_file = case / "otlp.jsonl", case / "events.jsonl"
    if not requests_file.exists() and not events_file.exists():
        raise CaseError(f"{case} holds neither otlp.jsonl nor events.jsonl; name the directory of a recorded case")
    requests = _lines(requests_file)
    events: dict[int, list[Entry]] = {}
    for number, line in enumerate(_lines(events_file), start=1):
        try:
            fields = json.loads(line)
            after = min(max(int(fields.get("after_batch", 0)), 0), len(requests))
            events.setdefault(after, []).append(_entry(fields))
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise CaseError(f"{events_file}, line {number}: {error}") from error
    yield from events.get(0, [])
    for number, body in enumerate(requests, start=1):
        yield Request(body)
        yield from events.get(number, [])


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [line for line in file if line.strip()]


def _entry(fields: dict[str, Any]) -> Entry:
    clock = fields.get("clock")
    if clock is not None:
        return Clock(float(clock["advance_seconds"]))
    topic = str(fields["topic"])
    if "raw_base64" in fields:
        return Unreadable(topic, base64.b64decode(fields["raw_base64"]))
    record = cast("dict[str, Any]", fields["record"])
    if topic not in RECORD_OF_TOPIC:
        return Clock(0)
    if topic == "rewards":
        code = refusal(record.get("value"))
        if code is not None:
            return RefusedReward(code, f"{record.get('rollout_id')}/{record.get('reward_id')}")
        record = {**record, "value": float(record["value"]), "primary": record.get("primary", not record.get("name"))}
    try:
        return Taken(_record(RECORD_OF_TOPIC[topic], record), judged="final" in record)
    except (msgspec.ValidationError, ValueError, TypeError, KeyError):
        return Unreadable(topic, json.dumps(record).encode())


def _record(kind: type[Record], fields: dict[str, Any]) -> Record:
    return msgspec.convert(_packed({k: v for k, v in fields.items() if v is not None}), kind, strict=False)


def _packed(fields: dict[str, Any]) -> dict[str, Any]:
    """Lists of ids and log-probabilities as bytes, free JSON as text; nulls as the field's default."""
    found = dict(fields)
    for key in JSON_FIELDS:
        if key in found and not isinstance(found[key], str):
            found[key] = json.dumps(found[key])
    if isinstance(metadata := found.get("metadata"), dict):
        pairs = cast("dict[str, Any]", metadata).items()
        found["metadata"] = {k: v if isinstance(v, str) else json.dumps(v) for k, v in pairs}
    if isinstance(llm := found.get("llm"), dict):
        found["llm"] = _packed_call({k: v for k, v in cast("dict[str, Any]", llm).items() if v is not None})
    if isinstance(error := found.get("error"), str):
        found["error"] = {"type": error}
    if isinstance(kind := found.get("kind"), int):
        found["kind"] = KINDS[kind]
    if "status" in found and not isinstance(found["status"], dict):
        found["status"] = {"code": found["status"]}
    if isinstance(status := found.get("status"), dict):
        fields = cast("dict[str, Any]", status)
        code = fields.get("code") or 0
        found["status"] = {**fields, "code": STATUSES[code] if isinstance(code, int) else code}
    return found


def _packed_call(llm: dict[str, Any]) -> dict[str, Any]:
    found = _packed(llm)
    found.setdefault("model", "")
    found["prompt_token_ids"] = pack_int32(found.get("prompt_token_ids") or [])
    choices: list[dict[str, Any]] = []
    for position, choice in enumerate(found.get("choices") or []):
        fields = _packed({"index": position, **{k: v for k, v in choice.items() if v is not None}})
        fields["response_token_ids"] = pack_int32(fields.get("response_token_ids") or [])
        if fields.get("logprobs") is not None:
            fields["logprobs"] = pack_float32(fields["logprobs"])
        choices.append(fields)
    found["choices"] = choices
    return found
