"""Locks and workflows."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from headrace.deploy.local.properties import render

ROOT = Path(__file__).parents[2]
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_requirements_are_pinned_with_hashes_and_name_no_address(path: Path) -> None:
    text = path.read_text()
    pins = re.findall(r"^[A-Za-z0-9].*", text, re.MULTILINE)
    assert pins
    assert all(re.match(r"[A-Za-z0-9_.-]+==\S+", pin) and pin.endswith("\\") for pin in pins)
    assert not re.search(r"https?:|file:|--(extra-)?index-url|--find-links", text)


NOT_LOCKED = {"agentops"}  # it holds psutil at a version below the lock's


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: needs for name, needs in project["optional-dependencies"].items() if name not in NOT_LOCKED}
    wanted = [*project["dependencies"], *(need for needs in extras.values() for need in needs)]
    locked = set(re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements" / "core.txt").read_text(), re.MULTILINE))
    assert {re.split(r"[\[<>=!~ ]", name)[0].lower() for name in wanted} <= locked


def test_workflows_are_valid() -> None:
    actionlint = shutil.which("actionlint")
    if actionlint is None:
        pytest.skip("actionlint is not on PATH: go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12")
    done = subprocess.run([actionlint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("value", "written"),
    [("/tmp/a b", "/tmp/a b"), ("C:\\x", "C:\\\\x"), ("/ü", "/\\u00fc"), ("/😀", "/\\ud83d\\ude00")],
)
def test_properties_are_written_as_java_reads_them(value: str, written: str) -> None:
    assert render({"log.dirs": value}) == f"log.dirs={written}\n"
