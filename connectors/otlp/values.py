"""OTLP values as plain JSON, and back to AnyValue form where JSON would lose the type."""

import base64
import math
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


def plain(value: AnyValue) -> Any:
    """A value as JSON. Bytes and non-finite doubles keep AnyValue's own form; an empty value is None."""
    match value.WhichOneof("value"):
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            number = value.double_value
            return number if math.isfinite(number) else {"doubleValue": _double_name(number)}
        case "array_value":
            return [plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return plain_map(value.kvlist_value.values)
        case "bytes_value":
            return {"bytesValue": base64.b64encode(value.bytes_value).decode()}
        case _:
            return None


def plain_map(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes as a JSON object; of a key that comes twice the last value stands."""
    return {pair.key: plain(pair.value) for pair in pairs}


def _double_name(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"
