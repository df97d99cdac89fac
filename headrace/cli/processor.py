"""`headrace processor`: the stream processors."""

from __future__ import annotations

import logging
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from headrace.cli.grader import grader
from headrace.cli.options import Bootstrap, Prefix, Registry, WorkerId, print_ready, run_until_signal, settings_of
from headrace.cli.sources import duration_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.streams.kafka.transactional import Processor
    from headrace.streams.settings import Settings

log = logging.getLogger(__name__)
CLOSE_SECONDS = 2.0

app = typer.Typer(help="Run a stream processor.", no_args_is_help=True, add_completion=False)
app.command()(grader)


class RewardPolicy(StrEnum):
    """Which call a reward goes to."""

    first_occurrence = "first_occurrence"
    first_sibling = "first_sibling"
    final_only = "final_only"
    explicit = "explicit"


@app.callback()
def group() -> None:
    """Run a stream processor; more processes of one kind share its partitions."""


@app.command()
def lifecycle(
    bootstrap: Bootstrap = None, prefix: Prefix = None, registry: Registry = None, worker_id: WorkerId = None
) -> None:
    """Keep the state of every rollout: tasks and attempts in, rollouts and retries out.

    Example: headrace processor lifecycle --worker-id lifecycle-0
    """
    from headrace.streams.lifecycle.loop import LifecycleProcessor
    from headrace.streams.workers import new_worker_id

    settings = settings_of(bootstrap, prefix, registry)
    worker = worker_id or new_worker_id("lifecycle")
    _run_processor(settings, LifecycleProcessor(settings, worker), worker)


@app.command()
def assembler(
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
    agent_match: Annotated[
        str | None, typer.Option(help="Regular expression: only calls of agents that match give triplets.")
    ] = None,
    reward_policy: Annotated[
        RewardPolicy, typer.Option(help="Which call a reward goes to.")
    ] = RewardPolicy.first_occurrence,
    settle_seconds: Annotated[
        float | None, typer.Option(min=0, help="Wait for stragglers of attempts whose end is not complete.")
    ] = None,
    keep_incomplete: Annotated[bool, typer.Option(help="Keep answers whose stream was cut.")] = False,
    conversations: Annotated[bool, typer.Option(help="Write the calls as OpenAI messages too.")] = False,
) -> None:
    """Make trajectories: attempts, spans and rewards in, triplets out, each rollout once.

    Example: headrace processor assembler --worker-id assembler-0
    """
    from headrace.streams.assembly.loop import AssemblyProcessor
    from headrace.streams.assembly.settings import AssemblySettings
    from headrace.streams.workers import new_worker_id

    settings = settings_of(bootstrap, prefix, registry)
    try:
        re.compile(agent_match or "")
    except re.error as error:
        raise typer.BadParameter(
            f"{agent_match!r} is no regular expression: {error}", param_hint="--agent-match"
        ) from error
    choices = AssemblySettings(
        agent_match=agent_match,
        reward_policy=reward_policy.value,
        settle_seconds=settings.settle.total_seconds() if settle_seconds is None else settle_seconds,
        keep_incomplete=keep_incomplete,
        conversations=conversations,
    )
    worker = worker_id or new_worker_id("assembler")
    _run_processor(settings, AssemblyProcessor(settings, worker, choices), worker)


@app.command()
def view(
    database: Annotated[
        str | None, typer.Option(help="sqlite:///FILE or postgresql://USER@HOST/NAME [HEADRACE_VIEW].")
    ] = None,
    rebuild: Annotated[bool, typer.Option(help="Drop what is there, and read everything anew.")] = False,
    retention: Annotated[
        str | None,
        typer.Option(help="Remove rollouts that ended so long ago: 30d [HEADRACE_VIEW_RETENTION]; else they stay."),
    ] = None,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
) -> None:
    """Keep the pipeline's state as SQL tables, in SQLite (headrace-view.db in this folder) or PostgreSQL.

    Example: headrace processor view --database postgresql://headrace@127.0.0.1/headrace
    """
    logging.getLogger("alembic").setLevel("WARNING")  # it tells at length what it is about to do
    from headrace.streams.view.database import DEFAULT_DATABASE, open_database
    from headrace.streams.view.loop import ViewLoop
    from headrace.streams.view.migrate import check_pipeline, upgrade
    from headrace.streams.view.pruning import Pruner, check_age
    from headrace.streams.view.writer import ViewWriter
    from headrace.streams.workers import new_worker_id

    age = None if retention is None else duration_of(retention, "--retention")
    settings = settings_of(bootstrap, prefix, registry, view_retention=age)
    if settings.view_retention is not None:
        check_age(settings, settings.view_retention)
    engine = open_database(database or settings.view or DEFAULT_DATABASE)
    upgrade(engine, rebuild=rebuild)
    check_pipeline(engine, settings)
    worker = worker_id or new_worker_id("view")
    pruner = Pruner(engine, settings, settings.view_retention)
    _run(settings, ViewLoop(settings, ViewWriter(engine), pruner, worker), worker)


@app.command()
def statistics(
    bootstrap: Bootstrap = None, prefix: Prefix = None, registry: Registry = None, worker_id: WorkerId = None
) -> None:
    """Keep live rates of rollouts, spans and rewards (Faust).

    Example: headrace processor statistics
    """
    from headrace.streams.statistics.app import serve

    settings = settings_of(bootstrap, prefix, registry)
    run_until_signal(serve(settings, worker_id, lambda worker: print_ready("statistics", worker_id=worker)))


class Encoding(StrEnum):
    """How the Collector writes its messages."""

    otlp_proto = "otlp_proto"
    otlp_json = "otlp_json"


@app.command()
def otlp(
    topic: Annotated[str, typer.Option(help="The topic that the Collector's Kafka exporter writes.")] = "otlp_spans",
    encoding: Annotated[Encoding, typer.Option(help="As the Collector's exporter has it.")] = Encoding.otlp_proto,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
) -> None:
    """Take spans from the Kafka topic of an OpenTelemetry Collector.

    Example: headrace processor otlp --topic otlp_spans --encoding otlp_proto
    """
    from headrace.connectors.otlp.collector import BATCH, NAME, CollectorSource
    from headrace.connectors.otlp.settings import OtlpSettings
    from headrace.streams.kafka.admin import create_dead_letters, partition_ids
    from headrace.streams.kafka.group_loop import GroupLoop
    from headrace.streams.settings import load_settings_as
    from headrace.streams.workers import new_worker_id

    settings = load_settings_as(OtlpSettings, bootstrap=bootstrap, prefix=prefix, registry=registry)
    partition_ids(settings, settings.topic("spans"))
    create_dead_letters(settings, topic)
    worker = worker_id or new_worker_id(NAME)
    source = CollectorSource(settings, encoding.value, worker)
    _run(settings, GroupLoop(settings, NAME, [topic], source, worker, counters=source.counters, batch=BATCH), worker)


@app.command()
def otlp_export(
    endpoint: Annotated[
        str | None,
        typer.Option(help="The collector's URL, such as http://127.0.0.1:4318 [OTEL_EXPORTER_OTLP_ENDPOINT]."),
    ] = None,
    headers: Annotated[
        str | None, typer.Option(help="NAME=VALUE,NAME=VALUE of each request [OTEL_EXPORTER_OTLP_HEADERS].")
    ] = None,
    own_only: Annotated[
        bool, typer.Option("--own-only", help="Leave out what came by OTLP: for a collector that sends it here itself.")
    ] = False,
    bootstrap: Bootstrap = None,
    prefix: Prefix = None,
    registry: Registry = None,
    worker_id: WorkerId = None,
) -> None:
    """Send every span on to your own OpenTelemetry collector.

    Example: headrace processor otlp-export --endpoint http://127.0.0.1:4318 --headers "authorization=Bearer x"
    """
    from headrace.connectors.otlp.export import BATCH, NAME, SpanExport, make_exporter
    from headrace.streams.kafka.admin import partition_ids
    from headrace.streams.kafka.group_loop import GroupLoop
    from headrace.streams.workers import new_worker_id

    settings = settings_of(bootstrap, prefix, registry)
    exporter = make_exporter(endpoint, _headers(headers))
    topic = settings.topic("spans")
    partition_ids(settings, topic)
    worker = worker_id or new_worker_id(NAME)
    export = SpanExport(settings, exporter, worker, own_only=own_only)
    _run(settings, GroupLoop(settings, NAME, [topic], export, worker, counters=export.counters, batch=BATCH), worker)


def _headers(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if any(not name.strip() or not mark for name, mark, _ in pairs):
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE,NAME=VALUE", param_hint="--headers")
    return {name.strip(): value.strip() for name, _, value in pairs}


class _Loop(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def counters(self) -> dict[str, int]: ...
    def run(self, ready: Callable[[], None]) -> None: ...
    def stop(self) -> None: ...


def _run_processor(settings: Settings, processor: Processor, worker_id: str) -> None:
    from headrace.streams.kafka.transactional import TransactionalLoop

    _run(settings, TransactionalLoop(settings, processor, worker_id), worker_id)


def _run(settings: Settings, loop: _Loop, worker_id: str) -> None:
    """Runs a processor's loop until a signal; it announces itself as a worker meanwhile."""
    import asyncio

    from headrace.streams.kafka.acked_producer import AckedProducer
    from headrace.streams.workers import WorkerAnnouncer

    def ready() -> None:
        print_ready(loop.name, worker_id=worker_id)

    async def main() -> None:
        producer = AckedProducer(settings, f"{loop.name}-{worker_id}-announcer")
        announcer = WorkerAnnouncer(
            settings, producer, loop.name, worker_id=worker_id, counters=lambda: dict(loop.counters)
        )
        running = asyncio.ensure_future(asyncio.to_thread(loop.run, ready))
        try:
            # At once: where there is no broker the announcement waits for one, and the loop says so.
            await asyncio.gather(announcer.start(), asyncio.shield(running))
        finally:
            loop.stop()
            await asyncio.wait([running])
            await announcer.stop()
            await producer.close(CLOSE_SECONDS)
            log.info("%s stopped: %s", worker_id, loop.counters)

    run_until_signal(main())
