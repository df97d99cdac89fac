"""Errors of the local Kafka and registry; every message says what to do."""

from headrace.streams.errors import HeadraceError


class LocalError(HeadraceError):
    """The local Kafka or registry cannot start."""


class JavaError(LocalError):
    """No Java that Kafka can run on."""


class FetchError(LocalError):
    """A file is neither in the cache nor to be had."""

    retriable = True


class PortInUseError(LocalError):
    """Something else listens on the port.

    Attributes:
        port: the port asked for.
    """

    def __init__(self, port: int) -> None:
        super().__init__(
            f"port {port} on 127.0.0.1 is in use: stop what listens there, choose another --port, or 0 for any free one"
        )
        self.port = port


class DataDirectoryError(LocalError):
    """The data directory cannot be used."""


class DirectoryInUseError(DataDirectoryError):
    """Another broker runs on the data directory.

    Attributes:
        pid: the process that holds it, None where it has not written its id yet.
    """

    def __init__(self, directory: str, pid: int | None) -> None:
        super().__init__(
            f"{directory} is in use by pid {pid or 'unknown'}: stop that broker, use its bootstrap address, "
            "or choose another --data"
        )
        self.pid = pid


class ProcessDiedError(LocalError):
    """A JVM ended although nobody asked it to.

    Attributes:
        log_tail: its last lines.
    """

    def __init__(self, name: str, returncode: int | None, log_tail: str) -> None:
        super().__init__(f"{name} ended with exit code {returncode}; the end of its log:\n{log_tail}")
        self.log_tail = log_tail
