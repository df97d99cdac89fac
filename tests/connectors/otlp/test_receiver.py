"""`POST /v1/traces` as the OTLP specification has it: what is taken, what is refused, and how it is said."""

import asyncio
import gzip
import json
import zlib
from collections.abc import Mapping

import pytest
from google.protobuf.json_format import Parse
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from headrace.connectors.otlp.answer import JSON, PROTOBUF, Answer
from headrace.connectors.otlp.decode import MALFORMED
from headrace.connectors.otlp.letters import ONE_BY_ONE
from tests.connectors.otlp.drawn import START, otlp_json, requests
from tests.connectors.otlp.memory import MemoryReceiver

TRACE = bytes(range(16))


def request_of(count: int = 2, *, bad: int = 0) -> ExportTraceServiceRequest:
    """A request of good spans, and bad ones before them."""
    request = ExportTraceServiceRequest()
    scope_spans = request.resource_spans.add().scope_spans.add()
    for number in range(1, bad + count + 1):
        scope_spans.spans.add(
            trace_id=TRACE,
            span_id=number.to_bytes(8 if number > bad else 7, "big"),
            name=f"span {number}",
            start_time_unix_nano=START,
            end_time_unix_nano=START + number,
        )
    return request


def ask(receiver: MemoryReceiver, body: bytes | str, content_type: str = PROTOBUF, **headers: str) -> Answer:
    sent: Mapping[str, str] = {
        "content-type": content_type,
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    return asyncio.run(receiver.receiver.handle(sent, body.encode() if isinstance(body, str) else body))


def response(answer: Answer) -> ExportTraceServiceResponse:
    """The body of an answer, in whichever content type."""
    found = ExportTraceServiceResponse()
    if answer.headers["content-type"] == JSON:
        return Parse(answer.body, found)
    found.ParseFromString(answer.body)
    return found


def status(answer: Answer) -> Status:
    found = Status()
    if answer.headers["content-type"] == JSON:
        return Parse(answer.body, found)
    found.ParseFromString(answer.body)
    return found


@pytest.fixture
def receiver() -> MemoryReceiver:
    return MemoryReceiver()


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON, "application/json; charset=utf-8", "Application/JSON"])
def test_a_request_is_taken_in_both_encodings(receiver: MemoryReceiver, content_type: str):
    binary = content_type == PROTOBUF
    body = request_of().SerializeToString() if binary else otlp_json(request_of())
    answer = ask(receiver, body, content_type)
    assert (answer.status, answer.body) == (200, b"" if binary else b"{}")
    assert answer.headers["content-type"] == (PROTOBUF if binary else JSON)
    assert [span.name for span in receiver.spans] == ["span 1", "span 2"]
    assert receiver.producer.sent[0].key == TRACE.hex().encode()
    assert dict(receiver.producer.sent[0].headers)["traceparent"] == f"00-{TRACE.hex()}-{1:016x}-01"


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body, wbits=-15)),
        ("identity", bytes),
        ("GZIP", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
    ],
)
def test_bodies_are_decompressed(receiver: MemoryReceiver, encoding: str, compress):
    assert ask(receiver, compress(request_of().SerializeToString()), content_encoding=encoding).status == 200
    assert len(receiver.spans) == 2


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_bad_spans_are_refused_alone_and_told(receiver: MemoryReceiver, content_type: str):
    request = request_of(3, bad=2)
    body = request.SerializeToString() if content_type == PROTOBUF else otlp_json(request)
    answer = ask(receiver, body, content_type)
    assert answer.status == 200
    told = response(answer).partial_success
    assert told.rejected_spans == 2
    assert "span_id must be 8 bytes" in told.error_message
    assert len(receiver.spans) == 3
    letters = receiver.letters
    assert len(letters) == 2
    assert dict(letters[0].headers)["headrace.reason"] == MALFORMED
    assert dict(letters[0].headers)["content-type"] == content_type
    assert receiver.receiver.counters == {"requests": 1, "spans": 3, "rewards": 0, MALFORMED: 2}
    # What stands in a letter can be sent again as it is.
    assert letters[0].value is not None
    again = ask(MemoryReceiver(), letters[0].value, content_type)
    assert response(again).partial_success.rejected_spans == 1


def test_a_flood_of_bad_spans_makes_few_letters(receiver: MemoryReceiver):
    answer = ask(receiver, request_of(1, bad=3 * ONE_BY_ONE).SerializeToString())
    assert response(answer).partial_success.rejected_spans == 3 * ONE_BY_ONE
    assert len(receiver.letters) == ONE_BY_ONE + 1
    longest = max((letter.value or b"" for letter in receiver.letters), key=len)  # they are written side by side
    rest = ExportTraceServiceRequest.FromString(longest)
    assert len(rest.resource_spans[0].scope_spans[0].spans) == 2 * ONE_BY_ONE


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (b"\xff\xff", {}, 400),
        (b"{", {"content_type": JSON}, 400),
        (b'{"resourceSpans": 5}', {"content_type": JSON}, 400),
        (b'{"resourceLogs": []}', {"content_type": JSON}, 400),
        (b"no gzip", {"content_encoding": "gzip"}, 400),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], {"content_encoding": "gzip"}, 400),
        (b"", {"content_encoding": "gzip"}, 400),
        (b"", {"content_encoding": "br"}, 415),
        (b"", {"content_type": "text/plain"}, 415),
        (b"", {"content_type": ""}, 415),
        (b"", {"x_rollout_id": "a~2"}, 400),
        (b"x" * 3000, {}, 413),
        (gzip.compress(bytes(10_000_000), mtime=0), {"content_encoding": "gzip"}, 413),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_status(body: bytes, headers: dict[str, str], code: int):
    receiver = MemoryReceiver(otlp_max_body_bytes=2000)
    answer = ask(receiver, body, **headers)
    assert (answer.status, receiver.producer.sent) == (code, [])
    assert status(answer).message
    assert status(answer).code
    assert "retry-after" not in answer.headers
    assert answer.headers["content-type"] == (PROTOBUF if headers.get("content_type", PROTOBUF) == PROTOBUF else JSON)


@pytest.mark.parametrize("trouble", ["failing", "silent"])
def test_nothing_is_acknowledged_that_the_brokers_do_not_have(trouble: str):
    receiver = MemoryReceiver(otlp_broker_wait=0.05)
    setattr(receiver.producer, trouble, True)
    answer = ask(receiver, request_of().SerializeToString())
    assert (answer.status, int(answer.headers["retry-after"])) == (503, 2)
    assert status(answer).message
    setattr(receiver.producer, trouble, False)
    assert ask(receiver, request_of().SerializeToString()).status == 200


def test_too_much_in_hand_is_put_off():
    receiver = MemoryReceiver(otlp_broker_wait=5, otlp_max_in_hand_bytes=1024)
    receiver.producer.silent = True
    body = request_of(20).SerializeToString()

    async def two() -> Answer:
        first = asyncio.create_task(receiver.receiver.handle({"content-type": PROTOBUF}, body))
        await asyncio.sleep(0)
        second = await receiver.receiver.handle({"content-type": PROTOBUF}, body)
        first.cancel()
        return second

    answer = asyncio.run(two())
    assert (answer.status, answer.headers["retry-after"]) == (429, "2")
    receiver.producer.silent = False
    assert ask(receiver, body).status == 200  # what was given up is in hand no more


def test_a_span_above_the_limit_is_refused_alone():
    receiver = MemoryReceiver(otlp_max_span_bytes=100_000)
    request = request_of(2)
    request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="image").value.string_value = "x" * 200_000
    answer = ask(receiver, request.SerializeToString())
    told = response(answer).partial_success
    assert (answer.status, told.rejected_spans, len(receiver.spans)) == (200, 1, 1)
    assert "otlp_max_span_bytes" in told.error_message
    [letter] = receiver.letters
    assert dict(letter.headers)["headrace.reason"] == "span_too_large"
    assert b"x" * 200_000 in (letter.value or b"")


def test_rewards_in_spans_become_records_and_refused_values_are_told(receiver: MemoryReceiver):
    request = request_of(2)
    good, bad = request.resource_spans[0].scope_spans[0].spans
    good.attributes.add(key="agentlightning.reward.0.value").value.double_value = 0.5
    bad.attributes.add(key="agentlightning.reward.0.value").value.double_value = float("nan")
    told = response(ask(receiver, request.SerializeToString())).partial_success
    assert (told.rejected_spans, told.error_message) == (0, "1 reward values refused: non_finite_reward")
    assert len(receiver.spans) == 2
    assert [reward.value for reward in receiver.rewards] == [0.5]
    assert receiver.receiver.counters["non_finite_reward"] == 1


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3),
    max_leaves=8,
)
like_otlp = st.fixed_dictionaries(
    {
        "resourceSpans": anything
        | st.lists(
            st.fixed_dictionaries(
                {
                    "resource": anything,
                    "scopeSpans": anything
                    | st.lists(
                        st.fixed_dictionaries(
                            {
                                "scope": anything,
                                "spans": anything
                                | st.lists(
                                    st.fixed_dictionaries(
                                        {"traceId": anything, "spanId": st.just("00000000000000a1") | anything},
                                        optional={
                                            "name": anything,
                                            "attributes": anything,
                                            "links": anything,
                                            "startTimeUnixNano": anything,
                                            "status": anything,
                                        },
                                    )
                                ),
                            }
                        )
                    ),
                }
            )
        )
    }
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A request of which some bytes are others, missing or too many."""
    body = bytearray(draw(requests).SerializeToString())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(body)


def assert_answered(answer: Answer) -> None:
    assert answer.status in (200, 400)
    if answer.status == 200:
        response(answer)
    else:
        assert status(answer).message


@settings(max_examples=50)
@given(st.binary(max_size=200) | broken(), st.sampled_from([PROTOBUF, JSON]))
def test_no_bytes_break_it(body: bytes, content_type: str):
    assert_answered(ask(MemoryReceiver(), body, content_type))


@settings(max_examples=20)
@given(like_otlp)
def test_no_json_breaks_it(value: object):
    assert_answered(ask(MemoryReceiver(), json.dumps(value), JSON))


@settings(max_examples=25)
@given(st.data())
def test_bad_spans_never_cost_good_ones(data: st.DataObject):
    """Each bad span is a good one of which something is broken; text that is no UTF-8 included."""
    receiver = MemoryReceiver()
    request = request_of(6)
    spans = request.resource_spans[0].scope_spans[0].spans
    marks = data.draw(st.lists(st.sampled_from(["", "id", "trace", "parent", "time", "unit", "utf8"]), min_size=6))[:6]
    for span, mark in zip(spans, marks, strict=True):
        match mark:
            case "id":
                span.span_id = data.draw(st.binary(max_size=7))
            case "trace":
                span.trace_id = data.draw(st.binary(max_size=15))
            case "parent":
                span.parent_span_id = b"\1" * data.draw(st.integers(1, 7))
            case "time":
                span.end_time_unix_nano = START - 1
            case "unit":
                span.start_time_unix_nano //= data.draw(st.sampled_from([10**3, 10**6, 10**9]))
            case "utf8":
                span.attributes.add(key="k").value.string_value = "break-me"
            case _:
                pass
    answer = ask(receiver, request.SerializeToString().replace(b"break-me", b"\xffreak-me"))
    bad = sum(bool(mark) for mark in marks)
    assert (answer.status, len(receiver.spans), len(receiver.letters)) == (200, 6 - bad, bad)
    assert response(answer).partial_success.rejected_spans == bad


def test_a_span_of_a_few_bytes_makes_no_flood_of_rewards(receiver: MemoryReceiver):
    request = request_of(2)
    bomb = request.resource_spans[0].scope_spans[0].spans[0]
    bomb.attributes.add(key="agentlightning.link.0.key_match").value.string_value = "k"
    bomb.attributes.add(key="agentlightning.link.0.value_match").value.string_value = "x" * 10_000
    for number in range(200):
        bomb.attributes.add(key=f"agentlightning.reward.{number}.value").value.double_value = 0.5
    told = response(ask(receiver, request.SerializeToString())).partial_success
    assert (told.rejected_spans, len(receiver.spans), receiver.rewards) == (1, 1, [])
    assert "its 200 rewards take" in told.error_message
