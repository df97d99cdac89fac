"""What the shared clients tell the gateway beside the call."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import openai
import pytest

from headrace.streams.agent.clients import MODE_HEADER, async_client, close_async_client, sync_client
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.agent.tracer import CURRENT, AttemptTracer

ANSWER = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": []}).encode()


class NoWriter:
    """Nothing is emitted here."""

    def send(self, record: object) -> asyncio.Future[tuple[int, int]]:
        raise AssertionError(record)


@pytest.fixture
def server() -> Iterator[tuple[str, list[str | None]]]:
    """A model server that notes the mode of each call."""
    modes: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            modes.append(self.headers.get(MODE_HEADER))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(ANSWER)))
            self.end_headers()
            self.wfile.write(ANSWER)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1", modes
    http.shutdown()


def attempt(mode: str | None) -> AttemptTracer:
    """The tracer of an attempt of a mode."""
    return AttemptTracer(
        Rollout(rollout_id="r", attempt_id="r-1", attempt=1, delivery=1, input=None, mode=mode), NoWriter()
    )


@pytest.mark.parametrize(("mode", "said"), [("val", "val"), ("test", "test"), ("train", None), (None, None)])
async def test_a_call_says_its_mode_unless_it_is_train(
    server: tuple[str, list[str | None]], mode: str | None, said: str | None
) -> None:
    url, modes = server
    CURRENT.set(attempt(mode))
    await async_client(url).chat.completions.create(model="m", messages=[])
    await asyncio.to_thread(sync_client(url).chat.completions.create, model="m", messages=[])
    await close_async_client()
    assert modes == [said, said]


@pytest.fixture
def streaming() -> Iterator[str]:
    """A model server that answers with two server-sent events, and then with its end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for word in ("one ", "two"):
                chunk = {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "created": 0,
                    "model": "m",
                    "choices": [{"index": 0, "delta": {"content": word}}],
                }
                self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()


async def test_a_streamed_answer_comes_in_pieces(streaming: str) -> None:
    stream = await async_client(streaming).chat.completions.create(
        model="m", messages=[{"role": "user", "content": 'a "stream" of words'}], stream=True
    )
    assert [chunk.choices[0].delta.content async for chunk in stream] == ["one ", "two"]
    await close_async_client()


async def test_no_server_is_a_connection_error() -> None:
    client = async_client("http://127.0.0.1:9/v1").with_options(max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    await close_async_client()


async def test_a_slow_server_is_a_timeout() -> None:
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silence, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = async_client(f"http://127.0.0.1:{port}/v1").with_options(max_retries=0, timeout=0.05)
    with pytest.raises(openai.APITimeoutError):
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    await close_async_client()
    server.close()


async def test_a_header_with_a_line_break_is_refused(server: tuple[str, list[str | None]]) -> None:
    client = async_client(server[0]).with_options(max_retries=0)
    with pytest.raises(openai.APIConnectionError):
        await client.chat.completions.create(model="m", messages=[], extra_headers={"x": "a\r\nb: c"})
    assert server[1] == []
    await close_async_client()
