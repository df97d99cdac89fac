"""Ahead-of-time caches (JEP 483, JEP 514): with them Kafka and the registry start in less than half the time.

A cache is made once, from a run that does what clients will ask for, and holds for one Java and one set of jars; where
it does not fit, Java starts without it.
"""

import logging
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from headrace.deploy.local.cache import exclusive
from headrace.deploy.local.datadir import DataDirectory
from headrace.deploy.local.files import ensure_kafka, ensure_registry
from headrace.deploy.local.java import OLDEST_WITH_ONE_STEP_AOT, Java, find_java
from headrace.deploy.local.kafka import KafkaNode
from headrace.deploy.local.ports import HOST
from headrace.deploy.local.registry import Registry
from headrace.deploy.local.watch import UNWATCHED, Watch

DUMP_SECONDS = 120.0
"""Java writes the cache as it ends, 8 s here."""

log = logging.getLogger(__name__)


def prepare(*, registry: bool = False, watch: Watch = UNWATCHED) -> None:
    """Fetch and verify everything, and make the caches that are missing. Afterwards nothing needs the network.

    Raises:
        LocalError: a file is not to be had, or the part does not run.
    """
    java = find_java()
    lock, jars = ensure_kafka(watch)
    with _scratch() as path:
        data = DataDirectory(Path(path) / "data")
        node = KafkaNode(java, lock, jars, data, watch)

        def train_kafka(output: str) -> None:
            try:
                node.start(0, options=[f"-XX:AOTCacheOutput={output}"])
                exercise_kafka(f"{HOST}:{node.port}")
            finally:
                node.stop(DUMP_SECONDS)
                data.release()

        _make_cache(java, node.aot_cache, train_kafka)
    if registry:
        app = ensure_registry(watch)[1]
        with _scratch() as path:
            _warm_registry(java, app, DataDirectory(Path(path) / "data"), watch)


def _warm_registry(java: Java, app: Path, data: DataDirectory, watch: Watch) -> None:
    server = Registry(java, app, data, watch)

    def train(output: str) -> None:
        try:
            server.launch(options=[f"-XX:AOTCacheOutput={output}"])
            server.wait_ready()
        finally:
            server.stop(DUMP_SECONDS)
            data.release()

    _make_cache(java, server.aot_cache, train)


def _scratch() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="headrace-warm-")


def _make_cache(java: Java, cache: Path, train: Callable[[str], None]) -> None:
    if java.major < OLDEST_WITH_ONE_STEP_AOT:
        return
    with exclusive(cache.parent / "warm.lock"):
        if cache.exists():
            return
        part = cache.with_suffix(".part")
        part.unlink(missing_ok=True)
        train(str(part))
        if part.exists():
            part.replace(cache)
        else:
            log.warning("Java made no ahead-of-time cache: starts will take twice as long, nothing else changes")


def exercise_kafka(bootstrap: str) -> None:
    """What a pipeline asks of a broker: topics, a group, a transaction that carries offsets."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = f"warm-up-{uuid.uuid4().hex}"
    common: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 3}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
    producer = Producer({**common, "transactional.id": topic, "compression.type": "lz4"})
    producer.init_transactions(30)
    consumer = Consumer(
        {
            **common,
            "group.id": topic,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    for _ in range(20):
        producer.begin_transaction()
        for key in range(10):
            producer.produce(topic, b"value" * 100, key=str(key))
        position = consumer.position(consumer.assignment())
        if position:
            producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata())
        producer.commit_transaction(30)
        consumer.consume(100, 0.1)
    consumer.close()
