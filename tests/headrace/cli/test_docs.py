"""Every command and flag that the documentation names exists."""

import re
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.app import COMMANDS, load

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
CALL = re.compile(r"headrace ([a-z][^\n`\"|]*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_flags_exist(page: Path) -> None:
    text = page.read_text().replace("\\\n", " ")
    for call in CALL.findall(text):
        words = call.split()
        if words[0] not in COMMANDS:  # prose
            continue
        command: Any = load(words.pop(0))
        while getattr(command, "commands", None) and words:
            assert words[0] in command.commands, call
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        flags = {word.strip("[](),.;").partition("=")[0] for word in words}
        assert {flag for flag in flags if flag.startswith("--")} <= known, call
