"""A JVM that belongs to this process: started, watched, stopped, and dead when this process is."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from headrace.deploy.local.errors import LocalError, ProcessDiedError
from headrace.deploy.local.watch import Watch

WRAPPER = Path(__file__).with_name("die_with_parent.py")
POLL_SECONDS = 0.02
STOP_SECONDS = 15.0
TAIL_LINES = 15


class ChildProcess:
    """A child in a session of its own, so that Ctrl-C reaches it only through its owner.

    Start it on a thread that lives as long as it should: the kernel's death signal follows the thread that forked.

    Args:
        name: for messages.
        command: the program and its arguments.
        log: receives stdout and stderr; emptied first.
        keep: file descriptors that the child inherits.
    """

    def __init__(self, name: str, command: Sequence[str], *, log: Path, keep: Sequence[int] = ()) -> None:
        self.name = name
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(WRAPPER), str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=tuple(keep),
            )

    @property
    def pid(self) -> int:
        """The same before and after the wrapper's exec."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def tail(self) -> str:
        """The last lines that it wrote, without stack frames."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if not line.startswith("\tat ")][-TAIL_LINES:])

    def check(self) -> None:
        """Raises:
        ProcessDiedError: it has ended.
        """
        if self.returncode is not None:
            raise ProcessDiedError(self.name, self.returncode, self.tail())

    def wait_until(self, ready: Callable[[], bool], timeout: float, watch: Watch) -> None:
        """Poll `ready` while the process lives.

        Raises:
            ProcessDiedError: it ended before.
            LocalError: it was not ready within `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        while not ready():
            self.check()
            watch.checkpoint()
            if time.monotonic() > deadline:
                raise LocalError(f"{self.name} was not ready after {timeout:.0f} s; the end of its log:\n{self.tail()}")
            time.sleep(POLL_SECONDS)

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Terminate it, and kill it where it does not end within `timeout` seconds."""
        if self.returncode is None:
            self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
