"""Imports go one way: schemas, streams, then connectors and trainers, then the command and the demo."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAY = {
    "schemas": {"schemas"},
    "streams": {"schemas", "streams"},
    "connectors": {"schemas", "streams", "connectors"},
    "trainers": {"schemas", "streams", "trainers"},
    "deploy": {"streams", "deploy"},
}
IMPORT = re.compile(r"^\s*(?:from|import) headrace\b(?:\.(\w+))?", re.MULTILINE)


@pytest.mark.parametrize("package", MAY)
def test_imports_go_one_way(package: str) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert files
    wrong = [
        f"{file.relative_to(ROOT)}: headrace.{found}"
        for file in files
        for found in IMPORT.findall(file.read_text())
        if found not in MAY[package]
    ]
    assert wrong == []


HEAVY = ("sqlalchemy", "litellm", "faust", "torch", "transformers", "opentelemetry.sdk", "pyarrow")


@pytest.mark.parametrize(
    "process",
    [
        "connectors.gateway.run",
        "connectors.otlp.run",
        "streams.runner.runner",
        "streams.assembly.loop",
        "streams.lifecycle.loop",
    ],
)
def test_a_process_loads_no_library_that_it_may_not_need(process: str) -> None:
    program = f"import sys, headrace.{process}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
