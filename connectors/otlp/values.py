"""OTLP values as plain JSON and back, without loss: AnyValue's own form stands where JSON would lose the type."""

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

BYTES, DOUBLE, LIST = "bytesValue", "doubleValue", "kvlistValue"
FORMS = frozenset({BYTES, DOUBLE, LIST})


def plain(value: AnyValue) -> Any:
    """A value as JSON. Bytes, non-finite doubles, and a map that looks like one of them keep AnyValue's own form.

    An empty value is None.
    """
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "int_value":
            return value.int_value
        case "double_value":
            number = value.double_value
            return number if math.isfinite(number) else {DOUBLE: _double_name(number)}
        case "bool_value":
            return value.bool_value
        case "array_value":
            return [item.int_value or plain(item) for item in value.array_value.values]  # token ids above all
        case "kvlist_value":
            found = plain_map(value.kvlist_value.values)
            return {LIST: found} if len(found) == 1 and not FORMS.isdisjoint(found) else found
        case "bytes_value":
            return {BYTES: base64.b64encode(value.bytes_value).decode()}
        case _:
            return None


def plain_map(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes as a JSON object; of a key that comes twice the last value stands."""
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        # Most values are text that is not empty, and nothing else gives one: it costs a third of the way through plain.
        found[pair.key] = value.string_value or plain(value)
    return found


def any_value(value: Any) -> AnyValue:
    """The OTLP value of a JSON value: the inverse of `plain`.

    An integer beyond 64 bits, which OTLP cannot hold, goes as a double.
    """
    match value:
        case str():
            return AnyValue(string_value=value)
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value) if -(2**63) <= value < 2**63 else AnyValue(double_value=float(value))
        case float():
            return AnyValue(double_value=value)
        case list():
            found = AnyValue()
            found.array_value.SetInParent()
            found.array_value.values.extend(any_value(item) for item in cast("list[Any]", value))
            return found
        case dict():
            return _map_value(cast("dict[str, Any]", value))
        case _:
            return AnyValue()


def key_values(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as OTLP has them: the inverse of `plain_map`."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def _map_value(fields: dict[str, Any]) -> AnyValue:
    if len(fields) == 1:
        [(form, inner)] = fields.items()
        try:
            if form == BYTES and isinstance(inner, str):
                return AnyValue(bytes_value=base64.b64decode(inner, validate=True))
            if form == DOUBLE and isinstance(inner, str):
                return AnyValue(double_value=float(inner))
        except ValueError:  # a map that another writer made, and that only looks like a form
            pass
        if form == LIST and isinstance(inner, dict):
            fields = cast("dict[str, Any]", inner)
    found = AnyValue()
    found.kvlist_value.SetInParent()
    found.kvlist_value.values.extend(key_values(fields))
    return found


def _double_name(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
