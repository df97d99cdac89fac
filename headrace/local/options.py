"""Keys of a pipeline file as flags of the command that they are for: what the command knows is what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast

from headrace.local.errors import PipelineError

GIVEN = frozenset({"help", "verbose", "json", "bootstrap", "prefix", "registry", "registry_url", "worker_id"})
"""What the pipeline itself decides."""


class CommandOptions:
    """The options of `headrace COMMAND...`.

    Args:
        command: words after `headrace`.
        where: of the file, for messages, such as `trainer`.
    """

    def __init__(self, command: Sequence[str], where: str) -> None:
        self.command = tuple(command)
        self._where = where
        self._leaf = _leaf(self.command)
        self._parameters = {_key(p): p for p in self._leaf.params}

    @property
    def allowed(self) -> list[str]:
        """The keys that may be given."""
        return sorted(set(self._parameters) - GIVEN)

    def has(self, key: str) -> bool:
        """Whether the command takes such a key, given by the file or by the pipeline."""
        return key in self._parameters

    def argv(self, options: Mapping[str, Any], given: Mapping[str, Any], more: Sequence[str] = ()) -> tuple[str, ...]:
        """The words after `headrace`, checked as the command itself will check them.

        Args:
            options: of the file.
            given: by the pipeline, where the command takes them and the file has none.
            more: words that are handed on as they are.

        Raises:
            PipelineError: the command does not take them.
        """
        for key in options:
            if key not in self._parameters or key in GIVEN:
                raise PipelineError(self._unknown(key))
        known = {k: v for k, v in given.items() if k in self._parameters and v is not None}
        values = {**known, **options}
        missing = [key for key, parameter in self._parameters.items() if parameter.required and key not in values]
        if missing:
            raise PipelineError(f"{self._where}: `headrace {' '.join(self.command)}` needs {', '.join(missing)}")
        words: list[str] = []
        arguments: list[str] = []
        for key, parameter in self._parameters.items():
            if key not in values:
                continue
            if parameter.param_type_name == "argument":
                arguments += _texts(values[key])
            else:
                words += self._flag(key, parameter, values[key])
        words += more
        self._check([*arguments, *words])
        return (*self.command, *arguments, *words)

    def _flag(self, key: str, parameter: Any, value: Any) -> list[str]:
        name = _long(parameter.opts)
        if parameter.is_flag:
            if not isinstance(value, bool):
                raise PipelineError(f"{self._where}.{key}: true or false, not {value!r}")
            if value:
                return [name]
            return [_long(parameter.secondary_opts)] if parameter.secondary_opts else []
        if isinstance(value, dict | bool):
            raise PipelineError(f"{self._where}.{key}: a text or a number, not {value!r}")
        if isinstance(value, list) and not parameter.multiple:
            raise PipelineError(f"{self._where}.{key}: one value, not a list")
        return [word for text in _texts(value) for word in (name, text)]

    def _check(self, words: list[str]) -> None:
        import typer

        usage: Any = typer.BadParameter.__base__  # click's UsageError, whose home differs among typer's versions
        try:
            self._leaf.make_context(self.command[-1], list(words))
        except usage as error:
            message = error.format_message().replace("\n", " ")
            raise PipelineError(f"{self._where}: `headrace {' '.join(self.command)}` says: {message}") from error

    def _unknown(self, key: str) -> str:
        near = get_close_matches(key, self.allowed, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        taken = " (the pipeline gives that itself)" if key in GIVEN and key in self._parameters else ""
        return (
            f"{self._where}.{key}: `headrace {' '.join(self.command)}` has no such option{taken}{hint} "
            f"It has {', '.join(self.allowed) or 'none'}"
        )


def _leaf(command: Sequence[str]) -> Any:
    from headrace.cli.app import load

    found: Any = load(command[0])
    for word in command[1:]:
        found = found.commands[word]
    return found


def _key(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return parameter.name
    return _long(parameter.opts).removeprefix("--").replace("-", "_")


def _long(names: Sequence[str]) -> str:
    return next((n for n in names if n.startswith("--")), names[0])


def _texts(value: Any) -> list[str]:
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    return [str(v) for v in values]
