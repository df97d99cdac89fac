"""An answer that is read while it comes."""

import asyncio
from collections.abc import Callable, Sequence

# A server that sends faster than its answer is read is held up above so many bytes.
HOLD_BYTES = 256 * 1024


class StreamedAnswer:
    """The body of one answer, in the order and about the pieces in which it comes.

    Args:
        hold: called with True to hold up the sender, with False to let it go on.

    Attributes:
        status, headers: there once `begin` has returned.
        ended: all of it has come.
    """

    def __init__(self, hold: Callable[[bool], None]) -> None:
        self.status = 0
        self.headers: Sequence[tuple[bytes, bytes]] = ()
        self.ended = False
        self._hold = hold
        self._held = False
        self._parts: list[bytes] = []
        self._size = 0
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    def header(self, name: bytes) -> bytes:
        """The value of a header, its name in lower case; empty where there is none."""
        return next((value for known, value in self.headers if known == name), b"")

    async def begin(self) -> None:
        """Returns when status and headers are there.

        Raises:
            ConnectionResetError, MalformedAnswerError: they did not come.
        """
        while not self.status:
            if self.ended:
                raise ConnectionResetError("closed without an answer")
            await self._more()

    async def read(self) -> bytes | None:
        """What has come since the last time, at least one byte; None at the end.

        Raises:
            ConnectionResetError, MalformedAnswerError: it was cut.
        """
        while not self._parts:
            if self.ended:
                return None
            await self._more()
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._held:
            self._held = False
            self._hold(False)
        return data

    async def rest(self) -> bytes:
        """All that is still to come. Raises as `read`."""
        parts: list[bytes] = []
        while (data := await self.read()) is not None:
            parts.append(data)
        return b"".join(parts)

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            await self._waiting
        finally:
            self._waiting = None

    def put_head(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Status and headers have come."""
        self.status, self.headers = status, headers

    def put(self, data: bytes) -> None:
        """More of the body has come."""
        if data:
            self._parts.append(data)
            self._size += len(data)
            if self._size > HOLD_BYTES and not self._held:
                self._held = True
                self._hold(True)
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """The answer is whole, or has failed."""
        self._error = error
        self.ended = error is None
        if self._held:  # the connection may carry another request
            self._held = False
            self._hold(False)
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
