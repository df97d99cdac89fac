"""Redaction: what a hook leaves of a call, and what assembly makes of it."""

import logging

import msgspec
import orjson
import pytest

from headrace.connectors.gateway.redaction import Redactor, load_hook, withhold
from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import AttemptEvent, Choice, ErrorInfo, ModelCall, Span, SpanStatus, TaskFacts
from headrace.streams.assembly.records import RolloutRecords
from headrace.streams.assembly.settings import AssemblySettings
from headrace.streams.assembly.trajectory import assemble
from headrace.streams.errors import SettingsError

SECRET = "4111 1111 1111 1111"


def make_span() -> Span:
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3, "gen_ai.input.messages": SECRET}
    return Span(
        rollout_id="r",
        session_id="s",
        source="gateway",
        trace_id="a" * 32,
        span_id="b" * 16,
        name="chat m",
        start=1,
        end=2,
        status=SpanStatus(code="OK", message=SECRET),
        attributes=orjson.dumps(attributes | {"gen_ai.request.stop_sequences": [SECRET]}).decode(),
        events=orjson.dumps([{"name": SECRET}]).decode(),
        llm=ModelCall(
            model="m",
            response_id="chatcmpl-1",
            prompt_token_ids=pack_int32([1, 2]),
            choices=[
                Choice(
                    index=0,
                    response_token_ids=pack_int32([3]),
                    logprobs=pack_float32([-1]),
                    finish_reason="stop",
                    text=f"it is {SECRET}",
                    tool_calls=orjson.dumps([SECRET]).decode(),
                )
            ],
            request=orjson.dumps({"messages": [SECRET]}).decode(),
            response=orjson.dumps({"choices": [SECRET]}).decode(),
            error=ErrorInfo(type="x", message=SECRET),
        ),
    )


def mask(span: Span) -> Span:
    assert span.llm is not None
    span.llm.choices[0].text = "it is [card]"
    span.llm.choices[0].tool_calls = "[]"
    span.llm.error = None
    span.status.message = ""
    span.events = "[]"
    span.attributes = span.attributes.replace(SECRET, "[card]")
    return span


def as_text(span: Span) -> str:
    return msgspec.json.encode(span).decode()


def reasons(span: Span) -> tuple[int, dict[str, int]]:
    records = RolloutRecords("r")
    records.add_event(AttemptEvent(rollout_id="r", attempt_id="r-1", type="started", task=TaskFacts(), at=0), 0, 0)
    records.add_span(span, 0, 0)
    event = AttemptEvent(rollout_id="r", attempt_id="r-1", type="succeeded", final=True, at=0)
    records.add_event(event, 1, 0)
    trajectory = assemble(records, AssemblySettings(), assembled_at=0)
    return len(trajectory.triplets), dict(trajectory.diagnostics.dropped)


def test_without_a_hook_and_with_one_that_changes_nothing():
    for redactor in (Redactor(None), Redactor(lambda span: span), Redactor(lambda span: mask(span) and make_span())):
        span = make_span()
        assert redactor(span) == (make_span(), None)


def test_one_that_changes_content_removes_ids_and_bodies_too():
    span = make_span()
    redacted, reason = Redactor(mask)(span)
    assert span == make_span()
    assert reason == "redacted"
    assert SECRET not in as_text(redacted)
    llm = redacted.llm
    assert llm is not None
    assert (llm.prompt_token_ids, llm.choices[0].response_token_ids, llm.choices[0].logprobs) == (b"", b"", None)
    assert (llm.request, llm.response, llm.choices[0].text) == (None, None, "it is [card]")
    assert "gen_ai.input.messages" not in orjson.loads(redacted.attributes)
    llm.error = None
    assert reasons(redacted) == (0, {"redacted": 1})


def test_a_part_that_is_left_over_goes_with_the_rest():
    def forgetful(span: Span) -> Span:
        assert span.llm is not None
        span.llm.choices[0].text = "it is [card]"
        return span

    redacted, _ = Redactor(forgetful)(make_span())
    assert redacted.llm is not None
    assert SECRET not in str(redacted.llm.request)
    assert SECRET not in str(redacted.llm.response)


@pytest.mark.parametrize("answer", ["raises", "text", None])
def test_one_that_fails_leaves_nothing_and_says_nothing(answer: str | None, caplog: pytest.LogCaptureFixture):
    def hook(span: Span) -> Span | None:
        if answer == "raises":
            raise ValueError(f"cannot parse {span.llm}")
        return answer  # type: ignore[return-value]

    with caplog.at_level(logging.DEBUG):
        redacted, reason = Redactor(hook)(make_span())
    assert reason == ("redacted" if answer is None else "redaction_failed")
    assert SECRET not in as_text(redacted)
    assert SECRET not in caplog.text
    assert orjson.loads(redacted.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 3,
        "headrace.withheld": reason,
    }
    assert redacted.llm is not None
    redacted.llm.error = None
    assert reasons(redacted) == (0, {reason: 1})


def test_what_a_call_is_cannot_be_changed():
    def hook(span: Span) -> Span:
        span.rollout_id = span.trace_id = span.span_id = "other"
        span.session_id = "pseudonym"
        return span

    redacted, reason = Redactor(hook)(make_span())
    assert (redacted.rollout_id, redacted.session_id, reason) == ("r", "pseudonym", None)
    assert redacted.llm == make_span().llm


def test_who_opts_out_is_not_trained_on_though_another_copy_has_the_tokens():
    span = withhold(make_span(), "opted_out")
    assert SECRET not in as_text(span)
    assert span.llm is not None
    span.llm.error = None
    assert reasons(span) == (0, {"opted_out": 1})


@pytest.mark.parametrize("name", ["x", "no.such.module:f", "headrace.streams.errors:nothing", "headrace:__name__", ":"])
def test_a_hook_that_cannot_be(name: str):
    with pytest.raises(SettingsError, match="gateway_redact"):
        load_hook(name)


def test_a_hook_by_name():
    assert load_hook("headrace.connectors.gateway.redaction:load_hook") is load_hook
    assert load_hook(None) is None
