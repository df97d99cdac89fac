"""`LocalKafka`: Apache Kafka, and a schema registry if wanted, for one machine."""

from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.deploy.local.datadir import DataDirectory
from headrace.deploy.local.errors import PortInUseError
from headrace.deploy.local.files import ensure_kafka, ensure_registry
from headrace.deploy.local.java import find_java
from headrace.deploy.local.kafka import KafkaNode
from headrace.deploy.local.lockfile import read_lock
from headrace.deploy.local.ports import HOST, is_free
from headrace.deploy.local.registry import Registry
from headrace.deploy.local.watch import UNWATCHED, Watch


class LocalKafka:
    """A real Kafka of one node on 127.0.0.1, which lives as long as this object runs and no longer than this process.

    Use it as a context manager, or call `start` and `stop`. `start` belongs on a thread that outlives the broker, such
    as the main one: on Linux the kernel kills the broker when the thread that started it ends.

    Args:
        port: where Kafka listens; 0 picks a free one.
        data: kept across runs; None is a temporary directory, removed at the end.
        registry: also start a registry.
        watch: told how the start goes; it may end it.
    """

    def __init__(
        self, *, port: int = 0, data: Path | None = None, registry: bool = False, watch: Watch = UNWATCHED
    ) -> None:
        self._wanted_port = port
        self._wanted_data = data
        self._with_registry = registry
        self._watch = watch
        self._data: DataDirectory | None = None
        self._node: KafkaNode | None = None
        self._registry: Registry | None = None

    def start(self) -> Self:
        """Fetch what is missing, start, and return when clients are answered.

        Raises:
            LocalError: what is wrong, and what to do; nothing is left running then.
        """
        java = find_java()
        lock, jars = ensure_kafka(self._watch)
        app = ensure_registry(self._watch)[1] if self._with_registry else None
        self._data = DataDirectory(self._wanted_data)
        try:
            if self._wanted_port and not is_free(self._wanted_port):
                raise PortInUseError(self._wanted_port)
            if app:
                self._registry = Registry(java, app, self._data, self._watch)
                self._registry.launch()
            self._node = KafkaNode(java, lock, jars, self._data, self._watch)
            self._node.start(self._wanted_port)
            if self._registry:
                self._registry.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop everything and let go of the data directory; may be called twice."""
        if self._registry:
            self._registry.stop()
        if self._node:
            self._node.stop()
        if self._data:
            self._data.release()
        self._registry = self._node = self._data = None

    def check(self) -> None:
        """Raises:
        ProcessDiedError: Kafka or the registry has ended by itself.
        """
        self._running.process.check()
        if self._registry:
            self._registry.check()

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{HOST}:{self._running.port}"

    @property
    def registry_url(self) -> str | None:
        """The registry's Confluent-compatible API, None where it was not wanted."""
        return self._registry.url if self._registry else None

    @property
    def pid(self) -> int:
        """Of Kafka's JVM."""
        return self._running.process.pid

    @property
    def version(self) -> str:
        """Kafka's."""
        return read_lock("kafka").version

    @property
    def _running(self) -> KafkaNode:
        if self._node is None:
            raise RuntimeError("the broker is not running: call start()")
        return self._node

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
