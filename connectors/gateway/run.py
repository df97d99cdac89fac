"""The gateway's process."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version

from headrace.connectors.gateway.dialects.anthropic import MessagesDialect
from headrace.connectors.gateway.dialects.responses import ResponsesDialect
from headrace.connectors.gateway.dialects.responses.history import History
from headrace.connectors.gateway.edge import LOOPBACK, base_url, check_host, make_edge, reachable
from headrace.connectors.gateway.engines import Engines
from headrace.connectors.gateway.gateway import Gateway
from headrace.connectors.gateway.operations import operations
from headrace.connectors.gateway.providers.calls import LiteLlm, check_provider
from headrace.connectors.gateway.providers.provided import ProviderCalls
from headrace.connectors.gateway.recorder import Recorder
from headrace.connectors.gateway.redaction import Redactor, load_hook
from headrace.connectors.gateway.server import Server
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.connectors.gateway.spans import SpanMaker
from headrace.connectors.gateway.spool import Spool, send_spooled
from headrace.connectors.gateway.token_in.continuing import TokenIn
from headrace.connectors.gateway.upstream import Upstream
from headrace.connectors.serving import allow_many_connections, bind, endpoint
from headrace.schemas.records import WorkerState
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, GATEWAY, WorkerAnnouncer, Workers, new_worker_id

REFRESH_SECONDS = 1.0
CLOSE_SECONDS = 3.0
# JSON with log-probabilities is several times larger than the record that is made of it.
MAX_ANSWER_BYTES = 128 * 1024 * 1024
LINGER_MS = 0.0  # the agent waits for the acknowledgement


def headrace_version() -> str:
    """The version of this installation."""
    return version("headrace")


async def run_gateway(
    settings: GatewaySettings,
    *,
    port: int = 0,
    host: str = LOOPBACK,
    url: str | None = None,
    policy: str | None = None,
    engine_urls: Sequence[str] = (),
    worker_id: str | None = None,
    ready: Callable[[str, str], None] = lambda url, worker_id: None,
) -> None:
    """Serves until it is cancelled.

    Args:
        host: only an address of this machine alone is served without keys.
        url: by which agents reach it, where that is not the address that it listens at.
        policy: only engines of this policy are called; all where it is None.
        engine_urls: call these instead of those that have announced themselves.
        ready: called with URL and worker id once calls are answered.

    Raises:
        BrokerUnavailableError, TopicError: there is no broker, or no topic for spans.
        PortError: the port is in use.
        InvalidValueError: a URL is none, or others would be served without keys.
        SettingsError: a provider cannot be called, or there is no such redaction hook.
        KeyFileError: the file of keys cannot be read.
        SpoolError: another gateway uses the spool.
    """
    check_host(host, settings.gateway_keys)
    url = base_url("--url", url) if url is not None else None
    engine_urls = [base_url("--engine", given).removesuffix("/v1") for given in engine_urls]
    redactor = Redactor(load_hook(settings.gateway_redact))
    for name, provider in settings.gateway_providers.items():
        check_provider(name, provider)
    allow_many_connections()
    listener = bind(port, host)
    await asyncio.to_thread(partition_ids, settings, settings.topic("spans"))
    url, worker_id = url or reachable(endpoint(listener), host), worker_id or new_worker_id(GATEWAY)
    loop = asyncio.get_running_loop()
    workers: Workers
    engines = Engines(lambda: workers.live(ENGINE, policy), engine_urls)

    def changed(state: WorkerState) -> None:
        if state.kind == ENGINE:
            loop.call_soon_threadsafe(engines.refresh)

    workers = Workers(settings, client_id=worker_id, changed=changed)
    producer = AckedProducer(settings, worker_id, linger_ms=LINGER_MS)
    edge = make_edge(settings, producer)
    spool = Spool(settings.gateway_spool, settings.gateway_spool_bytes) if settings.gateway_spool else None
    async with Upstream(settings.gateway_engine_timeout, MAX_ANSWER_BYTES) as upstream:
        spans = SpanMaker(worker_id, headrace_version())
        recorder = Recorder(
            producer, spans, settings.gateway_broker_wait, redactor, spool, settings.gateway_spool_after
        )
        providers = ProviderCalls(settings.gateway_providers, LiteLlm(settings.gateway_engine_timeout.total_seconds()))
        token_in = TokenIn(upstream, enabled=settings.gateway_token_in, max_bytes=settings.gateway_token_in_bytes)
        gateway = Gateway(settings, engines, upstream, recorder, providers, token_in)
        dialects = (MessagesDialect(), ResponsesDialect(History(settings.gateway_history_bytes)))
        server = Server(gateway, engines, operations(dialects), providers.names, edge, settings.gateway_max_body_bytes)
        counters = (gateway.counters, recorder.counters, edge.feedback.counters)
        announcer = _announcer(settings, producer, counters, worker_id, url, policy)
        watching = asyncio.create_task(_watch(engines, upstream))
        sending = asyncio.create_task(send_spooled(spool, producer)) if spool is not None else None
        try:
            await asyncio.to_thread(workers.start)
            await server.start(listener)
            await announcer.start()
            ready(url, worker_id)
            await watching
        finally:
            watching.cancel()
            recorder.hurry()
            await announcer.stop()
            await server.stop()
            if sending is not None:
                sending.cancel()
            edge.feedbacks.close()
            await producer.close(CLOSE_SECONDS)
            if spool is not None:
                spool.close()
            await asyncio.to_thread(workers.close)


def _announcer(
    settings: Settings,
    producer: AckedProducer,
    counters: Iterable[Counter[str]],
    worker_id: str,
    url: str,
    policy: str | None,
) -> WorkerAnnouncer:
    return WorkerAnnouncer(
        settings,
        producer,
        GATEWAY,
        worker_id=worker_id,
        endpoint=url,
        policy=policy,
        counters=lambda: dict(sum(counters, Counter[str]())),
    )


async def _watch(engines: Engines, upstream: Upstream) -> None:
    """Finds out what engines given by URL serve, and forgets those that have fallen silent."""
    while True:
        for engine in engines.given:
            if engine.model is None and (served := await upstream.served(engine.endpoint)) is not None:
                engine.model, engine.policy = served.model, served.policy
        engines.refresh()
        await asyncio.sleep(REFRESH_SECONDS)
