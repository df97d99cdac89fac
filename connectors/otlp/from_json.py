"""OTLP/JSON as messages. Source: "OTLP Specification", JSON Protobuf Encoding: ids are hexadecimal, not base64."""

import base64
import binascii
from collections.abc import Iterator
from typing import Any, TypeVar, cast

from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message import Message
from opentelemetry.proto.trace.v1.trace_pb2 import Span as OtlpSpan

from headrace.connectors.otlp.record import Malformed

M = TypeVar("M", bound=Message)
# The parser trips over some wrong types, and over what is nested too deeply.
UNREADABLE = (ParseError, TypeError, AttributeError, ValueError, RecursionError)


def parsed(fields: Any, message: M) -> M:
    """A message from its JSON; fields that it does not know are passed over, as OTLP demands.

    Raises:
        Malformed: the JSON does not fit.
    """
    try:
        return ParseDict({} if fields is None else fields, message, ignore_unknown_fields=True)
    except UNREADABLE as error:
        raise Malformed(str(error)[:500]) from error
    except SystemError as error:  # the parser's account of a UnicodeEncodeError
        raise Malformed("the name of a field is no UTF-8") from error


def parsed_span(fields: Any) -> OtlpSpan:
    """A span from its JSON.

    Raises:
        Malformed: the JSON does not fit.
    """
    if not isinstance(fields, dict):
        raise Malformed("a span is a JSON object")
    span = dict(cast("dict[str, Any]", fields))
    for key in ("traceId", "spanId", "parentSpanId"):
        span[key] = _base64(span.get(key))
    links = span.get("links")
    if isinstance(links, list):
        span["links"] = [_link(link) for link in cast("list[Any]", links)]
    return parsed(span, OtlpSpan())


def objects(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """The objects in a list of an object.

    Raises:
        Malformed: something else stands there.
    """
    if not isinstance(value, dict):
        raise Malformed(f"expected an object with {key}")
    below = cast("dict[str, Any]", value).get(key)
    if below is not None and not isinstance(below, list):
        raise Malformed(f"{key} must be a list")
    for item in cast("list[Any]", below or []):
        if not isinstance(item, dict):
            raise Malformed(f"{key} must hold objects")
        yield cast("dict[str, Any]", item)


def _link(fields: Any) -> Any:
    if not isinstance(fields, dict):
        return fields
    link = dict(cast("dict[str, Any]", fields))
    for key in ("traceId", "spanId"):
        link[key] = _base64(link.get(key))
    return link


def _base64(value: Any) -> str:
    """A hexadecimal id as protobuf's JSON wants bytes."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str):
        raise Malformed("ids are hexadecimal text")
    try:
        return base64.b64encode(binascii.unhexlify(value)).decode()
    except (binascii.Error, ValueError) as error:
        raise Malformed(f"{value[:40]!r} is no hexadecimal id") from error
