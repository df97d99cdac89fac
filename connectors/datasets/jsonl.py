"""Tasks from a JSON Lines file: each line an object with `input` and what else a task may be given."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from headrace.schemas.records import TaskConfig
from headrace.streams.errors import HeadraceError
from headrace.streams.producing.specs import TaskFieldError, TaskSpec, check

SHOWN = 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLACE = re.compile(r"^(?P<detail>.*?) - at `(?:key in )?\$\.?(?P<path>.*)`$", re.DOTALL)
_NAMED = re.compile(r"(?:unknown|required) field `(?P<name>[^`]*)`")


class _Config(msgspec.Struct, forbid_unknown_fields=True):
    timeout_seconds: float | None = None
    unresponsive_seconds: float | None = None
    max_attempts: int = 1
    retry_condition: list[str] = []


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    input: msgspec.Raw
    rollout_id: str | None = None
    group_id: str | None = None
    mode: str | None = None
    resources_id: str | None = None
    config: _Config | None = None
    metadata: dict[str, str] = {}


@dataclass(frozen=True)
class BadLine:
    """A line that makes no task.

    Attributes:
        line: counts from 1.
        field: the field at fault, `line` where it is the line as a whole.
    """

    file: str
    line: int
    field: str
    detail: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.detail}"


class BadLinesError(HeadraceError):
    """A file with lines that make no task.

    Attributes:
        bad: the lines.
    """

    def __init__(self, bad: list[BadLine]) -> None:
        more = [f"and {len(bad) - SHOWN} more"] if len(bad) > SHOWN else []
        remedy = "nothing was produced; mend the file, or pass --skip-bad to produce its other lines"
        super().__init__("\n".join([*map(str, bad[:SHOWN]), *more, remedy]))
        self.bad = bad


@dataclass
class TaskLines:
    """What a file holds: its good lines with their numbers, and its bad ones."""

    specs: list[tuple[int, TaskSpec]] = field(default_factory=list[tuple[int, TaskSpec]])
    bad: list[BadLine] = field(default_factory=list[BadLine])


def read_task_lines(lines: Iterable[bytes], file: str, accept: Callable[[TaskSpec], object] | None = None) -> TaskLines:
    """Reads lines; blank ones are passed over.

    Args:
        lines: of the file, split at line feeds.
        file: its name, for messages.
        accept: looks at each spec too, and raises `HeadraceError` for one that it does not want.
    """
    found = TaskLines()
    first_line_of: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        if not text.strip():
            continue
        try:
            spec = parse_line(text)
            if spec.rollout_id is not None:
                first = first_line_of.setdefault(spec.rollout_id, number)
                if first != number:
                    raise TaskFieldError("rollout_id", f"{spec.rollout_id!r} stands on line {first} already")
            if accept:
                accept(spec)
        except TaskFieldError as error:
            found.bad.append(BadLine(file, number, error.field, error.detail))
        except HeadraceError as error:  # of `accept`: the task as a whole, which only its input can make too large
            found.bad.append(BadLine(file, number, "input", str(error)))
        else:
            found.specs.append((number, spec))
    return found


def parse_line(text: bytes) -> TaskSpec:
    """The spec of one line.

    Raises:
        TaskFieldError: names the field, or `line` where it is no JSON object.
    """
    try:
        line = msgspec.json.decode(text, type=_Line)
        # A raw value is only skipped over, so that it is read here for what is wrong inside it.
        msgspec.json.decode(line.input)
        input_text = bytes(line.input).decode()
    except msgspec.ValidationError as error:
        raise _field_error(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TaskFieldError("line", f"is no JSON: {error}") from error
    config = line.config and TaskConfig(
        timeout_seconds=line.config.timeout_seconds,
        unresponsive_seconds=line.config.unresponsive_seconds,
        max_attempts=line.config.max_attempts,
        retry_condition=line.config.retry_condition,
    )
    return check(
        TaskSpec(
            input=input_text,
            rollout_id=line.rollout_id,
            group_id=line.group_id,
            mode=line.mode,
            resources_id=line.resources_id,
            config=config,
            metadata=line.metadata,
        )
    )


def _field_error(message: str) -> TaskFieldError:
    place = _PLACE.match(message)
    path, detail = (place["path"].removesuffix("[...]"), place["detail"]) if place else ("", message)
    if named := _NAMED.search(detail):
        known = _Config if path == "config" else _Line
        path = f"{path}.{named['name']}" if path else named["name"]
        unknown = "unknown" in named[0]
        detail = f"is unknown; there are {', '.join(known.__struct_fields__)}" if unknown else "is missing"
    return TaskFieldError(path or "line", detail[:1].lower() + detail[1:])
