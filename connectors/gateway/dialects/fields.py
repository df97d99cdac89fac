"""A client's JSON, read with its types checked: what does not fit is a 400 that names the parameter."""

import json
from typing import Any, cast

from headrace.connectors.gateway.errors import BAD_REQUEST, CallError


def invalid(param: str, message: str) -> CallError:
    """A parameter has a value that cannot be."""
    return CallError(BAD_REQUEST, "invalid_value", message, param=param or None)


def unsupported(param: str, message: str) -> CallError:
    """A parameter asks for what a gateway before an engine cannot do."""
    return CallError(BAD_REQUEST, "unsupported_parameter", message, param=param or None)


class Fields:
    """One JSON object of a request; a field that is null counts as absent.

    Attributes:
        where: its place in the request, `input[2]`; empty for the request itself.

    Raises:
        CallError: 400, from here and from every reader where a value has another type.
    """

    def __init__(self, value: Any, where: str = "") -> None:
        self.where = where
        if not isinstance(value, dict):
            raise self._wrong_type(where or "the body", "a JSON object")
        self.values = cast("dict[str, Any]", value)

    def path(self, name: str) -> str:
        """The place of a field."""
        return f"{self.where}.{name}" if self.where else name

    def text(self, name: str) -> str | None:
        """A string."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong_type(self.path(name), "a string")
        return value

    def needed_text(self, name: str) -> str:
        """A string that may not be absent or empty."""
        value = self.text(name)
        if not value:
            raise invalid(self.path(name), f"{self.path(name)} is required")
        return value

    def flag(self, name: str) -> bool | None:
        """true or false."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._wrong_type(self.path(name), "true or false")
        return value

    def count(self, name: str) -> int | None:
        """A whole number above zero."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong_type(self.path(name), "a whole number")
        if value < 1:
            raise invalid(self.path(name), f"{self.path(name)} must be at least 1, not {value}")
        return value

    def fields(self, name: str) -> "Fields | None":
        """An object."""
        value = self.values.get(name)
        return None if value is None else Fields(value, self.path(name))

    def listed(self, name: str) -> list["Fields"]:
        """A list of objects; empty where it is absent."""
        path = self.path(name)
        return [Fields(item, f"{path}[{i}]") for i, item in enumerate(self.array(name))]

    def array(self, name: str) -> list[Any]:
        """A list; empty where it is absent."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong_type(self.path(name), "a list")
        return cast("list[Any]", value)

    def json(self) -> str:
        """The object as JSON text, spaced as models write it."""
        try:
            return json.dumps(self.values, ensure_ascii=False)
        except RecursionError as error:
            raise invalid(self.where, f"{self.where} is nested too deeply") from error

    @staticmethod
    def _wrong_type(path: str, what: str) -> CallError:
        return CallError(BAD_REQUEST, "invalid_type", f"{path} must be {what}", param=path)


def content_of(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Chat content of parts: text where there is one text alone, else the parts."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def joined_content(first: Any, second: Any) -> Any:
    """The content of two messages as that of one."""
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return first + second
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
