"""`headrace broker` as its users run it: a command with a ready line, signals and exit codes."""

import json
import os
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from headrace.deploy.local.datadir import MARKER
from headrace.deploy.local.ports import free_ports, is_free
from tests.processes import Process, put_away, start
from tests.waiting import until

pytestmark = pytest.mark.kafka

DEADLINE_SECONDS = 60.0
Launch = Callable[..., Process]


@pytest.fixture
def launch() -> Iterator[Launch]:
    """Start `headrace broker` with arguments; what still runs at the end of the test is killed."""
    with ExitStack() as stack:

        def launched(*arguments: str) -> Process:
            process = start("broker", *arguments, stderr=subprocess.PIPE)
            stack.callback(put_away, process)
            return process

        yield launched


def ready_line(process: Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    return json.loads(line)


def refusal(process: Process) -> str:
    """What a command that must fail says; it prints nothing on stdout."""
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 1
    assert out == ""
    assert "Traceback" not in err
    return err


def topics(bootstrap: str) -> set[str]:
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).topics)


def cluster_id(bootstrap: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap})  # a result dies with its client
    return admin.describe_cluster().result(10).cluster_id


def write(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(20) == 0


def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []
    try:
        until(lambda: values.extend(m.value() for m in consumer.consume(count, 0.5)) or len(values) >= count)
    finally:
        consumer.close()
    return values


def test_topics_survive_a_kill_of_everything_and_transactions_are_ended_for_their_readers(
    launch: Launch, tmp_path: Path
) -> None:
    """Beside it: the directory is held while it is in use, a dead broker is reported, Ctrl-C ends it cleanly."""
    data = str(tmp_path / "data")
    process = launch("--data", data)
    ready = ready_line(process)
    assert set(ready) == {"bootstrap", "registry", "version", "pid"}
    assert ready["version"] == "4.4.0"
    assert ready["registry"] is None
    assert psutil.Process(ready["pid"]).name() == "java"

    bootstrap = ready["bootstrap"]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(20)
    write(bootstrap, "kept", [b"one", b"two"])
    before = cluster_id(bootstrap)

    assert f"in use by pid {process.pid}" in refusal(launch("--data", data))
    port = bootstrap.rpartition(":")[2]
    assert f"port {port} on 127.0.0.1 is in use" in refusal(launch("--port", port))
    assert "kept" in topics(bootstrap)

    process.kill()
    process.wait(90)
    until(lambda: not psutil.pid_exists(ready["pid"]), what="the JVM outlived its owner")

    process = launch("--data", data, "--port", port)
    ready = ready_line(process)
    assert ready["bootstrap"] == bootstrap
    assert cluster_id(bootstrap) == before
    assert read(bootstrap, "kept", 2) == [b"one", b"two"]

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("open", 2, 1)])["open"].result(20)
    producer = open_transaction(bootstrap)
    os.kill(ready["pid"], signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "Kafka ended with exit code -9" in err
    del producer

    process = launch("--data", data)
    ready = ready_line(process)  # which takes longer than the time-out of the transaction
    until(lambda: stable_ends(ready["bootstrap"]) == [(2, 2), (2, 2)], what="the transaction hangs")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert not psutil.pid_exists(ready["pid"])


def open_transaction(bootstrap: str) -> Producer:
    """A transaction that nobody ends, with a record on each of two partitions in the log."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "t", "transaction.timeout.ms": 1000})
    producer.init_transactions(20)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce("open", b"never", partition=partition)
    assert producer.flush(20) == 0
    return producer


def stable_ends(bootstrap: str) -> list[tuple[int, int]] | None:
    """Where readers with read_committed stop in each partition of `open`, and its end; None while a leader is new."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    latest = OffsetSpec.latest()
    ends: list[list[int]] = []
    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        asked = {TopicPartition("open", p): latest for p in (0, 1)}
        answers: dict[Any, Any] = admin.list_offsets(asked, isolation_level=level, request_timeout=10)
        try:
            ends.append([f.result().offset for _, f in sorted(answers.items(), key=lambda a: a[0].partition)])
        except KafkaException as error:
            if not error.args[0].retriable() and error.args[0].code() != KafkaError.UNKNOWN_LEADER_EPOCH:
                raise
            return None
    return list(zip(*ends, strict=True))


def test_sigterm_stops_it_cleanly_and_nothing_is_left(launch: Launch) -> None:
    process = launch()
    ready = ready_line(process)
    (owner,) = [p for p in Path(tempfile.gettempdir()).glob("headrace-broker-*") if _held_by(p, process.pid)]
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert not psutil.pid_exists(ready["pid"])
    assert not owner.exists()


def _held_by(directory: Path, pid: int) -> bool:
    try:
        return json.loads((directory / MARKER).read_text())["pid"] == pid
    except (OSError, ValueError):
        return False


def test_a_signal_while_it_starts_leaves_nothing(launch: Launch, tmp_path: Path) -> None:
    process = launch("--data", str(tmp_path / "data"))
    children: list[psutil.Process] = []
    until(lambda: bool(children.extend(psutil.Process(process.pid).children()) or children), what="no JVM was started")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out == ""
    assert not any(child.is_running() for child in children)


def test_a_directory_of_someone_else_is_left_alone(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear to me")
    assert "not a Headrace broker's" in refusal(launch("--data", str(tmp_path)))
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
    assert "not a directory" in refusal(launch("--data", str(tmp_path / "thesis.txt")))


def test_a_java_that_does_not_fit_is_named(launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.touch(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.15"\n')
    monkeypatch.setenv("HEADRACE_JAVA_HOME", str(tmp_path))
    message = refusal(launch())
    assert "holds Java 17" in message
    assert "21 or newer" in message


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_registry_keeps_its_ids_when_it_is_killed(launch: Launch, tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    process = launch("--data", data, "--registry")
    ready = ready_line(process)
    given = _register(ready["registry"])
    processes = psutil.Process(process.pid).children()
    listening = [c.laddr for p in processes for c in p.net_connections() if c.status == psutil.CONN_LISTEN]
    assert len(processes) == 2
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}
    process.kill()
    process.wait(90)
    until(lambda: not any(p.is_running() for p in processes), what="a JVM outlived its owner")

    again = ready_line(launch("--data", data, "--registry"))
    with urllib.request.urlopen(f"{again['registry']}/schemas/ids/{given}", timeout=10) as answer:
        assert json.loads(json.loads(answer.read())["schema"])["name"] == "R"


def _register(registry: str) -> int:
    body = json.dumps({"schema": json.dumps({"type": "record", "name": "R", "fields": []})}).encode()
    request = urllib.request.Request(
        f"{registry}/subjects/r-value/versions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())["id"]


def test_unused_ports_are_free_and_used_ones_are_not(kafka: Any) -> None:
    assert all(is_free(port) for port in free_ports(2))
    assert not is_free(int(kafka.bootstrap.rpartition(":")[2]))


def test_topics_are_not_made_by_writing_to_them(kafka: Any) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "topic.metadata.propagation.max.ms": 1})
    errors: list[Any] = []
    producer.produce("misspelt", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert errors[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
