"""Processes of a pipeline: who may end, and who may not."""

import logging
import sys
import time
from pathlib import Path

import pytest

from headrace.local.processes import FolderError, Part, PartFailedError, Processes


class Script(Part):
    """A part that is a line of Python."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", *self.argv]


PRINTING = """
import sys
for said in (b"7", b"null", b'["ready"]', b"\\xff\\xfe", b"[" * 100_000):
    sys.stdout.buffer.write(said + b"\\n")
for number in range(100):
    print('{"a": %d}' % number)
print('{"ready": "it"}')
"""


def ended(processes: Processes, part: Part) -> None:
    """Starts a command that fails at once, and waits for its end."""
    running = processes.start(part)
    running.process.wait(60)


def test_a_vital_part_that_ends_ends_all(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "logs")
    ended(processes, Part("wrong", ("nonsense",)))
    with pytest.raises(PartFailedError, match="wrong ended with exit code 2"):
        processes.check()


def test_others_go_on_without_a_part_that_is_not_vital(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    processes = Processes(tmp_path / "logs")
    ended(processes, Part("beside", ("nonsense",), vital=False))
    with caplog.at_level(logging.WARNING):
        began = time.monotonic()
        processes.wait_ready("beside", timeout=30)
    assert time.monotonic() - began < 30
    assert "going on without beside ended with exit code 2" in caplog.text
    assert not processes.all


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="choose another folder"):
        Processes(tmp_path / "file" / "logs")


def test_what_an_agent_prints_does_not_block_it(tmp_path: Path) -> None:
    processes = Processes(tmp_path / "logs")
    running = processes.start(Script("printing", (PRINTING,)))
    assert running.reader is not None
    assert running.process.wait(60) == 0
    running.reader.join(60)
    assert running.ready == {"ready": "it"}
    assert running.last_line() == {"a": 99}
    assert len(running.output) < 100
