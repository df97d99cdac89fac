"""Answers to export requests, in the request's own content type. Source: "OTLP Specification", OTLP/HTTP Response."""

from typing import NamedTuple

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

PROTOBUF, JSON = "application/x-protobuf", "application/json"
OK, BAD_REQUEST, NOT_FOUND, METHOD_NOT_ALLOWED, TOO_LARGE, UNSUPPORTED = 200, 400, 404, 405, 413, 415
TOO_SLOW, TOO_MANY, UNAVAILABLE = 408, 429, 503
# https://grpc.io/docs/guides/status-codes: INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, RESOURCE_EXHAUSTED,
# UNIMPLEMENTED, UNAVAILABLE
_CODES = {
    BAD_REQUEST: 3,
    NOT_FOUND: 5,
    METHOD_NOT_ALLOWED: 12,
    TOO_LARGE: 8,
    UNSUPPORTED: 3,
    TOO_SLOW: 4,
    TOO_MANY: 8,
    UNAVAILABLE: 14,
}
_TAKEN = {PROTOBUF: b"", JSON: b"{}"}


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes


def taken(content_type: str, rejected: int = 0, message: str = "") -> Answer:
    """The request was taken, but for `rejected` of its spans; a message alone is a warning."""
    if not rejected and not message:
        return Answer(OK, {"content-type": content_type}, _TAKEN[content_type])
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = rejected
    response.partial_success.error_message = message
    return Answer(OK, {"content-type": content_type}, _body(response, content_type))


def refused(content_type: str, status: int, message: str, retry_after: int | None = None) -> Answer:
    """Nothing of the request was taken.

    Args:
        retry_after: seconds; only where the same request may be taken later.
    """
    headers = {"content-type": content_type}
    if retry_after is not None:
        headers["retry-after"] = str(retry_after)
    return Answer(status, headers, _body(Status(code=_CODES[status], message=message), content_type))


def _body(message: Message, content_type: str) -> bytes:
    if content_type == JSON:
        return MessageToJson(message, indent=None).encode()
    return message.SerializeToString()
