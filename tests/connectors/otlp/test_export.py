"""Collectors that refuse, hang, close, or answer nonsense; without a broker, for none of that is a dead letter."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from headrace.connectors.otlp.export import SpanExport, make_exporter
from headrace.schemas.records import Span
from headrace.streams.codec import Codec
from headrace.streams.errors import UnavailableError
from headrace.streams.kafka.messages import Message
from headrace.streams.settings import Settings

ANSWERS = {
    "closes": b"",
    "nonsense": b"\xff\xfe no HTTP\r\n\r\n",
    "half": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12",
    "busy": b"HTTP/1.1 429 Too Many\r\nretry-after: 100\r\ncontent-length: 0\r\n\r\n",
    "away": b"HTTP/1.1 503 No\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n",
    "forbidden": b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n",
}


class Written:
    """A message of the spans topic."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        return self._value


@contextmanager
def collector(answer: bytes | None) -> Generator[str]:
    """Answers every request the same, and hangs where there is no answer."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                if answer is None:
                    over.wait(20)
                else:
                    connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(90)


def exported(url: str) -> SpanExport:
    settings = Settings()
    export = SpanExport(settings, make_exporter(url, None), "test")
    now = 1_800_000_000_000_000_000
    trace, one = "0a" * 16, "0a" * 8
    span = Span(rollout_id="r", source="runner", name="x", start=now, end=now, trace_id=trace, span_id=one)
    message: Any = Written(Codec(settings).encode(span))
    export.handle([cast(Message, message)])
    return export


@pytest.mark.parametrize("name", ["hangs", *ANSWERS])
def test_spans_wait_for_a_collector_that_does_not_take_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")
    with collector(ANSWERS.get(name)) as url, pytest.raises(UnavailableError, match="the collector"):
        exported(url)


def test_no_collector_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.3")
    with collector(b"") as url:
        pass
    with pytest.raises(UnavailableError, match="does not answer"):
        exported(url)
