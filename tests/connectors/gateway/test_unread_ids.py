"""Why a call is not trained whose token ids an engine left out, or gave as what they cannot be."""

import json
from typing import Any

import pytest

from headrace.connectors.gateway.answer import Answer, read_answer
from headrace.connectors.gateway.caller import identify
from headrace.connectors.gateway.relay import Relay
from headrace.connectors.gateway.request import read_request
from headrace.connectors.gateway.spans import Observed, SpanMaker
from headrace.schemas.records import AttemptEvent, TaskFacts
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble

REQUEST = read_request(b'{"messages": [], "stream": true}', "train")
PROMPT = {"prompt_token_ids": [1, 2]}


def whole(*ids: Any) -> Answer:
    choices = [
        {"index": i, "message": {"content": "a"}, "finish_reason": "stop", "token_ids": some}
        for i, some in enumerate(ids)
    ]
    return read_answer(json.dumps({"id": "c", "model": "m", "choices": choices, **PROMPT}).encode(), REQUEST)


def streamed(*ids: Any) -> Answer:
    """The first choice in two pieces, of which the second has the ids."""
    relay = Relay(REQUEST)
    for index, some in enumerate(ids):
        first: dict[str, Any] = {
            "index": index,
            "delta": {"content": "a"},
            "token_ids": [7] if some and some != "cut" else None,
        }
        last: dict[str, Any] = {
            "index": index,
            "delta": {},
            "finish_reason": None if some == "cut" else "stop",
            "token_ids": some,
        }
        if some == "cut":
            last["token_ids"] = None
        for choice in (first, last):
            relay.feed(b"data: %b\n\n" % json.dumps({"id": "c", "model": "m", "choices": [choice], **PROMPT}).encode())
    return relay.gathering.answer()


def dropped(answer: Answer) -> dict[str, int]:
    call = Observed(caller=identify("ro", "ro-1", {}), body=b"{}", started_at=1, ended_at=2)
    call.request, call.answer = REQUEST, answer
    records = RolloutRecords("ro")
    records.add_event(AttemptEvent(rollout_id="ro", attempt_id="ro-1", type="started", task=TaskFacts(), at=0), 0, 0)
    records.add_span(SpanMaker("gateway-1", "1")(call), 0, 1)
    ended = AttemptEvent(rollout_id="ro", attempt_id="ro-1", type="succeeded", final=True, at=0)
    records.add_event(ended, 1, 2)
    diagnostics = assemble(records, AssemblySettings(), assembled_at=0).diagnostics
    return {"kept": diagnostics.kept, **diagnostics.dropped}


MALFORMED = (["5"], [1.5], [1 << 40], [-1], "1,2", {"0": 1}, 3)


@pytest.mark.parametrize("make", [whole, streamed])
def test_ids_that_are_none(make: Any) -> None:
    for ids in (None, *MALFORMED):
        assert dropped(make(ids)) == {"kept": 0, "no_token_ids": 1}, ids
    assert dropped(make([])) == {"kept": 0, "empty_response": 1}
    assert dropped(make([5])) == {"kept": 1}


@pytest.mark.parametrize("make", [whole, streamed])
def test_a_choice_with_ids_is_kept_beside_one_without(make: Any) -> None:
    assert dropped(make([5], ["x"])) == {"kept": 1}
    assert dropped(make(["x"], [5])) == {"kept": 1}


def test_a_stream_that_was_cut_before_its_first_token() -> None:
    assert dropped(streamed("cut")) == {"kept": 0, "empty_response": 1}
