"""Interpreters of the other environments: what conflicts with Headrace's own dependencies lives in one of its own."""

import os
from collections.abc import Mapping
from pathlib import Path

from headrace.streams.errors import HeadraceError

SITE = Path(__file__).resolve().parent / "inside"


class EnvironmentMissingError(HeadraceError):
    """An environment that a command needs was not made."""


def find_python(program: str, environment: Mapping[str, str]) -> Path:
    """The interpreter that HEADRACE_<PROGRAM>_PYTHON names, else that of .venv-<program> here or above this package.

    Args:
        program: in small letters, such as `vllm`; `make setup-<program>` makes its environment.

    Raises:
        EnvironmentMissingError: there is none.
    """
    variable = f"HEADRACE_{program.upper()}_PYTHON"
    if given := environment.get(variable):
        if not Path(given).exists():
            raise EnvironmentMissingError(f"{variable} names {given}, which does not exist")
        return Path(given)
    for folder in (Path.cwd(), *Path(__file__).resolve().parents):
        if (python := folder / f".venv-{program}" / "bin" / "python").exists():
            return python
    raise EnvironmentMissingError(
        f"no environment for {program}: run `make setup-{program}`, or set {variable} to its interpreter"
    )


def variables_of(inside: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process in another environment, whose Python processes all die with this one (Linux).

    Args:
        inside: the folder with what it imports of Headrace, which goes onto its PYTHONPATH.
    """
    path = environment.get("PYTHONPATH")
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join([str(inside), str(SITE), *([path] if path else [])]),
        "HEADRACE_DIE_WITH_PARENT": str(os.getpid()),
    }
