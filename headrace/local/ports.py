"""Ports on this machine."""

import socket


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens at now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
