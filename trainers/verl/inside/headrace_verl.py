# pyright: basic, reportMissingImports=false
"""The process that holds Ray and verl's workers: takes batches from the trainer over a socket, answers with figures.

Runs in verl's own environment, which holds none of Headrace's dependencies; this folder is on its PYTHONPATH. A message
is a length of four bytes, little-endian, and so many bytes of msgpack; weights and states pass as safetensors files.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import sys
from typing import Any

import headrace_verl_system as system

log = logging.getLogger("headrace.verl")


def main() -> None:
    """Serves one trainer until it says `end`, or is gone."""
    given = json.loads(sys.argv[1])
    logging.basicConfig(level="INFO", stream=sys.stderr)
    if given["network"] == "private":
        system.leave_network()
    system.die_with(int(os.environ["HEADRACE_VERL_PARENT"]))
    system.prepare(given)
    channel = socket.socket(fileno=int(given["socket"]))
    try:
        serve(channel, given)
    except ConnectionError:
        log.info("the trainer has gone")


def serve(channel: socket.socket, given: dict[str, Any]) -> None:
    """Answers messages; a failure is said to the trainer, and ends the process."""
    import msgspec

    try:
        from headrace_verl_group import Group

        group = Group(given)
        _say(channel, msgspec.msgpack.encode({"ready": True}))
    except BaseException as error:  # whatever it is, the trainer has to hear of it
        _say(channel, msgspec.msgpack.encode({"error": f"{type(error).__name__}: {error}"}))
        raise
    try:
        while True:
            message = msgspec.msgpack.decode(_hear(channel))
            operation = message.pop("do")
            if operation == "end":
                break
            try:
                answer = getattr(group, operation)(**message)
            except Exception as error:
                _say(channel, msgspec.msgpack.encode({"error": f"{type(error).__name__}: {error}"}))
                raise
            _say(channel, msgspec.msgpack.encode(answer))
    finally:
        group.close()


def _hear(channel: socket.socket) -> bytes:
    return _exactly(channel, struct.unpack("<I", _exactly(channel, 4))[0])


def _exactly(channel: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = channel.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionError("closed")
        parts += part
    return bytes(parts)


def _say(channel: socket.socket, body: bytes) -> None:
    channel.sendall(struct.pack("<I", len(body)) + body)


if __name__ == "__main__":
    main()
