"""Apicurio Registry as a child process."""

import http.client
from pathlib import Path

from headrace.deploy.local.datadir import DataDirectory
from headrace.deploy.local.errors import ProcessDiedError
from headrace.deploy.local.java import Java
from headrace.deploy.local.jvm import QUIET, SMALL_MACHINE, aot_options
from headrace.deploy.local.ports import HOST, accepts, free_ports
from headrace.deploy.local.process import STOP_SECONDS, ChildProcess
from headrace.deploy.local.watch import Watch

API = "/apis/ccompat/v7"
HEAP = "-Xmx256m"
READY_SECONDS = 60.0
RACES = 5
TAKEN = ("Port already bound", "Address already in use")


class Registry:
    """A registry that keeps its schemas in the data directory; its files are there."""

    def __init__(self, java: Java, app: Path, data: DataDirectory, watch: Watch) -> None:
        self._java = java
        self._app = app
        self._data = data
        self._watch = watch
        self._process: ChildProcess | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Of its Confluent-compatible API."""
        return f"http://{HOST}:{self._port}{API}"

    @property
    def aot_cache(self) -> Path:
        """Where `warm_up` leaves the ahead-of-time cache of this Java."""
        return self._app.parent / f"registry-{self._java.identity}.aot"

    def launch(self, *, options: list[str] | None = None) -> None:
        """Start the JVM, without waiting for it.

        Args:
            options: more JVM flags.
        """
        self._port, management = free_ports(2)
        self._data.registry.mkdir(exist_ok=True)
        # WRITE_DELAY=0: ids are in records for good, so an id must not be given before it is on disk.
        store = f"jdbc:h2:file:{self._data.registry}/schemas;WRITE_DELAY=0"
        settings = {
            "quarkus.http.host": HOST,
            "quarkus.http.port": str(self._port),
            "quarkus.management.host": HOST,
            "quarkus.management.port": str(management),
            "quarkus.log.level": "WARN",
            "quarkus.banner.enabled": "false",
            "apicurio.datasource.url": store,
            "apicurio.datasource.jdbc.initial-size": "2",
            "apicurio.datasource.jdbc.min-size": "2",
        }
        more = options or aot_options(self.aot_cache)
        flags = [HEAP, *SMALL_MACHINE, *QUIET, *more, *(f"-D{key}={value}" for key, value in settings.items())]
        self._process = ChildProcess(
            "the registry",
            [self._java.command, *flags, "-jar", str(self._app / "quarkus-run.jar")],
            log=self._data.path / "registry.log",
            keep=[self._data.lock_fd],
        )

    def wait_ready(self) -> None:
        """Wait until it answers; it is launched anew where another process took its port.

        Raises:
            ProcessDiedError: it ended, with the end of its log.
        """
        for race in range(RACES):
            assert self._process is not None, "launch() comes first"
            try:
                self._process.wait_until(self._answers, READY_SECONDS, self._watch)
                return
            except ProcessDiedError as error:
                if race == RACES - 1 or not any(words in error.log_tail for words in TAKEN):
                    raise
                self.launch()

    def check(self) -> None:
        """Raises:
        ProcessDiedError: it has ended.
        """
        if self._process:
            self._process.check()

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Stop it cleanly; does nothing where it does not run."""
        if self._process:
            self._process.stop(timeout)

    def _answers(self) -> bool:
        if not accepts(self._port):
            return False
        connection = http.client.HTTPConnection(HOST, self._port, timeout=5)
        try:
            connection.request("GET", f"{API}/subjects")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
