"""Spans that wait on disk for brokers that are away, in their order."""

import asyncio
import fcntl
import logging
import os
import struct
import zlib
from pathlib import Path

import msgspec

from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.kafka.messages import OutMessage

log = logging.getLogger(__name__)

HEAD = struct.Struct("<II")  # length and CRC-32 of a message
POSITION = struct.Struct("<Q")
AT_ONCE = 100
PAUSE_SECONDS = 1.0
Plain = tuple[str, bytes | None, bytes | None, list[tuple[str, bytes | None]], int]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Plain).decode


class SpoolError(HeadraceError):
    """The spool cannot be used."""


class Spool:
    """A file that grows at its end, and beside it how far it was sent; emptied when all was.

    What was appended is there after the process was killed. A crash of the machine may lose the newest. What was sent
    and not noted is sent again: readers know spans by their ids.

    Args:
        max_bytes: of the file.

    Raises:
        SpoolError: another process uses it, or it cannot be opened.
    """

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            self._note = os.open(path.with_name(path.name + ".sent"), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SpoolError(f"{path}: another gateway spools there; each needs a file of its own") from error
        except OSError as error:
            raise SpoolError(f"{path} cannot be opened: {error.strerror}") from error
        self._end = os.fstat(self._file).st_size
        noted = os.pread(self._note, POSITION.size, 0)
        self._sent = POSITION.unpack(noted)[0] if len(noted) == POSITION.size else 0
        if self._sent > self._end:
            self._sent = 0  # it was killed between emptying the file and noting that
        self._cut_torn_end()
        self.filled = asyncio.Event()
        if self.pending:
            self.filled.set()

    @property
    def pending(self) -> bool:
        """Whether anything waits."""
        return self._sent < self._end

    def append(self, message: OutMessage) -> bool:
        """Keeps a message; False where the file is full."""
        headers = [(name, value.encode() if isinstance(value, str) else value) for name, value in message.headers]
        payload = _encode((message.topic, message.key, message.value, headers, message.partition))
        frame = HEAD.pack(len(payload), zlib.crc32(payload)) + payload
        if self._end + len(frame) > self._max_bytes:
            return False
        try:
            written = os.pwrite(self._file, frame, self._end)
        except OSError as error:
            log.error("a span cannot be spooled: %s", error.strerror)
            return False
        if written < len(frame):  # the disk is full; the next one overwrites it
            return False
        self._end += len(frame)
        self.filled.set()
        return True

    def first(self, count: int = AT_ONCE) -> tuple[list[OutMessage], int]:
        """The messages that wait longest, and the position after them."""
        found: list[OutMessage] = []
        at = self._sent
        while len(found) < count and (frame := self._frame(at)) is not None:
            payload, at = frame
            topic, key, value, headers, partition = _decode(payload)
            found.append(OutMessage(topic, key, value, list(headers), partition))
        return found, at

    def sent(self, position: int) -> None:
        """All before a position has been acknowledged."""
        self._sent = position
        if not self.pending:
            os.ftruncate(self._file, 0)
            self._sent = self._end = 0
            self.filled.clear()
        os.pwrite(self._note, POSITION.pack(self._sent), 0)

    def close(self) -> None:
        """Lets the files go; what waits stays in them."""
        os.close(self._file)
        os.close(self._note)

    def _frame(self, at: int) -> tuple[bytes, int] | None:
        head = os.pread(self._file, HEAD.size, at)
        if at + HEAD.size > self._end or len(head) < HEAD.size:
            return None
        length, checksum = HEAD.unpack(head)
        after = at + HEAD.size + length
        payload = os.pread(self._file, length, at + HEAD.size) if after <= self._end else b""
        return (payload, after) if len(payload) == length and zlib.crc32(payload) == checksum else None

    def _cut_torn_end(self) -> None:
        at = self._sent
        while (frame := self._frame(at)) is not None:
            at = frame[1]
        if at < self._end:
            log.warning("the spool ends in a message that was not written whole; it is left out")
            os.ftruncate(self._file, at)
            self._end = at


async def send_spooled(spool: Spool, producer: AckedProducer) -> None:
    """Sends what waits, whenever the brokers are there, until it is cancelled."""
    while True:
        await spool.filled.wait()
        try:
            messages, after = spool.first()
            if not messages:
                raise SpoolError("the spool holds what was not written there")
            await producer.send_all(messages)
            spool.sent(after)
        except (DeliveryError, SpoolError, OSError) as error:
            log.warning("spans wait in the spool: %s", error)
            await asyncio.sleep(PAUSE_SECONDS)
