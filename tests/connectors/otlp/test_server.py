"""Clients of `POST /v1/traces` that are slow, or never end what they have begun."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headrace.connectors.otlp import server
from headrace.connectors.serving import bind
from tests.connectors.otlp.memory import MemoryReceiver
from tests.connectors.otlp.test_receiver import request_of

HEAD = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\ncontent-length: {}\r\n\r\n"
Connect = Callable[[], Any]


@asynccontextmanager
async def serving(**changes: Any) -> AsyncGenerator[tuple[MemoryReceiver, Connect]]:
    receiver = MemoryReceiver(**changes)
    http, listener = server.Server(receiver.receiver, receiver.settings), bind(0)
    port = listener.getsockname()[1]
    await http.start(listener)
    try:
        yield receiver, lambda: asyncio.open_connection("127.0.0.1", port)
    finally:
        await http.stop()


async def status_of(reader: asyncio.StreamReader) -> int:
    line = await asyncio.wait_for(reader.readline(), 60)
    return int(line.split()[1])


async def ask(connect: Connect, body: bytes) -> int:
    reader, writer = await connect()
    writer.write(HEAD.format(len(body)).encode() + body)
    found = await status_of(reader)
    writer.close()
    return found


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with serving(otlp_body_wait=0.5) as (receiver, connect):
        reader, writer = await connect()
        writer.write(HEAD.format(1000).encode() + b"\x0a")
        assert await status_of(reader) == 408
        writer.close()
        assert await ask(connect, request_of(2).SerializeToString()) == 200
    assert receiver.receiver.counters["answered_408"] == 1
    assert len(receiver.spans) == 2


async def test_bodies_that_are_being_read_are_bounded_all_together() -> None:
    body = request_of(200).SerializeToString()
    async with serving(otlp_max_in_hand_bytes=len(body) + 1000) as (receiver, connect):
        held = await connect()
        held[1].write(HEAD.format(len(body)).encode() + body[:2000])
        deadline = time.monotonic() + 60
        while await ask(connect, body) != 429:  # until the half of the first has arrived
            assert time.monotonic() < deadline
        held[1].write(body[2000:])
        assert await status_of(held[0]) == 200
        held[1].close()
        assert await ask(connect, body) == 200  # nothing of what was refused is still counted
    assert receiver.receiver.counters["answered_429"] == 1


async def test_half_a_head_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "IDLE_SECONDS", 0.1)
    async with serving() as (_, connect):
        reader, writer = await connect()
        writer.write(b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n")
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
