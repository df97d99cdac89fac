"""Writing to and reading from the pipeline's topics, and processors as processes of their own."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.schemas.records import Record
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

COMMAND = str(Path(sys.executable).parent / "headrace")
PATIENCE_SECONDS = 60.0


class Log:
    """The topics of one pipeline."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._codec = Codec(settings)
        self._message = MessageMaker(settings)
        self._producer = make_producer(settings, "test", linger_ms=0)

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
        return list(read_topic(self.settings, name, partition_ids(self.settings, name), client_id="test"))

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
    """Calls a function until what it returns is true, and returns that."""

    def wait(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.1)
        return found

    return wait


@pytest.fixture
def start_processor(settings: Settings) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts `headrace processor NAME` and waits until it is ready; all are ended with the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(name: str, worker_id: str, *options: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [
                COMMAND,
                "processor",
                name,
                "--bootstrap",
                settings.bootstrap,
                "--prefix",
                settings.prefix,
                "--worker-id",
                worker_id,
                *options,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert f'"ready": "{name}"' in process.stdout.readline()
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait(30)
