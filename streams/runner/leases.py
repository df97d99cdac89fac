"""Attempts whose worker has died: their lease is over, so that the next delivery may start."""

import asyncio
import logging
import time

from headrace.streams.errors import BrokerUnavailableError
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.kafka.barrier import end_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.clock import LogClock
from headrace.streams.runner.dispatch.dispatcher import Dispatcher
from headrace.streams.runner.events import lease_over
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

LOOKS_A_LEASE = 9
SLOW_SECONDS = 1.0  # brokers that answer no sooner may have kept heartbeats from the log
CATCH_UP_SECONDS = 0.5


class LeaseKeeper:
    """Looks for leases that are over, and writes `lost` for them; it counts when it is read back."""

    def __init__(
        self, settings: Settings, dispatcher: Dispatcher, producer: AckedProducer, clock: LogClock, worker_id: str
    ) -> None:
        self._settings = settings
        self._topic = settings.topic("attempts")
        self._dispatcher = dispatcher
        self._producer = producer
        self._clock = clock
        self._worker_id = worker_id
        self._lease = int(settings.lease.total_seconds() * 1e6)
        self._every = settings.lease.total_seconds() / LOOKS_A_LEASE
        self._next = 0.0
        self._looking = False

    def due(self, now: float) -> bool:
        """Whether it is time to look, by a monotonic clock in seconds."""
        if now < self._next or self._looking:
            return False
        self._next = now + self._every
        return True

    async def look(self) -> None:
        """Ends the deliveries whose lease is over, unless their signs of life may only be late."""
        if not self._dispatcher.leases_over(self._clock.now(), self._lease):
            return
        self._looking = True
        try:
            if not await self._log_is_read():
                self._dispatcher.renew(self._clock.now())
                return
            for over in self._dispatcher.leases_over(self._clock.now(), self._lease):
                log.warning("attempt %s gave no sign of life for a lease: it is lost", over.attempt_id)
                await self._producer.send(lease_over(over.entry, over.attempt_id, over.delivery, self._worker_id))
        except DeliveryError as error:  # brokers that are away for minutes; the next look writes it
            log.warning("the end of a lease was not written: %s", error)
        finally:
            self._looking = False

    async def _log_is_read(self) -> bool:
        """Whether the brokers answer at once, so that what they hold has been read after a moment."""
        began = time.monotonic()
        admin = make_admin(self._settings, self._worker_id)
        try:
            await asyncio.to_thread(end_offsets, admin, [(self._topic, 0)])
        except BrokerUnavailableError:
            return False
        if time.monotonic() - began > SLOW_SECONDS:
            return False
        await asyncio.sleep(CATCH_UP_SECONDS)
        return True
