"""The receiver's process."""

import asyncio
from collections.abc import Callable

from headrace.connectors.otlp.receiver import Receiver
from headrace.connectors.otlp.server import Server
from headrace.connectors.otlp.settings import OtlpSettings
from headrace.connectors.serving import bind, endpoint
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.workers import WorkerAnnouncer, new_worker_id

OTLP = "otlp"
CLOSE_SECONDS = 3.0
LINGER_MS = 2.0  # the exporter waits for the acknowledgement; its spans go to many partitions


async def run_otlp(
    settings: OtlpSettings,
    *,
    port: int = 0,
    worker_id: str | None = None,
    ready: Callable[[str, str], None] = lambda url, worker_id: None,
) -> None:
    """Serves until it is cancelled.

    Args:
        ready: called with URL and worker id once requests are answered.

    Raises:
        BrokerUnavailableError, TopicError: there is no broker, or no topic for spans.
        PortError: the port is in use.
    """
    listener = bind(port)
    await asyncio.to_thread(partition_ids, settings, settings.topic("spans"))
    url, worker_id = endpoint(listener), worker_id or new_worker_id(OTLP)
    producer = AckedProducer(settings, worker_id, linger_ms=LINGER_MS)
    receiver = Receiver(settings, producer, worker_id)
    server = Server(receiver, settings)
    announcer = WorkerAnnouncer(
        settings, producer, OTLP, worker_id=worker_id, endpoint=url, counters=lambda: dict(receiver.counters)
    )
    try:
        await server.start(listener)
        await announcer.start()
        ready(url, worker_id)
        await asyncio.Event().wait()
    finally:
        await announcer.stop()
        await server.stop()
        await producer.close(CLOSE_SECONDS)
