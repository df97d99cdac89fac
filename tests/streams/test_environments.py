"""What processes of other environments are told."""

import os
from pathlib import Path

import pytest

from headrace.streams.environments import SITE, EnvironmentMissingError, find_python, variables_of


def test_their_path_begins_with_what_they_import_of_headrace(tmp_path: Path) -> None:
    told = variables_of(tmp_path, {"PYTHONPATH": "mine", "HOME": "h"})
    assert told["PYTHONPATH"].split(os.pathsep) == [str(tmp_path), str(SITE), "mine"]
    assert (told["HOME"], told["HEADRACE_DIE_WITH_PARENT"]) == ("h", str(os.getpid()))
    assert (SITE / "sitecustomize.py").is_file()


def test_an_environment_that_is_missing_says_how_it_is_made() -> None:
    with pytest.raises(EnvironmentMissingError, match="make setup-nothing"):
        find_python("nothing", {})
    with pytest.raises(EnvironmentMissingError, match="HEADRACE_NOTHING_PYTHON names /nowhere"):
        find_python("nothing", {"HEADRACE_NOTHING_PYTHON": "/nowhere"})
