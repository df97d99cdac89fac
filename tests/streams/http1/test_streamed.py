"""Answers that are read while they come."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from headrace.streams.http1.answers import AnswerReader, MalformedAnswerError
from headrace.streams.http1.connections import Connections
from headrace.streams.http1.streamed import HOLD_BYTES, StreamedAnswer

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n"
LIMIT = 10 * 1024 * 1024
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def test_parts_may_be_taken_before_the_answer_is_whole() -> None:
    whole = HEAD + b"3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n"
    reader = AnswerReader(100)
    reader.streamed = True
    for _ in range(2):
        taken, last = b"", None
        for i in range(len(whole)):
            assert last is None
            last = reader.feed(whole[i : i + 1])
            taken += reader.take()
        assert last is not None
        assert (taken + last.body, last.reusable, last.status) == (b"abcde", True, 200)


def test_the_limit_counts_what_was_taken() -> None:
    reader = AnswerReader(4)
    reader.streamed = True
    reader.feed(HEAD + b"3\r\nabc\r\n")
    assert reader.take() == b"abc"
    with pytest.raises(MalformedAnswerError):
        reader.feed(b"3\r\ndef\r\n")


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[Connections]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    pool = Connections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", LIMIT)
    try:
        yield pool
    finally:
        pool.close()
        server.close()


async def test_an_end_without_a_head_is_no_answer() -> None:
    answer = StreamedAnswer(lambda hold: None)
    answer.end()
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(answer.begin(), 60)


async def test_a_connection_carries_several_streams() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(HEAD)
            for piece in (b"2\r\nab\r\n", b"1\r\nc\r\n", b"0\r\n\r\n"):
                await asyncio.sleep(0)
                writer.write(piece)

    async with serving(serve) as pool:
        connections = set()
        for _ in range(3):
            connection = await pool.take(1)
            connections.add(connection)
            answer = await connection.stream(b"GET / HTTP/1.1\r\n\r\n")
            assert (answer.status, answer.header(b"content-type")) == (200, b"text/event-stream")
            assert await answer.read() in (b"ab", b"abc")
            pool.give_back_at_end(connection)  # before the end, which still comes
            assert await answer.rest() in (b"", b"c")
        assert len(connections) == 1


async def test_a_cut_answer_is_no_whole_one() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b"2\r\nab\r\n5\r\n12")

    async with serving(serve) as pool:
        connection = await pool.take(1)
        answer = await connection.stream(b"GET / HTTP/1.1\r\n\r\n")
        assert await answer.read() == b"ab"
        with pytest.raises(ConnectionResetError):
            await answer.read()
        assert not connection.usable


async def test_a_sender_that_is_too_fast_is_held_up() -> None:
    sent = 0
    block = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        for _ in range(256):
            writer.write(block)
            await writer.drain()
            sent += 0x8000
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async with serving(serve) as pool:
        connection = await pool.take(1)
        answer = await connection.stream(b"GET / HTTP/1.1\r\n\r\n")
        before = -1
        while sent != before:  # until it stands still
            before = sent
            await asyncio.sleep(0.02)
        assert HOLD_BYTES <= before < 256 * 0x8000
        assert len(await answer.rest()) == 256 * 0x8000
        assert connection.usable
