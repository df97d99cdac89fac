"""Writes `records.py`, `wire/` and `fingerprints.json` from the `.avsc` files: `python -m headrace.schemas.generate`.

The field lists stand in the schemas alone; the typed records are derived, and a test holds that they are up to date.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from headrace.schemas import catalogue, claim_check
from headrace.schemas.generate_wire import generate_wire, kind_of, module_name

ROOT = Path(__file__).resolve().parents[1]
AVRO = Path(__file__).parent / "avro"
RECORDS = Path(__file__).parent / "records.py"
WIRE = Path(__file__).parent / "wire"

PRIMITIVES = {
    "string": "str",
    "long": "int",
    "int": "int",
    "double": "float",
    "boolean": "bool",
    "bytes": "bytes",
    "null": "None",
}
HEADER = '''"""Typed records, one for each Avro record. Generated from the `.avsc` files."""

from typing import ClassVar

import msgspec


class Record(msgspec.Struct, kw_only=True):
    """A record of a topic. `SCHEMA` names its Avro schema.

    Records hold values alone, so none can stand in a cycle, and the garbage collector tracks none (`gc=False`).
    """

    SCHEMA: ClassVar[str] = ""


class Part(msgspec.Struct, kw_only=True):
    """A record that stands inside others."""
'''


class Generator:
    """Collects classes in dependency order; a record that several schemas spell out must be the same in all of them."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}
        self.definitions: dict[str, Any] = {}
        self.tagged: set[str] = set()

    def type_of(self, schema: Any) -> str:
        """The Python type of an Avro type."""
        if isinstance(schema, str):
            return PRIMITIVES.get(schema, schema)
        if isinstance(schema, list):
            members = cast(list[Any], schema)
            names = [self.type_of(s) for s in members if s != "null"]
            return " | ".join([*names, "None"] if "null" in members else names)
        kind = schema["type"]
        if kind == "array":
            return f"list[{self.type_of(schema['items'])}]"
        if kind == "map":
            return f"dict[str, {self.type_of(schema['values'])}]"
        if kind == "record":
            self.add(schema, "Part")
            return schema["name"]
        return PRIMITIVES[kind]

    def default_of(self, schema: Any, default: Any) -> str:
        """The default of a field as Python source."""
        kind = kind_of(schema)
        if kind == "bytes":
            return repr(default.encode("latin-1"))
        if kind == "record":
            return f"msgspec.field(default_factory=lambda: {schema['name']}({self._arguments(default)}))"
        if isinstance(default, list):
            return "[]"  # msgspec copies an empty literal for each record
        if isinstance(default, dict):
            return "{}"
        return repr(default)

    @staticmethod
    def _arguments(default: dict[str, Any]) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in default.items() if value not in (None, [], {}))

    def add(self, schema: dict[str, Any], base: str) -> None:
        """Writes the class of a record, after the classes that its fields need."""
        name = schema["name"]
        fields = {f["name"]: f["type"] for f in schema["fields"]}
        known = self.definitions.setdefault(name, fields)
        if name in self.classes:
            if list(known) != list(fields):
                raise ValueError(f"{name} is spelled in two ways; make its fields equal in every .avsc")
            return
        lines: list[str] = []
        for field in schema["fields"]:
            line = f"    {field['name']}: {self.type_of(field['type'])}"
            if "default" in field:
                line += f" = {self.default_of(field['type'], field['default'])}"
            if "doc" in field:
                line += f"  # {field['doc']}"
            lines.append(line)
        tag = f', tag="headrace.{name}", tag_field="-type"' if name in self.tagged else ""
        schema_line = f'    SCHEMA: ClassVar[str] = "{name}"\n' if base == "Record" else ""
        self.classes[name] = (
            f'class {name}({base}, kw_only=True, gc=False{tag}):\n    """{schema.get("doc", "")}"""\n\n{schema_line}'
            + "\n".join(lines)
        )

    def find_tagged(self, schema: Any) -> None:
        """Records that stand in a union of several records are told apart by a tag."""
        if isinstance(schema, list):
            members = cast(list[Any], schema)
            records = [cast(dict[str, Any], s) for s in members if isinstance(s, dict)]
            records = [r for r in records if r["type"] == "record"]
            if len(records) > 1:
                self.tagged.update(r["name"] for r in records)
            for s in members:
                self.find_tagged(s)
        elif isinstance(schema, dict):
            known = cast(dict[str, Any], schema)
            for field in known.get("fields", []):
                self.find_tagged(field["type"])
            for key in ("items", "values"):
                self.find_tagged(known.get(key))


def generate_records(schemas: list[dict[str, Any]]) -> str:
    """The source of `records.py`."""
    generator = Generator()
    for schema in schemas:
        generator.find_tagged(schema)
    for schema in schemas:
        generator.add(schema, "Record")
    names = ", ".join(f'"{s["name"]}": {s["name"]}' for s in schemas)
    return (
        "\n\n".join([HEADER, *(c + "\n" for c in generator.classes.values())])
        + f"\n\nRECORDS: dict[str, type[Record]] = {{{names}}}\n"
    )


def formatted(source: str) -> str:
    """Source as ruff writes it."""
    command = [sys.executable, "-m", "ruff", "format", "--config", str(ROOT / "pyproject.toml"), "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def generate() -> dict[Path, str]:
    """The generated files with their content."""
    schemas = [json.loads(path.read_text()) for path in sorted(AVRO.glob("*.avsc"))]
    files = {RECORDS: formatted(generate_records(schemas))}
    for schema in schemas:
        files[WIRE / f"{module_name(schema['name'])}.py"] = formatted(generate_wire(schema))
    files[catalogue.FINGERPRINTS] = fingerprints()
    return files


def fingerprints() -> str:
    """The fingerprints of all schemas, current and released, by the SHA-256 of their text.

    Computing one takes milliseconds, at the start of every process; `catalogue` computes those that are not here.
    """
    texts = [s.text for s in [*catalogue.released(), *catalogue.current().values(), claim_check.SCHEMA]]
    table = {catalogue.sha256(text): catalogue.computed_fingerprint(text).hex() for text in texts}
    return json.dumps(dict(sorted(table.items())), indent=1) + "\n"


if __name__ == "__main__":
    for path, source in generate().items():
        path.write_text(source)
