"""Writing to and reading from the pipeline's topics, and processors as processes of their own."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.schemas.records import Record
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin, make_producer
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.settings import Settings
from tests.processes import Process, put_away, ready, start
from tests.waiting import until


class Log:
    """The topics of one pipeline."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._codec = Codec(settings)
        self._message = MessageMaker(settings)
        self._producer = make_producer(settings, "test", linger_ms=0)
        self._admin = make_admin(settings, "test")
        self._partitions: dict[str, list[int]] = {}

    def write(self, *records: Record) -> None:
        """Returns when the brokers have them; records of one call stand in this order."""
        for record in records:
            message = self._message(record)
            headers: Any = message.headers or None
            self._producer.produce(message.topic, message.value, message.key, message.partition, headers=headers)
        assert self._producer.flush(30) == 0

    def write_raw(self, topic: str, key: bytes | None, value: bytes | None, partition: int = -1) -> None:
        """Bytes, to a topic of the catalogue."""
        self._producer.produce(self.settings.topic(topic), value, key, partition)
        assert self._producer.flush(30) == 0

    def messages(self, topic: str, *, dead: bool = False) -> list[Message]:
        """The committed messages of a topic, of a partition in their order."""
        name = self.settings.topic(topic) + (".dlq" if dead else "")
        if name not in self._partitions:
            self._partitions[name] = partition_ids(self.settings, name, self._admin)
        starts = {(name, p): BEGINNING for p in self._partitions[name]}
        ends = end_offsets(self._admin, starts)
        return list(read_to_end(self.settings, starts, ends=ends, client_id="test"))

    def records(self, topic: str) -> list[Any]:
        """The committed records of a topic."""
        return [self._codec.decode(m.value()) for m in self.messages(topic) if m.value() is not None]

    def decode(self, message: Message) -> Any:
        """The record of a message."""
        return self._codec.decode(message.value())


@pytest.fixture
def log_of() -> type[Log]:
    """The topics of given settings."""
    return Log


@pytest.fixture
def log(settings: Settings) -> Log:
    """The topics of the test's pipeline."""
    return Log(settings)


@pytest.fixture
def wait_for() -> Callable[[Callable[[], Any]], Any]:
    """See `until`."""
    return until


@pytest.fixture
def start_processor(settings: Settings) -> Iterator[Callable[..., Process]]:
    """Starts `headrace processor NAME` and waits until it is ready; all are ended with the test."""
    processes: list[Process] = []
    joined = ("--bootstrap", settings.bootstrap, "--prefix", settings.prefix)

    def run(name: str, worker_id: str, *options: str) -> Process:
        process = start("processor", name, *joined, "--worker-id", worker_id, *options)
        processes.append(process)
        assert ready(process)["ready"] == name
        return process

    yield run
    for process in processes:
        put_away(process)
