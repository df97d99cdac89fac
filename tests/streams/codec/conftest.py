"""A real registry, started once where a test asks for it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).parent / "headrace")


@pytest.fixture(scope="session")
def registry() -> Iterator[str]:
    """The URL of its Confluent API; `HEADRACE_TEST_REGISTRY` names one that runs already."""
    given = os.environ.get("HEADRACE_TEST_REGISTRY")
    if given:
        yield given
        return
    process = subprocess.Popen([COMMAND, "broker", "--registry"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the registry did not start; its log is on stderr"
        yield json.loads(line)["registry"]
    finally:
        process.terminate()
        process.wait(30)
