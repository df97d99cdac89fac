"""A producer for asyncio: `send` gives a future that is done when the brokers have acknowledged the record."""

import asyncio
import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from headrace.schemas.records import Record
from headrace.streams.claims import ClaimsUnavailableError
from headrace.streams.errors import BrokerUnavailableError, HeadraceError, RecordTooLargeError
from headrace.streams.kafka.clients import BATCH_LINGER_MS, make_producer
from headrace.streams.kafka.messages import Headers, MessageMaker, OutMessage
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
FULL_QUEUE_PAUSE_SECONDS = 0.01
INSIST_SECONDS = 1.0
NEW_CLIENT_SECONDS = 1.0  # at least, between two clients
LAST_REPORTS_SECONDS = 10.0  # what is purged is reported at once
Position = tuple[int, int]

# What a client says of its messages when it has failed for good, or was emptied because of that.
FAILED_CLIENT = frozenset(
    {
        KafkaError._FATAL,  # pyright: ignore[reportPrivateUsage]
        KafkaError._PURGE_QUEUE,  # pyright: ignore[reportPrivateUsage]
        KafkaError._PURGE_INFLIGHT,  # pyright: ignore[reportPrivateUsage]
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN_PRODUCER_ID,
        KafkaError.INVALID_PRODUCER_EPOCH,
    }
)


class DeliveryError(HeadraceError):
    """The brokers did not take a record within the delivery time-out."""

    retriable = True


class _Batch:
    """Several records that one future waits for, in the place of a future for each: it is done when all are."""

    __slots__ = ("_future", "_left")

    def __init__(self, future: asyncio.Future[None], count: int) -> None:
        self._future = future
        self._left = count

    def done(self) -> bool:
        return self._future.done()

    def cancelled(self) -> bool:
        return self._future.cancelled()

    def set_result(self, result: Position) -> None:
        self._left -= 1
        if not self._left:
            self._future.set_result(None)

    def set_exception(self, exception: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(exception)


Unsent = tuple[int, OutMessage, asyncio.Future[Position] | _Batch]  # with its place in the order of sending
Report = tuple[int, Unsent, Any, Any]  # first the client, as the how manieth it is


class AckedProducer:
    """One thread polls for delivery reports and wakes the event loop once for all the reports of a poll.

    An idempotent client may fail for good (KIP-98's sequence numbers; librdkafka's fatal errors). It is replaced then,
    and what it has not had acknowledged is sent again in its order: readers know records that come twice.

    Make it on the loop that will await its futures, and close it there.
    """

    def __init__(self, settings: Settings, client_id: str, *, linger_ms: float = BATCH_LINGER_MS) -> None:
        self.message = MessageMaker(settings)
        self._loop = asyncio.get_running_loop()
        self._client_id = client_id
        self._make: Callable[[], Producer] = lambda: make_producer(settings, client_id, linger_ms=linger_ms)
        self._producer = self._make()
        self._made_at = time.monotonic()
        self._reports: list[Report] = []
        self._again: list[Unsent] = []
        self._places = itertools.count()
        self._claiming: set[asyncio.Task[None]] = set()
        self._clients = 1
        self._failed = False
        self._replacing = False
        self._handing_over = threading.Lock()  # between a look at `_replacing` and what follows from it
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._poll, name=f"{client_id}-reports", daemon=True)
        self._thread.start()

    def send(self, record: Record, headers: Headers | None = None) -> asyncio.Future[Position]:
        """Sends a record; the future gives its (partition, offset).

        One that goes by claim-check is sent when the store has it: what is sent meanwhile stands before it.

        Raises:
            EncodeError: at once, when the record does not fit its schema.
            RecordTooLargeError: at once; through the future where the store refuses.
            DeliveryError: through the future, also when the store does not answer.
        """
        message = self.message.whole(record, headers)
        if self.message.fits(message):
            return self.send_message(message)
        self.message.check(message, f"a {record.SCHEMA}")
        future: asyncio.Future[Position] = self._loop.create_future()
        claiming = self._loop.create_task(self._claim(message, future))
        self._claiming.add(claiming)
        claiming.add_done_callback(self._claiming.discard)
        return future

    async def make(self, record: Record, headers: Headers | None = None) -> OutMessage:
        """The message of a record; one that goes by claim-check is written on another thread.

        Raises:
            EncodeError, RecordTooLargeError: as `send`.
            DeliveryError: the store does not answer.
        """
        message = self.message.whole(record, headers)
        if self.message.fits(message):
            return message
        self.message.check(message, f"a {record.SCHEMA}")
        return await self._claimed(message)

    def send_message(self, message: OutMessage) -> asyncio.Future[Position]:
        """As `send`, for a message that is made already."""
        future: asyncio.Future[Position] = self._loop.create_future()
        self._produce((next(self._places), message, future))
        return future

    def send_all(self, messages: Sequence[OutMessage]) -> asyncio.Future[None]:
        """Sends messages; the future is done when the brokers have all of them, or when the first one fails."""
        future: asyncio.Future[None] = self._loop.create_future()
        if not messages:
            future.set_result(None)
        batch = _Batch(future, len(messages))
        for message in messages:
            self._produce((next(self._places), message, batch))
        return future

    async def _claimed(self, message: OutMessage) -> OutMessage:
        try:
            return await asyncio.to_thread(self.message.claimed, message)
        except (ClaimsUnavailableError, BrokerUnavailableError) as error:
            raise DeliveryError(f"{message.topic}: {error}") from error

    async def _claim(self, message: OutMessage, future: asyncio.Future[Position]) -> None:
        try:
            claimed = await self._claimed(message)
        except (DeliveryError, RecordTooLargeError) as error:
            if not future.done():
                future.set_exception(error)
        else:
            self._produce((next(self._places), claimed, future))

    async def insist(self, message: OutMessage) -> Position:
        """Sends a message, and again for as long as the brokers are away."""
        while True:
            try:
                return await self.send_message(message)
            except DeliveryError as error:
                log.warning("%s: sending again: %s", self._client_id, error)
                await asyncio.sleep(INSIST_SECONDS)

    async def insist_on(self, record: Record) -> Position:
        """Sends a record, for as long as the brokers, or the store that its value goes to, are away.

        Raises:
            EncodeError, RecordTooLargeError: as `make`.
        """
        while True:
            try:
                message = await self.make(record)
                break
            except DeliveryError as error:
                log.warning("%s: trying again: %s", self._client_id, error)
                await asyncio.sleep(INSIST_SECONDS)
        return await self.insist(message)

    def post(self, message: OutMessage) -> None:
        """Sends a message that nobody waits for; from any thread. One that is not taken is logged."""
        try:
            self._hand_over(message, self._posted)
        except (BufferError, KafkaException) as error:
            log.warning("%s: not sent: %s", message.topic, error)

    @staticmethod
    def _posted(error: Any, sent: Any) -> None:
        if error is not None:
            log.warning("%s: not written: %s", sent.topic(), error.str())

    def _produce(self, unsent: Unsent) -> None:
        _, message, future = unsent
        if future.cancelled():
            return

        client = self._clients

        def report(error: Any, sent: Any) -> None:
            self._reports.append((client, unsent, error, sent))

        try:
            with self._handing_over:
                if self._replacing:
                    self._again.append(unsent)
                    return
                self._hand_over(message, report)
        except BufferError:  # the queue is full: brokers are slow or away, and whoever awaits waits a little longer
            self._loop.call_later(FULL_QUEUE_PAUSE_SECONDS, self._produce, unsent)
        except KafkaException as error:
            if error.args[0].code() in FAILED_CLIENT:
                self._failed = True
                self._again.append(unsent)
            else:
                future.set_exception(DeliveryError(f"{message.topic}: {error}"))

    def _hand_over(self, message: OutMessage, report: Callable[[Any, Any], None]) -> None:
        self._producer.produce(
            message.topic,
            message.value,
            message.key,
            message.partition,
            on_delivery=report,
            headers=message.headers or None,  # type: ignore[arg-type]
        )

    def _poll(self) -> None:
        while not self._closing.is_set():
            try:
                self._producer.poll(POLL_SECONDS)
            except KafkaException as error:
                if not error.args[0].fatal():
                    raise
                self._failed = True
            if self._reports:
                reports, self._reports = self._reports, []
                self._loop.call_soon_threadsafe(self._wake, reports)
            if self._failed and time.monotonic() - self._made_at > NEW_CLIENT_SECONDS:
                self._replace()

    def _replace(self) -> None:
        """On the polling thread: the last reports of the client that has failed, and a new one.

        It is the loop that goes on with the new one, once it has all that the old one did not send: what is sent
        meanwhile waits behind that.
        """
        log.error("%s: the Kafka client has failed for good; going on with a new one", self._client_id)
        with self._handing_over:
            self._replacing = True
        old, new = self._producer, self._make()
        old.purge()
        with suppress(KafkaException):  # it says once more that it has failed
            old.poll(0)
        with suppress(KafkaException):
            old.flush(LAST_REPORTS_SECONDS)
        reports, self._reports = self._reports, []
        taken = threading.Event()
        self._loop.call_soon_threadsafe(self._wake, reports)
        self._loop.call_soon_threadsafe(self._go_on_with, new, taken)
        while not taken.wait(POLL_SECONDS) and not self._closing.is_set():
            pass

    def _go_on_with(self, new: Producer, taken: threading.Event) -> None:
        self._producer = new
        self._made_at = time.monotonic()
        self._clients += 1
        self._failed = self._replacing = False
        again, self._again = self._again, []
        for unsent in sorted(again, key=_place):
            self._produce(unsent)
        taken.set()

    def _give_up(self) -> None:
        """What is not acknowledged has a report all the same."""
        self._producer.purge()
        with suppress(KafkaException):
            self._producer.flush(LAST_REPORTS_SECONDS)

    def _wake(self, reports: list[Report]) -> None:
        for client, unsent, error, sent in reports:
            future = unsent[2]
            if future.done():
                continue
            if error is None:
                future.set_result((sent.partition(), sent.offset()))
            elif error.code() in FAILED_CLIENT and not self._closing.is_set():
                self._failed = self._failed or client == self._clients
                self._again.append(unsent)
            else:
                future.set_exception(DeliveryError(f"{sent.topic()}: {error.str()}"))

    async def close(self, timeout: float = 10.0) -> int:
        """Waits until what was sent is acknowledged; the number of records that were not, which are logged."""
        if self._claiming:
            await asyncio.wait(self._claiming, timeout=timeout)
        try:
            left = await asyncio.to_thread(self._producer.flush, timeout)
        except KafkaException as error:  # the client has failed for good
            log.warning("%s: closing: %s", self._client_id, error)
            left = len(self._producer)
        self._closing.set()
        await asyncio.to_thread(self._thread.join, POLL_SECONDS * 5)
        if left:
            await asyncio.to_thread(self._give_up)
        reports, self._reports = self._reports, []
        self._wake(reports)
        lost = Counter(unsent[1].topic for _, unsent, error, _ in reports if error is not None)
        lost.update(message.topic for _, message, _ in self._again)
        if lost:
            names = ", ".join(f"{count} of {topic}" for topic, count in sorted(lost.items()))
            log.error("%s: records that no broker has acknowledged are given up: %s", self._client_id, names)
        for _, message, future in self._again:
            if not future.done():
                future.set_exception(DeliveryError(f"{message.topic}: the producer was closed"))
        return left


def _place(unsent: Unsent) -> int:
    return unsent[0]
