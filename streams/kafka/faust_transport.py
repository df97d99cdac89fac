"""Faust's aiokafka transport, made to read only what was committed.

Its driver reads uncommitted records unless Faust itself runs exactly-once, and would act on aborted ones.
"""

from typing import Any

from faust.transport.drivers import aiokafka as driver

FETCH_MIN_BYTES = 1024 * 1024
FETCH_WAIT_MS = 500


class CommittedThread(driver.AIOKafkaConsumerThread):
    """The consumer of a worker, read_committed."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer: Any = super()._create_worker_consumer(transport)
        # aiokafka reads these when it starts. Records are let gather at the broker: a fetch costs more than a record.
        consumer._isolation_level = "read_committed"
        consumer._fetch_min_bytes = FETCH_MIN_BYTES
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        return consumer


class CommittedConsumer(driver.Consumer):
    """As its base, with the thread of this module, and without two asyncio tasks for each record.

    Its base races the delivery of each record with the suspension of the flow, at 0.1 ms a record. Delivery waits for
    nothing while the flow is active, except for a stream whose buffer is full.
    """

    async def wait_first(self, *coros: Any, timeout: Any = None) -> Any:
        """Awaits the first of two coroutines, a delivery and the suspension, alone while the flow is active."""
        if not self.flow_active or len(coros) != 2 or timeout is not None:
            return await super().wait_first(*coros, timeout=timeout)
        delivery, suspension = coros
        suspension.close()
        await delivery
        return None

    def _new_consumer_thread(self) -> Any:
        return CommittedThread(self, loop=self.loop, beacon=self.beacon)


class CommittedTransport(driver.Transport):
    """Set it as `app.transport`."""

    Consumer = CommittedConsumer
