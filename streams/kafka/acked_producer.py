"""A producer for asyncio: `send` gives a future that is done when the brokers have acknowledged the record."""

import asyncio
import threading
from typing import Any

from confluent_kafka import KafkaException, Producer

from headrace.schemas.records import Record
from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.clients import BATCH_LINGER_MS, make_producer
from headrace.streams.kafka.messages import Headers, MessageMaker, OutMessage
from headrace.streams.settings import Settings

POLL_SECONDS = 0.2
FULL_QUEUE_PAUSE_SECONDS = 0.01
Position = tuple[int, int]


class DeliveryError(HeadraceError):
    """The brokers did not take a record within the delivery time-out."""

    retriable = True


class AckedProducer:
    """One thread polls for delivery reports and wakes the event loop once for all the reports of a poll.

    Make it on the loop that will await its futures, and close it there.
    """

    def __init__(self, settings: Settings, client_id: str, *, linger_ms: float = BATCH_LINGER_MS) -> None:
        self.message = MessageMaker(settings)
        self._loop = asyncio.get_running_loop()
        self._producer: Producer = make_producer(settings, client_id, linger_ms=linger_ms)
        self._reports: list[tuple[asyncio.Future[Position], Any, Any]] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=f"{client_id}-reports", daemon=True)
        self._thread.start()

    def send(self, record: Record, headers: Headers | None = None) -> asyncio.Future[Position]:
        """Sends a record; the future gives its (partition, offset).

        Raises:
            EncodeError: at once, when the record does not fit its schema.
            RecordTooLargeError: at once.
            DeliveryError: through the future.
        """
        return self.send_message(self.message(record, headers))

    def send_message(self, message: OutMessage) -> asyncio.Future[Position]:
        """As `send`, for a message that is made already."""
        future: asyncio.Future[Position] = self._loop.create_future()
        self._produce(message, future)
        return future

    def _produce(self, message: OutMessage, future: asyncio.Future[Position]) -> None:
        if future.cancelled():
            return

        def report(error: Any, sent: Any) -> None:
            self._reports.append((future, error, sent))

        try:
            self._producer.produce(
                message.topic,
                message.value,
                message.key,
                message.partition,
                on_delivery=report,
                headers=message.headers or None,  # type: ignore[arg-type]
            )
        except BufferError:  # the queue is full: brokers are slow or away, and whoever awaits waits a little longer
            self._loop.call_later(FULL_QUEUE_PAUSE_SECONDS, self._produce, message, future)
        except KafkaException as error:
            future.set_exception(DeliveryError(f"{message.topic}: {error}"))

    def _poll(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(POLL_SECONDS)
            if self._reports:
                reports, self._reports = self._reports, []
                self._loop.call_soon_threadsafe(self._wake, reports)

    @staticmethod
    def _wake(reports: list[tuple[asyncio.Future[Position], Any, Any]]) -> None:
        for future, error, sent in reports:
            if future.done():
                continue
            if error is not None:
                future.set_exception(DeliveryError(f"{sent.topic()}: {error.str()}"))
            else:
                future.set_result((sent.partition(), sent.offset()))

    async def close(self, timeout: float = 10.0) -> int:
        """Waits until what was sent is acknowledged; the number of records that were not."""
        left = await asyncio.to_thread(self._producer.flush, timeout)
        self._closing.set()
        await asyncio.to_thread(self._thread.join, POLL_SECONDS * 5)
        reports, self._reports = self._reports, []
        self._wake(reports)
        return left
