"""Whose call it is."""

from typing import Any

import pytest

from headrace.connectors.gateway.caller import Caller, Outside, Traces, identify
from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.keys.guard import Grant

TRACE, OTHER = "0af7651916cd43dd8448eb211c80319c", "1" * 32


def parent(trace: str) -> str:
    return f"00-{trace}-b7ad6b7169203331-01"


def called(outside: Outside | None = None, grant: Grant | None = None, **headers: str) -> Caller:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return identify(None, None, given, outside or Outside(), grant or Grant())


def test_by_trace_a_trace_is_a_rollout_and_a_call_without_one_too():
    caller = called(traceparent=parent(TRACE), x_session_id="s")
    assert (caller.rollout_id, caller.trace_id, caller.parent_id, caller.session_id) == (
        TRACE,
        TRACE,
        "b7ad6b7169203331",
        "s",
    )
    lone = called()
    assert lone.rollout_id == lone.trace_id != called().rollout_id
    assert (lone.parent_id, lone.session_id, lone.mode) == (None, None, None)


def test_by_session_and_a_trace_is_never_split():
    outside = Outside(by_session=True)
    first = called(outside, x_session_id="s1", traceparent=parent(TRACE))
    assert (first.rollout_id, first.trace_id, first.session_id) == ("s1", TRACE, "s1")
    # A sub-agent that does not pass the session on, and one that says another.
    assert called(outside, traceparent=parent(TRACE)).rollout_id == "s1"
    assert called(outside, x_session_id="s2", traceparent=parent(TRACE)).rollout_id == "s1"
    assert called(outside, x_session_id="s2", traceparent=parent(OTHER)).rollout_id == "s2"
    assert called(outside, x_headrace_session="s3").rollout_id == "s3"
    # Each call without a trace has one of its own, so that a session that has closed may open its next segment.
    assert called(outside, x_session_id="s2").trace_id != called(outside, x_session_id="s2").trace_id
    lone = called(outside)
    assert lone.rollout_id == lone.trace_id


def test_an_id_that_is_given_is_the_rollout():
    outside = Outside()
    given = called(outside, x_rollout_id="mine", traceparent=parent(TRACE))
    assert (given.rollout_id, given.trace_id, given.attempt_id) == ("mine", TRACE, None)
    assert called(outside, traceparent=parent(TRACE)).rollout_id == "mine"
    runner = called(x_rollout_id="ro", x_attempt_id="ro-1")
    assert runner.trace_id == called(x_rollout_id="ro", x_attempt_id="ro-1").trace_id
    url = identify("ro", "ro-1", {"x-session-id": "s"}, Outside(by_session=True, sample=0))
    assert (url.rollout_id, url.session_id, url.mode, url.recorded) == ("ro", "s", "train", True)


def test_another_session_header():
    outside = Outside(by_session=True, session_headers=("x-chat",))
    assert called(outside, x_chat="c", x_session_id="s").rollout_id == "c"


def test_sampling_keeps_sessions_whole():
    outside = Outside(by_session=True, sample=0.25)
    taken = {n: called(outside, x_session_id=f"s{n}").recorded for n in range(2000)}
    assert 400 < sum(taken.values()) < 600
    assert all(called(outside, x_session_id=f"s{n}").recorded == taken[n] for n in range(0, 2000, 50))
    assert not called(Outside(sample=0)).recorded
    assert called(Outside(sample=0), x_headrace_mode="val").recorded


def test_opting_out():
    assert called().train
    assert called(x_headrace_train="yes").train
    assert not called(x_headrace_train="no").train
    assert not called(x_headrace_train="No").train
    assert not called(grant=Grant("k", train=False), x_headrace_train="yes").train
    url = identify("ro", "ro-1", {"x-headrace-train": "no"}, Outside())
    assert (url.train, url.mode) == (False, None)
    assert called(grant=Grant("k")).key_id == "k"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x_rollout_id": "a~2"}, "invalid_id"),
        ({"x_rollout_id": "x" * 513}, "invalid_id"),
        ({"x_rollout_id": "a\tb"}, "invalid_id"),
        ({"x_rollout_id": "a", "x_attempt_id": "a~1"}, "invalid_id"),
        ({"x_session_id": "x" * 513}, "invalid_id"),
        ({"x_session_id": "s~1"}, "invalid_id"),
        ({"x_headrace_train": "perhaps"}, "invalid_train"),
        ({"x_headrace_mode": "perhaps"}, "invalid_mode"),
    ],
)
def test_what_cannot_be(headers: dict[str, Any], code: str):
    with pytest.raises(CallError) as error:
        called(Outside(by_session=True), **headers)
    assert (error.value.status, error.value.code) == (400, code)


def test_traces_that_are_remembered_are_bounded():
    traces = Traces(size=2)
    for n in range(3):
        traces.remember(str(n), "r")
    assert [traces.rollout(str(n)) for n in range(3)] == [None, "r", "r"]
