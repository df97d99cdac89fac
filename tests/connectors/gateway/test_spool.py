"""Spans on disk while brokers are away."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.gateway.caller import identify
from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.recorder import Recorder
from headrace.connectors.gateway.spans import Observed, SpanMaker
from headrace.connectors.gateway.spool import Spool, SpoolError, send_spooled
from headrace.schemas.records import Span
from headrace.streams.codec import Codec
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.messages import OutMessage
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings, load_settings
from tests.waiting import eventually

from .conftest import free_port


def message(number: int) -> OutMessage:
    return OutMessage("spans", b"r", str(number).encode() * 10, [("traceparent", "x"), ("none", None)], -1)


def numbers(spool: Spool, count: int = 100) -> list[int]:
    return [int((m.value or b"")[:1]) for m in spool.first(count)[0]]


def test_what_was_appended_is_there_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "spool"
    spool = Spool(path, 10_000)
    assert not spool.pending
    assert all(spool.append(message(n)) for n in range(5))
    with pytest.raises(SpoolError, match="another gateway"):
        Spool(path, 10_000)
    found, after = spool.first(2)
    assert (found[1].topic, found[1].key, found[1].headers[0], len(found)) == ("spans", b"r", ("traceparent", b"x"), 2)
    spool.sent(after)
    spool.close()  # as a kill does: nothing is written at the end
    with open(path, "ab") as file:
        file.write(b"\x40\x00\x00\x00torn")
    again = Spool(path, 10_000)
    assert again.filled.is_set()
    assert numbers(again) == [2, 3, 4]
    again.append(message(5))
    assert numbers(again) == [2, 3, 4, 5]
    again.sent(again.first()[1])
    assert (again.pending, again.filled.is_set(), os.path.getsize(path)) == (False, False, 0)
    again.append(message(6))
    assert numbers(again) == [6]
    again.close()


def test_it_is_bounded(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 200)
    taken = [spool.append(message(n)) for n in range(9)]
    assert 0 < sum(taken) < 9
    assert os.path.getsize(tmp_path / "spool") <= 200
    spool.sent(spool.first()[1])
    assert spool.append(message(1))
    spool.close()


@pytest.mark.kafka
async def test_outside_calls_are_answered_and_their_spans_sent_later(settings: Settings, tmp_path: Path) -> None:
    away = load_settings(**{**settings.model_dump(), "bootstrap": f"127.0.0.1:{free_port()}"})
    calls: list[Any] = [
        Observed(identify(None, None, {"x-rollout-id": "mine"}), b"{}", started_at=n, ended_at=n) for n in range(3)
    ]
    spool = Spool(tmp_path / "spool", 10_000)
    producer = AckedProducer(away, "away", linger_ms=0)
    maker, second = SpanMaker("w", "1"), timedelta(seconds=0.2)
    recorder = Recorder(producer, maker, second, spool=spool, spool_after=second)
    for call in calls:
        await recorder.record(call)
    assert recorder.counters["spooled"] == 3
    with pytest.raises(CallError, match="no broker"):  # a runner's agent tries again, so it waits
        await recorder.record(Observed(identify("ro", "ro-1", {}), b"{}", started_at=9))
    await producer.close(0.1)
    spool.close()
    spool = Spool(tmp_path / "spool", 10_000)
    producer = AckedProducer(settings, "back", linger_ms=0)
    sending = asyncio.create_task(send_spooled(spool, producer))
    await eventually(lambda: not spool.pending)
    await Recorder(producer, maker, timedelta(seconds=30), spool=spool).record(calls[0])
    sending.cancel()
    await producer.close()
    spool.close()
    codec = Codec(settings)
    read = await asyncio.to_thread(
        lambda: list(read_topic(settings, settings.topic("spans"), [0, 1, 2], client_id="t"))
    )
    assert [codec.decode_as(Span, m.value()).start for m in read] == [0, 1, 2, 0]
