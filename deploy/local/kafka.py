"""One Kafka node as a child process."""

import logging
import subprocess
import tempfile
from pathlib import Path

from headrace.deploy.local.cache import exclusive
from headrace.deploy.local.datadir import DataDirectory, kafka_uuid
from headrace.deploy.local.errors import LocalError, PortInUseError, ProcessDiedError
from headrace.deploy.local.fencing import fence, was_killed
from headrace.deploy.local.java import Java
from headrace.deploy.local.jvm import SMALL_MACHINE, aot_options, broker_options
from headrace.deploy.local.lockfile import Lock
from headrace.deploy.local.ports import HOST, accepts, free_ports, is_free
from headrace.deploy.local.process import STOP_SECONDS, ChildProcess
from headrace.deploy.local.properties import render, server_properties
from headrace.deploy.local.stamps import write_whole
from headrace.deploy.local.watch import Watch

READY_SECONDS = 60.0
RACES = 5
"""How often a port that was free when it was chosen may be taken when Kafka binds it."""
TAKEN = "Address already in use"

log = logging.getLogger(__name__)


class KafkaNode:
    """A node that runs on a data directory; its files are there.

    Attributes:
        port: where it listens; known once it runs.
    """

    def __init__(self, java: Java, lock: Lock, jars: Path, data: DataDirectory, watch: Watch) -> None:
        self._java = java
        self._home = jars.parent
        # In one order always: an ahead-of-time cache holds for exactly one class path.
        self._classpath = ":".join(str(jars / a.filename) for a in lock.artifacts)
        self._data = data
        self._watch = watch
        self._process: ChildProcess | None = None
        self.port = 0

    @property
    def process(self) -> ChildProcess:
        """The JVM.

        Raises:
            LocalError: it was not started.
        """
        if self._process is None:
            raise LocalError("Kafka is not running: start it first")
        return self._process

    @property
    def aot_cache(self) -> Path:
        """Where `warm_up` leaves the ahead-of-time cache of this Java."""
        return self._home / f"kafka-{self._java.identity}.aot"

    def start(self, port: int, *, options: list[str] | None = None) -> None:
        """Start the JVM and wait until it answers clients.

        Args:
            port: to listen on; 0 picks a free one.
            options: more JVM flags.

        Raises:
            PortInUseError: somebody has the port.
            ProcessDiedError: it ended, with the end of its log.
        """
        self._data.format(bootstrap_checkpoint(self._java, self._classpath, self._home))
        if was_killed(self._data.kafka):
            command = self._java_command(options or aot_options(self.aot_cache))
            fence(command, self._data.path, self._data.kafka, free_ports(1)[0], [self._data.lock_fd], self._watch)
        for race in range(RACES):
            try:
                first, second = free_ports(2)
                controller = second if second != port else first
                self._start_once(port or first, controller, options or aot_options(self.aot_cache))
                return
            except ProcessDiedError as error:
                if TAKEN not in error.log_tail or race == RACES - 1:
                    raise
                if port and not is_free(port):
                    raise PortInUseError(port) from error
                log.info("a port was taken by another process meanwhile, trying others")

    def _start_once(self, port: int, controller: int, options: list[str]) -> None:
        properties = self._data.path / "server.properties"
        write_whole(properties, render(server_properties(self._data.kafka, port, controller)))
        self._process = ChildProcess(
            "Kafka",
            [*self._java_command(options), "kafka.Kafka", str(properties)],
            log=self._data.path / "broker.log",
            keep=[self._data.lock_fd],
        )
        self.port = port
        self._data.note(jvm=self._process.pid)
        self._process.wait_until(lambda: accepts(port), READY_SECONDS, self._watch)
        self._process.wait_until(Probe(f"{HOST}:{port}"), READY_SECONDS, self._watch)

    def _java_command(self, options: list[str]) -> list[str]:
        scratch = f"-Djava.io.tmpdir={self._data.fresh_scratch()}"
        return [self._java.command, *broker_options(), *LOGGING, scratch, *options, "-cp", self._classpath]

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Stop it cleanly; does nothing where it does not run."""
        if self._process:
            self._process.stop(timeout)


LOGGING = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true")


class Probe:
    """Asks for the cluster's metadata: whoever is answered can produce."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka.admin import AdminClient

        quiet = logging.getLogger(f"{__name__}.probe")
        quiet.setLevel(logging.CRITICAL)  # to be refused is what a probe expects
        self._admin = AdminClient(
            {"bootstrap.servers": bootstrap, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}, logger=quiet
        )

    def __call__(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self._admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False


def bootstrap_checkpoint(java: Java, classpath: str, home: Path) -> bytes:
    """The feature levels of this Kafka version, in the form in which it reads them.

    `kafka-storage format` costs a second, so what it writes is kept in the cache.
    """
    kept = home / "bootstrap.checkpoint"
    if not kept.exists():
        with exclusive(home / "lock"), tempfile.TemporaryDirectory(dir=home) as scratch:
            properties = Path(scratch) / "server.properties"
            properties.write_text(render(server_properties(Path(scratch) / "log", 1, 2)))
            command = [java.command, *SMALL_MACHINE, "-cp", classpath, "kafka.tools.StorageTool"]
            arguments = ["format", "--cluster-id", kafka_uuid(), "--config", str(properties)]
            done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
            if done.returncode:
                raise LocalError(f"Kafka's storage tool failed:\n{done.stdout}{done.stderr}")
            (made,) = (Path(scratch) / "log" / "__cluster_metadata-0").glob("*.checkpoint")
            made.replace(kept)
    return kept.read_bytes()
