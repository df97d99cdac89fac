"""What the shared clients tell the gateway beside the call."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

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
