"""Writes `wire/`, the Avro binary coding of each record as plain Python: `python -m headrace.schemas.generate`.

A general Avro library walks the schema for every value, and tries the branches of each union. Code written out for a
schema costs a third of that (`tests/bench/codec.py`), and builds the typed record without a dict between. Bytes are
those of the Avro specification 1.12, "Binary Encoding"; a test holds them equal to fastavro's for every record.
"""

import re
from itertools import groupby
from typing import Any, cast

HEADER = '''"""The Avro binary coding of a {name}. Generated from the `.avsc` files."""

from collections.abc import Callable
from typing import Any

from headrace.schemas import records as r
from headrace.schemas.varint import {helpers}

Put = Callable[[bytes], object]
'''
HELPERS = ("DOUBLE", "DOUBLES", "LIMIT", "SIGNED", "SMALL", "WireError", "long", "read_length", "read_long")


def runs_of_doubles(fields: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Fields in groups: neighbours that are doubles together, since one call codes them all, any other field alone."""
    groups: list[list[dict[str, Any]]] = []
    for is_double, neighbours in groupby(fields, lambda f: f["type"] == "double"):
        group = list(neighbours)
        groups += [group] if is_double else [[field] for field in group]
    return groups


def kind_of(schema: Any) -> str:
    """The name of a type that is no union: a primitive's, `array`, `map` or `record`."""
    return cast(dict[str, str], schema)["type"] if isinstance(schema, dict) else schema


def place(skip: int) -> str:
    """Where a value begins that stands `skip` bytes behind the place that is read."""
    return f"p + {skip}" if skip else "p"


class Block:
    """Lines of source at a depth of indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"


class WireGenerator:
    """One reader and one writer a record, and dispatch by type."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self.known: dict[str, dict[str, Any]] = {}

    def add(self, schema: dict[str, Any]) -> None:
        name = schema["name"]
        if name in self.functions:
            return
        self.known[name] = schema
        self.functions[name] = ""  # holds the place; nested records follow
        self.functions[name] = self._writer(schema) + "\n\n\n" + self._reader(schema)

    def _record(self, schema: Any) -> str | None:
        """The name of a record type, else None."""
        if isinstance(schema, dict):
            record = cast(dict[str, Any], schema)
            if record["type"] != "record":
                return None
            self.add(record)
            return record["name"]
        return schema if isinstance(schema, str) and schema in self.known else None

    # Writing

    def _writer(self, schema: dict[str, Any]) -> str:
        block = Block()
        for fields in runs_of_doubles(schema["fields"]):
            if len(fields) > 1:
                block.add(f"put(DOUBLES[{len(fields)}].pack({', '.join('x.' + f['name'] for f in fields)}))")
            else:
                self._write(block, fields[0]["type"], f"x.{fields[0]['name']}")
        return f"def write_{schema['name']}(x: r.{schema['name']}, put: Put) -> None:\n" + "\n".join(block.lines)

    def _write_long(self, block: Block, value: str) -> None:
        block.add(f"put(SMALL[{value}] if 0 <= {value} < LIMIT else long({value}))")

    def _write(self, block: Block, schema: Any, value: str) -> None:
        record = self._record(schema)
        if record:
            block.add(f"write_{record}({value}, put)")
            return
        if isinstance(schema, list):
            self._write_union(block, cast(list[Any], schema), value)
            return
        kind = kind_of(schema)
        if kind in ("string", "bytes"):
            text = block.name("b")
            block.add(f"{text} = {value}" + (".encode()" if kind == "string" else ""))
            size = block.name("n")
            block.add(f"{size} = len({text})")
            block.add(f"put(SMALL[{size}] if {size} < LIMIT else long({size}))")
            block.add(f"put({text})")
        elif kind in ("long", "int"):
            number = block.name("i")
            block.add(f"{number} = {value}")
            self._write_long(block, number)
        elif kind == "double":
            block.add(f"put(DOUBLE.pack({value}))")
        elif kind == "boolean":
            block.add(f'put(b"\\1" if {value} else b"\\0")')
        else:
            self._write_block(block, cast(dict[str, Any], schema), value)

    def _write_union(self, block: Block, schema: list[Any], value: str) -> None:
        item = block.name("u")
        block.add(f"{item} = {value}")
        names = [s for s in schema if s != "null"]
        if len(names) == 1:
            block.add(f"if {item} is None:")
            block.add('    put(b"\\0")')
            block.add("else:")
            block.depth += 1
            block.add('put(b"\\2")')
            self._write(block, names[0], item)
            block.depth -= 1
            return
        for index, branch in enumerate(schema):
            record = self._record(branch)
            last = index == len(schema) - 1
            block.add("else:" if last else f"{'if' if index == 0 else 'elif'} isinstance({item}, r.{record}):")
            block.add(f"    put(SMALL[{index}])")
            block.add(f"    write_{record}({item}, put)")

    def _write_block(self, block: Block, schema: dict[str, Any], value: str) -> None:
        items = block.name("s")
        block.add(f"{items} = {value}")
        block.add(f"if {items}:")
        block.depth += 1
        size = block.name("n")
        block.add(f"{size} = len({items})")
        self._write_long(block, size)
        item = block.name("v")
        if schema["type"] == "map":
            key = block.name("k")
            block.add(f"for {key}, {item} in {items}.items():")
            block.depth += 1
            self._write(block, "string", key)
            self._write(block, schema["values"], item)
        else:
            block.add(f"for {item} in {items}:")
            block.depth += 1
            self._write(block, schema["items"], item)
        block.depth -= 2
        block.add('put(b"\\0")')

    # Reading

    def _reader(self, schema: dict[str, Any]) -> str:
        name = schema["name"]
        block = Block()
        values: list[str] = []
        for fields in runs_of_doubles(schema["fields"]):
            targets = [block.name("f") for _ in fields]
            if len(fields) > 1:
                block.add(f"{', '.join(targets)} = DOUBLES[{len(fields)}].unpack_from(b, p)")
                block.add(f"p += {8 * len(fields)}")
            else:
                self._read(block, fields[0]["type"], targets[0])
            values += [f"{field['name']}={target}" for field, target in zip(fields, targets, strict=True)]
        block.add(f"return r.{name}({', '.join(values)}), p")
        return f"def read_{name}(b: bytes, p: int) -> tuple[r.{name}, int]:\n" + "\n".join(block.lines)

    def _read_long(self, block: Block, target: str, skip: int = 0) -> None:
        block.add(f"{target} = b[{place(skip)}]")
        block.add(f"p += {1 + skip}")
        block.add(f"if {target} > 127:")
        block.add(f"    {target}, p = read_long(b, p, {target})")
        block.add("else:")
        block.add(f"    {target} = SIGNED[{target}]")

    def _read_text(self, block: Block, kind: str, target: str, skip: int) -> None:
        """Lengths of one and two bytes are read in place: a call costs as much as all the rest."""
        decode = ".decode()" if kind == "string" else ""
        size, more, begin = block.name("n"), block.name("m"), block.name("q")
        block.add(f"{size} = b[{place(skip)}]")
        block.add(f"if not {size} & 0x81:")
        block.add(f"    {begin} = p + {1 + skip}")
        block.add(f"    p = {begin} + ({size} >> 1)")
        block.add(f"    {target} = b[{begin}:p]{decode}")
        block.add(f"elif not {size} & 1 and ({more} := b[p + {1 + skip}]) < 128:")
        block.add(f"    {begin} = p + {2 + skip}")
        block.add(f"    p = {begin} + ({size} >> 1 & 0x3F | {more} << 6)")
        block.add(f"    {target} = b[{begin}:p]{decode}")
        block.add("else:")
        block.add(f"    {size}, p = read_length(b, p + {1 + skip}, {size})")
        block.add(f"    {target} = b[p : p + {size}]{decode}")
        block.add(f"    p += {size}")

    def _read(self, block: Block, schema: Any, target: str, skip: int = 0) -> None:
        """Reads a value that begins `skip` bytes behind `p`."""
        record = self._record(schema)
        if record:
            block.add(f"{target}, p = read_{record}(b, {place(skip)})")
            return
        if isinstance(schema, list):
            self._read_union(block, cast(list[Any], schema), target)
            return
        kind = kind_of(schema)
        if kind in ("string", "bytes"):
            self._read_text(block, kind, target, skip)
        elif kind in ("long", "int"):
            self._read_long(block, target, skip)
        elif kind == "double":
            block.add(f"{target} = DOUBLE.unpack_from(b, {place(skip)})[0]")
            block.add(f"p += {8 + skip}")
        elif kind == "boolean":
            block.add(f"{target} = b[{place(skip)}] == 1")
            block.add(f"p += {1 + skip}")
        else:
            if skip:
                block.add(f"p += {skip}")
            self._read_block(block, cast(dict[str, Any], schema), target)

    def _read_union(self, block: Block, schema: list[Any], target: str) -> None:
        branch = block.name("u")
        block.add(f"{branch} = b[p]")
        if "null" in schema:
            block.add(f"if not {branch}:")
            block.add(f"    {target} = None")
            block.add("    p += 1")
            block.add(f"elif {branch} == 2:")
            block.depth += 1
            self._read(block, next(s for s in schema if s != "null"), target, 1)
            block.depth -= 1
        else:
            for index, member in enumerate(schema):
                block.add(f"{'if' if index == 0 else 'elif'} {branch} == {2 * index}:")
                block.depth += 1
                self._read(block, member, target, 1)
                block.depth -= 1
        block.add("else:")
        block.add(f'    raise WireError(f"no branch {{{branch}}} in this union")')

    def _read_block(self, block: Block, schema: dict[str, Any], target: str) -> None:
        is_map = schema["type"] == "map"
        block.add(f"{target}: Any = {'{}' if is_map else '[]'}")
        size = block.name("n")
        block.add("while True:")
        block.depth += 1
        self._read_long(block, size)
        block.add(f"if {size} == 0:")
        block.add("    break")
        block.add(f"if {size} < 0:")
        block.add(f"    {size} = -{size}")
        block.add("    _, p = read_long(b, p + 1, b[p])")
        block.add(f"for _ in range({size}):")
        block.depth += 1
        item = block.name("v")
        if is_map:
            key = block.name("k")
            self._read(block, "string", key)
            self._read(block, schema["values"], item)
            block.add(f"{target}[{key}] = {item}")
        else:
            self._read(block, schema["items"], item)
            block.add(f"{target}.append({item})")
        block.depth -= 2


def module_name(record: str) -> str:
    """The module of a record's coding: `AttemptEvent` is in `attempt_event`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", record).lower()


def generate_wire(schema: dict[str, Any]) -> str:
    """The source of one record's module. Parts that several records share are written out in each of them."""
    generator = WireGenerator()
    generator.add(schema)
    code = "\n\n\n".join(generator.functions.values())
    helpers = [name for name in HELPERS if re.search(rf"\b{name}\b", code)]
    header = HEADER.format(name=schema["name"], helpers=", ".join(helpers))
    if "Any" not in code:
        header = header.replace("from typing import Any\n", "")
    return f"{header}\n\n{code}\n\n\nWRITE = write_{schema['name']}\nREAD = read_{schema['name']}\n"
