"""The transactional producer when its broker dies within a transaction."""

import os
import signal
import threading
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewTopic

from headrace.deploy.local.broker import LocalKafka
from headrace.schemas.records import LogPosition
from headrace.streams.kafka.clients import make_admin, make_consumer
from headrace.streams.kafka.messages import OutMessage
from headrace.streams.kafka.transactional import Output
from headrace.streams.kafka.transactional.errors import SessionLostError
from headrace.streams.kafka.transactional.transactions import RETURN_SECONDS, Transactions
from headrace.streams.settings import load_settings

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_a_broker_that_dies_before_the_offsets_ends_the_session():
    raised: list[Exception] = []
    with LocalKafka() as kafka:
        settings = load_settings(bootstrap=kafka.bootstrap, prefix="t")
        admin = make_admin(settings)
        admin.create_topics([NewTopic("t.x", 1, 1)])["t.x"].result(20)
        consumer = make_consumer(settings, "c", group="g")
        metadata: Any = consumer.consumer_group_metadata()
        transactions = Transactions(settings, "p", "t.p", lambda: False)

        def dies(positions: list[LogPosition]) -> list[OutMessage]:
            os.kill(kafka.pid, signal.SIGKILL)
            return []

        def write() -> None:
            try:
                output = Output([OutMessage("t.x", b"k", b"v")], dies)
                transactions.write(output, [], [TopicPartition("t.x", 0, 1)], metadata)
            except SessionLostError as error:
                raised.append(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        writer.join(RETURN_SECONDS + 5)
        assert raised
        transactions.close()
        consumer.close()
