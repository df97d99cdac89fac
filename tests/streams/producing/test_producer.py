"""`TaskProducer` on a real broker, from plain code, threads and coroutines."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headrace.schemas.records import Task
from headrace.streams.codec import Codec
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.producing import TaskFieldError, TaskProducer
from headrace.streams.settings import Settings

pytestmark = pytest.mark.kafka


def tasks(settings: Settings) -> dict[str, Task]:
    topic = settings.topic("tasks")
    codec = Codec(settings)
    messages = read_topic(settings, topic, partition_ids(settings, topic), client_id="test")
    return {t.rollout_id: t for t in (codec.decode_as(Task, m.value()) for m in messages)}


def test_enqueue_returns_after_the_ack(settings: Settings) -> None:
    with TaskProducer(settings, run_id="run") as producer:
        config = {"timeout_seconds": 3, "max_attempts": 2}
        first = producer.enqueue({"q": "α"}, mode="train", config=config, metadata={"a": "b"})
        assert set(tasks(settings)) == {first}
        second = producer.enqueue(None, rollout_id="mine", group_id="g", group_size=2, sample_index=1)
        group = producer.enqueue_group([1, 2], 3, mode="val")
    found = tasks(settings)
    assert json.loads(found[first].input) == {"q": "α"}
    assert (found[first].config.timeout_seconds, found[first].config.max_attempts) == (3.0, 2)
    assert (found[first].run_id, found[first].metadata) == ("run", {"a": "b"})
    assert second == "mine"
    assert (found["mine"].group_id, found["mine"].group_size, found["mine"].sample_index) == ("g", 2, 1)
    assert [found[i].sample_index for i in group] == [0, 1, 2]
    producer.close()  # a second time


async def test_from_coroutines(settings: Settings) -> None:
    async with TaskProducer(settings) as producer:
        ids = await asyncio.gather(*(producer.enqueue_async(n) for n in range(50)))
    found = tasks(settings)
    assert [json.loads(found[i].input) for i in ids] == list(range(50))


def test_from_several_threads(settings: Settings) -> None:
    with TaskProducer(settings) as producer, ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(producer.enqueue, range(64)))
    assert set(ids) == set(tasks(settings))


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"input": float("nan")}, "input"),
    ({"input": 1, "rollout_id": "a~1"}, "rollout_id"),
    ({"input": 1, "mode": "x"}, "mode"),
    ({"input": 1, "config": {"timeout": 1}}, "config.timeout"),
    ({"input": 1, "config": {"max_attempts": "two"}}, "config"),
    ({"input": 1, "sample_index": 1}, "sample_index"),
    ({"input": "x" * 17_000_000}, "max_message_bytes"),
]


def test_what_no_task_may_have_is_refused(settings: Settings) -> None:
    with TaskProducer(settings.model_copy(update={"claim_check": "off"})) as producer:
        for arguments, named in REFUSED:
            with pytest.raises((TaskFieldError, RecordTooLargeError), match=named):
                producer.enqueue(**arguments)
    assert tasks(settings) == {}
