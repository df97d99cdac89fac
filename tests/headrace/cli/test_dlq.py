"""`headrace dlq` on a real broker."""

import base64
from typing import Any

import pytest

from headrace.schemas.records import Reward
from headrace.streams.kafka import dead_letters
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def test_list_and_show(headrace: Any, settings: Settings) -> None:
    producer = make_producer(settings, "test")
    topic = settings.topic("spans")
    producer.produce(topic, b"garbage", b"key-\xff", headers=[("traceparent", b"00-1")], partition=1)
    reward = MessageMaker(settings)(Reward(rollout_id="r", reward_id="i", primary=True, value=1, source="agent", at=0))
    producer.produce(topic, reward.value, b"r", partition=1)
    producer.flush()
    for message, reason in zip(
        read_topic(settings, topic, [1], client_id="test"), ("unknown_framing", "wrong_record"), strict=True
    ):
        letter = dead_letters.make(message, reason, "what is wrong", "assembler")
        producer.produce(letter.topic, letter.value, letter.key, headers=letter.headers)  # type: ignore[arg-type]
    producer.flush()

    first, second = headrace.json("dlq", "list", "--json")
    assert first == {
        "topic": f"{topic}.dlq",
        "partition": 0,
        "offset": 0,
        "at": first["at"],
        "reason": "unknown_framing",
        "source_topic": topic,
        "source_partition": 1,
        "source_offset": 0,
        "bytes": 7,
    }
    assert first["at"] > 1_600_000_000_000_000
    assert second["reason"] == "wrong_record"
    assert headrace.json("dlq", "list", "--json", "--reason", "wrong_record") == [second]
    assert headrace.json("dlq", "list", "--json", "--topic", "rewards") == []
    assert "unknown_framing" in headrace("dlq", "list").stdout

    (shown,) = headrace.json("dlq", "show", f"{topic}.dlq", "0", "0", "--json")
    assert base64.b64decode(shown["value_base64"]) == b"garbage"
    assert shown["record"] is None
    assert shown["undecoded"].startswith("unknown_framing")
    assert ["traceparent", "00-1"] in shown["headers"]
    (shown,) = headrace.json("dlq", "show", "spans", "0", "1", "--json")
    assert shown["record"]["type"] == "Reward"
    assert headrace("dlq", "show", "spans", "0", "2").returncode == 1
    assert headrace("dlq", "show", "spans", "7", "0").returncode == 1
    assert headrace("dlq", "show", "nothing", "0", "0").returncode == 1
