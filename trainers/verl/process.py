"""The process in verl's environment: started and ended with the trainer, asked over a socket."""

import contextlib
import json
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from headrace.streams.environments import find_python, variables_of
from headrace.streams.errors import HeadraceError
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.verl.settings import VerlSettings

log = logging.getLogger(__name__)
INSIDE = Path(__file__).resolve().parent / "inside"
LENGTH = struct.Struct("<I")
END_SECONDS = 15.0
ATTEMPTS = 4
RAY_TOO_SLOW = "timed out during startup"


class VerlFailedError(HeadraceError):
    """verl's process did not start, or failed; its log is on stderr. The trainer goes on after its last step."""


class VerlProcess:
    """What `inside/headrace_verl.py` does, as calls. Ray and its workers live and end with it."""

    def __init__(self, process: "subprocess.Popen[bytes]", channel: socket.socket, folder: Path) -> None:
        self._process = process
        self._channel = channel
        self.folder = folder

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        """One message and its answer.

        Raises:
            VerlFailedError: it failed, or has gone.
        """
        body = msgspec.msgpack.encode({"do": do, **values})
        try:
            self._channel.sendall(LENGTH.pack(len(body)) + body)
        except OSError as error:
            raise VerlFailedError(f"verl's process has gone ({error}); its log is above") from error
        return self.hear()

    def hear(self) -> dict[str, Any]:
        """The next answer."""
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        answer: dict[str, Any] = msgspec.msgpack.decode(self._exactly(size))
        if "error" in answer:
            raise VerlFailedError(f"verl failed: {answer['error']}; its log is above")
        return answer

    def end(self) -> None:
        """Ends it with all that it has started."""
        with contextlib.suppress(OSError):
            body = msgspec.msgpack.encode({"do": "end"})
            self._channel.sendall(LENGTH.pack(len(body)) + body)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self._channel.recv(min(size - len(parts), 1 << 20))
            except OSError as error:
                raise VerlFailedError(f"verl's process has gone ({error}); its log is above") from error
            if not part:
                raise VerlFailedError("verl's process has ended; its log is above")
            parts += part
        return bytes(parts)


@contextmanager
def verl_process(
    objective: GrpoSettings, verl: VerlSettings, environment: Mapping[str, str] = os.environ
) -> Generator[VerlProcess]:
    """Starts it, and waits until Ray is up.

    Raises:
        EnvironmentMissingError: verl's environment was not made.
        VerlFailedError: it did not start.
    """
    python = find_python("verl", environment)
    # A short path: Ray's sockets lie in it, and theirs may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="headrace-verl-", ignore_cleanup_errors=True) as folder:
        process = _started(python, Path(folder), objective, verl, environment)
        try:
            yield process
        finally:
            process.end()


def _started(
    python: Path, folder: Path, objective: GrpoSettings, verl: VerlSettings, environment: Mapping[str, str]
) -> VerlProcess:
    for attempt in range(1, ATTEMPTS + 1):
        process = _start(python, folder, objective, verl, environment)
        try:
            process.hear()
        except BaseException as error:
            process.end()
            # Ray gives its own processes thirty seconds, whatever it is told: too few on a busy machine.
            if not isinstance(error, VerlFailedError) or RAY_TOO_SLOW not in str(error) or attempt == ATTEMPTS:
                raise
            log.warning("%s; starting it again", error)
        else:
            return process
    raise AssertionError("the last attempt returns or raises")


def _start(
    python: Path, folder: Path, objective: GrpoSettings, verl: VerlSettings, environment: Mapping[str, str]
) -> VerlProcess:
    ours, theirs = socket.socketpair()
    given = {
        "socket": theirs.fileno(),
        "folder": str(folder),
        "settings": asdict(objective),
        **{name: value for name, value in asdict(verl).items() if name != "advantages"},
    }
    with theirs:
        process = subprocess.Popen(
            [str(python), str(INSIDE / "headrace_verl.py"), json.dumps(given)],
            env={**variables_of(INSIDE, environment), "HEADRACE_VERL_PARENT": str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),  # stdout carries the ready line alone
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # Ctrl-C reaches it from here alone
        )
    return VerlProcess(process, ours, folder)
