"""TCP ports of the loopback address."""

import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """A port that was free a moment ago; another process may take it before it is bound."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As servers do: connections of a former server that linger in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def accepts(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((HOST, port)) == 0
