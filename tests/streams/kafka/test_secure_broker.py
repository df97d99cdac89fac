"""Every kind of client against a broker that demands TLS and SASL."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.deploy.local import kafka as local
from headrace.deploy.local.broker import LocalKafka
from headrace.deploy.local.ports import free_ports
from headrace.schemas.records import Reward
from headrace.streams.codec import Codec
from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka import admin
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import create_topics, partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.faust_app import RAW, make_faust_app
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings, load_settings

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

USER, PASSWORD = "headrace", "correct horse"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A PEM file with a key and the certificate of 127.0.0.1."""
    path, key = tmp_path / "broker.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key), *subject]
    subprocess.run([*make, "-out", str(tmp_path / "ca.pem")], check=True, capture_output=True)
    path.write_text(key.read_text() + (tmp_path / "ca.pem").read_text())
    return path


@pytest.fixture
def secure(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings for the one listener of a broker that lets nobody in without a password over TLS."""
    (port,) = free_ports(1)
    plain = local.server_properties

    def properties(log_dirs: Path, inside: int, controller: int) -> dict[str, str]:
        found = plain(log_dirs, inside, controller)
        listener = f"SECURE://127.0.0.1:{port}"
        return found | {
            "listeners": f"{found['listeners']},{listener}",
            "advertised.listeners": f"{found['advertised.listeners']},{listener}",
            "listener.security.protocol.map": f"{found['listener.security.protocol.map']},SECURE:SASL_SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": f'{LOGIN} required user_{USER}="{PASSWORD}";',
        }

    monkeypatch.setattr(local, "server_properties", properties)
    credentials = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificate.with_name("ca.pem")),
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    with LocalKafka():
        settings = load_settings(bootstrap=f"127.0.0.1:{port}", prefix="secure", partitions=1, kafka=credentials)
        create_topics(settings)
        yield settings


def reward(number: int) -> Reward:
    return Reward(rollout_id="r", reward_id=str(number), primary=True, value=number, source="agent", at=0)


async def test_all_clients(
    secure: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = AckedProducer(secure, "acked", linger_ms=0)
    await producer.send(reward(1))
    await producer.close()
    await asyncio.to_thread(write_transaction, secure)
    topic = secure.topic("rewards")
    codec = Codec(secure)
    read = await asyncio.to_thread(lambda: list(read_topic(secure, topic, [0], client_id="reader")))
    assert [codec.decode_as(Reward, message.value()).value for message in read] == [1, 2]
    assert await faust_values(secure, topic, str(tmp_path)) == [1, 2]
    monkeypatch.setattr(admin, "LOOK_SECONDS", 1.0)
    for wrong in ({"sasl.password": "wrong"}, {"security.protocol": "PLAINTEXT"}):
        refused = load_settings(bootstrap=secure.bootstrap, prefix="secure", kafka={**secure.kafka, **wrong})
        with pytest.raises(BrokerUnavailableError):
            await asyncio.to_thread(partition_ids, refused, topic)
    assert PASSWORD not in caplog.text


def write_transaction(settings: Settings) -> None:
    producer = make_producer(settings, "transactional", transactional_id="secure")
    producer.init_transactions(30)
    producer.begin_transaction()
    message = MessageMaker(settings)(reward(2))
    producer.produce(message.topic, message.value, message.key)
    producer.commit_transaction(30)


async def faust_values(settings: Settings, topic: str, folder: str) -> list[float]:
    """What a Faust app reads."""
    app = make_faust_app(settings, "faust", folder, start="earliest", backlog=10, commit=1.0)
    codec, values = Codec(settings), list[float]()

    @app.agent(app.topic(topic, **RAW))
    async def read(stream: Any) -> None:
        async for value in stream:
            values.append(codec.decode_as(Reward, value).value)

    await app.start()
    try:
        deadline = time.monotonic() + 30
        while len(values) < 2:
            assert time.monotonic() < deadline, "Faust reads nothing"
            await asyncio.sleep(0.05)
    finally:
        await app.stop()
    return values
