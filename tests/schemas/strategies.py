"""Random records of every type, drawn from the schemas."""

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from headrace.schemas import catalogue
from headrace.schemas.records import RECORDS, Record

LONGS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-200, 20_000))
SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "long": LONGS,
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "double": st.floats(allow_nan=False),
    "string": st.one_of(st.text(max_size=20), st.text(min_size=60, max_size=200)),
    "bytes": st.binary(max_size=100),
}


def values(schema: Any, known: dict[str, Any], tagged: bool = False) -> st.SearchStrategy[Any]:
    """Values of an Avro type, as fastavro takes them."""
    if isinstance(schema, list):
        several = sum(isinstance(s, dict) and s["type"] == "record" for s in schema) > 1
        return st.one_of(*(values(s, known, several) for s in schema))
    if isinstance(schema, str):
        return SIMPLE[schema] if schema in SIMPLE else values(known[schema.removeprefix("headrace.")], known)
    kind = schema["type"]
    if kind == "array":
        return st.lists(values(schema["items"], known), max_size=3)
    if kind == "map":
        return st.dictionaries(st.text(max_size=8), values(schema["values"], known), max_size=3)
    if kind == "record":
        known[schema["name"]] = schema
        fields = {f["name"]: values(f["type"], known) for f in schema["fields"]}
        if tagged:
            fields["-type"] = st.just(f"headrace.{schema['name']}")
        return st.fixed_dictionaries(fields)
    return SIMPLE[kind]


@cache
def records_of(name: str) -> st.SearchStrategy[Record]:
    """Records of a name."""
    return values(catalogue.current()[name].json, {}).map(lambda value: msgspec.convert(value, RECORDS[name]))
