"""What clients of the gateway see while its broker is killed with -9 and away, and whether each answer has one span.

    .venv/bin/python tests/bench/gateway_outage.py [--away 40] [--clients 8] [--spool] [--stop]

Half of the clients stream. The engine is announced, as engines are. Printed: what clients saw, how long the slowest
answered call took, how soon calls are answered once the broker is back, the gateway's memory, and from the log:
answered calls without a span and with two, and spans of calls that were not answered. --spool: outside traffic, with a
spool. --stop: the gateway is told to stop while the broker is away.
"""

import argparse
import asyncio
import os
import signal
import tempfile
import time
import uuid
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import aiohttp
import psutil
from gateway_stub import BODY, CHAT, COMMAND, prepared, started, stub_engine

from headrace.local.ports import free_port
from headrace.schemas.records import Span
from headrace.streams.codec import Codec
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.streams.workers import ENGINE, WorkerAnnouncer

STEADY_SECONDS = 5.0
LAST_SECONDS = 90.0
PAUSE_SECONDS = 0.1
LATE_SECONDS = 3.0


class Clients:
    """Call one after the other, each call for another rollout, until they are told to stop.

    Attributes:
        seen: how often calls came to what.
        answered: seconds that each answered call took, by rollout.
        news: set by each answer.
    """

    def __init__(self, gateway: str, *, outside: bool) -> None:
        self._gateway, self._outside = gateway, outside
        self.seen: Counter[str] = Counter()
        self.answered: dict[str, float] = {}
        self.news = asyncio.Event()
        self.stopped = False

    async def run(self, session: aiohttp.ClientSession, *, stream: bool) -> None:
        """One client."""
        while not self.stopped:
            rollout, began = uuid.uuid4().hex, time.monotonic()
            try:
                what = await self._call(session, rollout, stream)
            except aiohttp.ClientError as error:
                what = type(error).__name__
            took = time.monotonic() - began
            if what == "answered":
                self.answered[rollout] = took
                self.news.set()
                what = "answered late" if took > LATE_SECONDS else what
            self.seen[f"{'streamed' if stream else 'whole'}: {what}"] += 1
            await asyncio.sleep(PAUSE_SECONDS)

    async def _call(self, session: aiohttp.ClientSession, rollout: str, stream: bool) -> str:
        url = self._gateway + ("" if self._outside else f"/rollout/{rollout}/attempt/{rollout}-1") + CHAT
        headers = {"x-rollout-id": rollout} if self._outside else {}
        async with session.post(url, json=BODY | {"stream": stream}, headers=headers) as response:
            text = await response.text()
            if response.status != 200:
                return f"{response.status}, Retry-After {response.headers.get('retry-after')}"
            whole = not stream or text.endswith("data: [DONE]\n\n")
            return "answered" if whole else "an error event in the place of the end"


def spans_of(settings: Settings) -> list[Span]:
    """All that were written, each as often as it was."""
    codec = Codec(settings)
    topic = settings.topic("spans")
    messages = read_topic(settings, topic, range(settings.partitions), client_id="bench")
    return [codec.decode_as(Span, message.value()) for message in messages]


def report(clients: Clients, settings: Settings) -> None:
    """Prints what was seen, and what the log says of it."""
    for what, count in sorted(clients.seen.items()):
        print(f"{count:6} {what}")
    spans = Counter((span.rollout_id, span.span_id) for span in spans_of(settings))
    written = Counter(rollout for rollout, _ in spans)
    answered = clients.answered
    print(
        f"{len(answered)} answered, the slowest after {max(answered.values()):.1f} s; without a span "
        f"{sum(written[r] == 0 for r in answered)}, with two {sum(written[r] > 1 for r in answered)}; "
        f"spans of calls that were not answered {sum(r not in answered for r in written)}; "
        f"records of a span that stood in the log already {spans.total() - len(spans)}"
    )


async def measure(given: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
    """Starts what is needed, kills the broker and prints what came of it."""
    broker = (COMMAND, "broker", "--port", str(free_port()), "--data", str(folder / "kafka"))
    _, facts = stack.enter_context(started(*broker))
    os.environ["HEADRACE_BOOTSTRAP"] = facts["bootstrap"]
    settings = prepared()
    os.environ["HEADRACE_PREFIX"] = settings.prefix
    if given.spool:
        os.environ["HEADRACE_GATEWAY_SPOOL"] = str(folder / "spool")
    producer = AckedProducer(settings, "bench-engine", linger_ms=0)
    engine = WorkerAnnouncer(settings, producer, ENGINE, endpoint=stack.enter_context(stub_engine()), policy="policy")
    await engine.start()
    process, ready = stack.enter_context(started(COMMAND, "gateway"))
    clients = Clients(ready["url"], outside=given.spool)
    async with AsyncExitStack() as later:
        session = await later.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        tasks = [asyncio.create_task(clients.run(session, stream=n % 2 == 1)) for n in range(given.clients)]
        await asyncio.sleep(STEADY_SECONDS)
        os.kill(facts["pid"], signal.SIGKILL)
        await asyncio.sleep(given.away)
        print(f"gateway's memory at the end of the outage: {process.memory_info().rss / 2**20:.0f} MiB")
        if given.stop:
            await _stopped(process)
            clients.stopped = True
        await asyncio.to_thread(stack.enter_context, started(*broker))
        if not given.stop:
            back = time.monotonic()
            clients.news.clear()
            await asyncio.wait_for(clients.news.wait(), LAST_SECONDS)
            print(f"broker ready; the first answer {time.monotonic() - back:.2f} s later")
            await asyncio.sleep(STEADY_SECONDS)
            clients.stopped = True
        await asyncio.wait(tasks, timeout=LAST_SECONDS)
        if not given.stop:
            await _stopped(process)
    await engine.stop()
    await producer.close()
    report(clients, settings)


async def _stopped(process: psutil.Process) -> None:
    began = time.monotonic()
    process.terminate()
    await asyncio.to_thread(process.wait, LAST_SECONDS)
    print(f"the gateway ended {time.monotonic() - began:.1f} s after SIGTERM")


def main() -> None:
    """Runs one outage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--away", type=float, default=40.0, help="seconds")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--spool", action="store_true")
    parser.add_argument("--stop", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        asyncio.run(measure(given, Path(folder), stack))


if __name__ == "__main__":
    main()
