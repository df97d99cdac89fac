"""What a runner and its children say to each other over a socket: msgpack in frames of a length and so many bytes."""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any, cast

import msgspec

from headrace.schemas.records import ErrorInfo, Reward
from headrace.streams.agent.resources import LLM, PromptTemplate, Resource, Resources
from headrace.streams.agent.rollout_facts import Rollout
from headrace.streams.runner.options import ObserverOptions

LENGTH = struct.Struct("<I")


class Frame(msgspec.Struct, frozen=True, tag=True):
    """Anything that goes over the socket."""


class Setup(Frame, frozen=True):
    """To the child, first: the agent it runs (`MODULE_OR_FILE:AGENT`), with which settings (JSON), for which runner."""

    agent: str
    settings: str
    log_level: int
    worker_id: str = ""
    observers: ObserverOptions = msgspec.field(default_factory=ObserverOptions)


class Ready(Frame, frozen=True):
    """From the child: its agent is loaded; or it is not, and why."""

    error: str | None = None


class Work(Frame, frozen=True):
    """To the child: run this. The input is text, since msgpack has no integers as large as JSON's."""

    rollout: Rollout
    input: str
    llms: dict[str, LLM]
    templates: dict[str, PromptTemplate]
    order: list[str]
    resources_id: str | None


class Gateways(Frame, frozen=True):
    """To the child: gateways that answer, and all that have been."""

    live: list[str]
    known: list[str]


class Stop(Frame, frozen=True):
    """To the child: the attempt was ended from outside; a coroutine is cancelled."""


class Say(Frame, frozen=True):
    """From the child: write this record, and tell when the brokers have it."""

    number: int
    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, Any]]  # text, bytes or nothing
    partition: int


class Acked(Frame, frozen=True):
    """To the child: a record is in the log, or why it is not."""

    number: int
    partition: int = -1
    offset: int = -1
    error: str | None = None


class Done(Frame, frozen=True):
    """From the child: the agent has returned, or has stopped after `Stop`."""

    status: str
    reward: Reward | None = None
    error: ErrorInfo | None = None
    threads: int = 0  # that live in the child now
    counts: dict[str, int] = {}  # what was counted since the last one


ToChild = Work | Gateways | Stop | Acked
FromChild = Ready | Say | Done
_encoder = msgspec.msgpack.Encoder()


def work_of(rollout: Rollout, text: str, resources: Resources) -> Work:
    """The work of a rollout; `text` is its input as JSON."""
    return Work(
        rollout=msgspec.structs.replace(rollout, input=None),
        input=text,
        llms={name: r for name, r in resources.items() if isinstance(r, LLM)},
        templates={name: r for name, r in resources.items() if isinstance(r, PromptTemplate)},
        order=list(resources),
        resources_id=resources.resources_id,
    )


def resources_of(work: Work) -> Resources:
    """The resources of a work, in the order of their publication."""
    named: dict[str, Resource] = {**work.llms, **work.templates}
    return Resources({name: named[name] for name in work.order}, work.resources_id)


def read_setup(own: socket.socket) -> Setup:
    """The first frame that a child gets, read before it has an event loop.

    Raises:
        EOFError: the parent is gone.
    """
    (length,) = LENGTH.unpack(_read(own, LENGTH.size))
    return msgspec.msgpack.decode(_read(own, length), type=Setup)


def _read(own: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = own.recv(count - len(parts))
        if not part:
            raise EOFError("the parent is gone")
        parts += part
    return bytes(parts)


class FrameLink(asyncio.Protocol):
    """One end of the socket.

    Args:
        kinds: the union of the frames that come here.
        received: called with each of them.
        lost: called once, when the other end is gone.
    """

    def __init__(self, kinds: Any, received: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._decoder = msgspec.msgpack.Decoder(kinds)
        self._received = received
        self._lost = lost
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def send(self, frame: Frame) -> None:
        """Sends a frame; nothing happens when the other end is gone."""
        if self._transport is not None and not self._transport.is_closing():
            body = _encoder.encode(frame)
            self._transport.write(LENGTH.pack(len(body)) + body)

    def close(self) -> None:
        """Closes this end."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer, start)
            end = start + LENGTH.size + length
            if len(self._buffer) < end:
                break
            frame = self._decoder.decode(memoryview(self._buffer)[start + LENGTH.size : end])
            start = end
            self._received(frame)
        if start:
            del self._buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._lost()
