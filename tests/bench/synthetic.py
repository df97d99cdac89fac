"""Synthetic rollouts for the benchmarks, as producers, runners and the gateway write them; and a broker for them."""

import argparse
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import (
    AttemptEvent,
    Choice,
    ErrorInfo,
    ModelCall,
    Record,
    Reward,
    Span,
    Task,
    TaskConfig,
    TaskFacts,
    VersionRange,
)
from headrace.streams.kafka.admin import create_topics
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings, load_settings

COMMAND = str(Path(sys.executable).parent / "headrace")
GROUP_SIZE = 16
INPUT = '{"digit": 3}'
ATTRIBUTES = json.dumps({f"gen_ai.attribute.{i}": "x" * 30 for i in range(12)})
REQUEST = json.dumps({"messages": [{"role": "user", "content": "pick a digit"}]})


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    """The flag that names a broker which runs already."""
    parser.add_argument("--bootstrap", help="a broker that runs already; default: one of its own")


@contextmanager
def broker(bootstrap: str | None) -> Iterator[tuple[str, int | None]]:
    """A broker's address and, if it was started here, its process id."""
    if bootstrap:
        yield bootstrap, None
        return
    process = subprocess.Popen([COMMAND, "broker"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        yield ready["bootstrap"], ready["pid"]
    finally:
        process.terminate()
        process.wait(30)


def fresh_settings(bootstrap: str, partitions: int) -> Settings:
    """Settings with topics of their own."""
    settings = load_settings(bootstrap=bootstrap, prefix=f"bench{uuid.uuid4().hex[:6]}", partitions=partitions)
    create_topics(settings)
    return settings


def environment(settings: Settings) -> dict[str, str]:
    """The environment of a command that joins."""
    return {**os.environ, "HEADRACE_BOOTSTRAP": settings.bootstrap, "HEADRACE_PREFIX": settings.prefix}


def begin(settings: Settings, *argv: str) -> subprocess.Popen[str]:
    """A command of its own process."""
    return subprocess.Popen([COMMAND, *argv], stdout=subprocess.PIPE, text=True, env=environment(settings))


def start(settings: Settings, *argv: str) -> subprocess.Popen[str]:
    """As `begin`, once it is ready."""
    process = begin(settings, *argv)
    assert process.stdout is not None
    assert process.stdout.readline(), f"{' '.join(argv)} did not start"
    return process


def rollout_id(n: int) -> str:
    """The id of rollout n."""
    return f"ro-{n:08d}"


def _attempt_id(n: int, attempt: int = 1) -> str:
    return f"at-{n:08d}-{attempt}"


def task(n: int, *, max_attempts: int = 1) -> Task:
    """What is asked for; with `max_attempts`, a failure is followed by a retry."""
    config = TaskConfig() if max_attempts == 1 else TaskConfig(max_attempts=max_attempts, retry_condition=["failed"])
    return Task(
        rollout_id=rollout_id(n),
        group_id=f"g{n // GROUP_SIZE}",
        group_size=GROUP_SIZE,
        sample_index=n % GROUP_SIZE,
        mode="train",
        input=INPUT,
        config=config,
        enqueued_at=wall_us(),
    )


def started(n: int, attempt: int = 1) -> AttemptEvent:
    """The start of an attempt."""
    facts = TaskFacts(
        group_id=f"g{n // GROUP_SIZE}", group_size=GROUP_SIZE, sample_index=n % GROUP_SIZE, mode="train", input=INPUT
    )
    return AttemptEvent(
        rollout_id=rollout_id(n),
        attempt_id=_attempt_id(n, attempt),
        attempt=attempt,
        type="started",
        task=facts,
        worker_id="bench",
        at=wall_us(),
    )


def sign(n: int, kind: str = "heartbeat", attempt: int = 1) -> AttemptEvent:
    """A sign of life."""
    return AttemptEvent(
        rollout_id=rollout_id(n),
        attempt_id=_attempt_id(n, attempt),
        attempt=attempt,
        type=kind,
        worker_id="bench",
        at=wall_us(),
    )


def ended(n: int, attempt: int = 1, *, failed: bool = False, final: bool = True) -> AttemptEvent:
    """The end of an attempt; all that belongs to it has been acknowledged before."""
    return AttemptEvent(
        rollout_id=rollout_id(n),
        attempt_id=_attempt_id(n, attempt),
        attempt=attempt,
        type="failed" if failed else "succeeded",
        final=final,
        complete=True,
        worker_id="bench",
        error=ErrorInfo(type="ValueError", message="no answer") if failed else None,
        at=wall_us(),
    )


def span(n: int, call: int = 0) -> Span:
    """A model call of about a kilobyte, as the gateway writes it."""
    now = wall_us()
    recorded = ModelCall(
        model="policy",
        policy="policy",
        policy_version=VersionRange(min=3, max=3),
        response_id=f"chatcmpl-{n}-{call}",
        prompt_token_ids=pack_int32(range(60)),
        choices=[
            Choice(
                index=0,
                response_token_ids=pack_int32([5, 6, 7, 2]),
                logprobs=pack_float32([-0.1, -0.2, -0.3, -0.4]),
                finish_reason="stop",
                text="7",
            )
        ],
        request=REQUEST,
    )
    return Span(
        rollout_id=rollout_id(n),
        attempt_id=_attempt_id(n),
        source="gateway",
        trace_id=f"{n:032x}",
        span_id=f"{n:08x}{call:08x}",
        name="chat policy",
        kind="CLIENT",
        start=now * 1000 - 5_000_000,
        end=now * 1000,
        attributes=ATTRIBUTES,
        llm=recorded,
    )


def reward(n: int) -> Reward:
    """The reward that the agent returned."""
    return Reward(
        rollout_id=rollout_id(n),
        attempt_id=_attempt_id(n),
        reward_id=f"rw-{n}",
        primary=True,
        value=1.0,
        source="agent",
        at=wall_us(),
    )


class Sender:
    """Writes records, many at once."""

    def __init__(self, settings: Settings, linger_ms: float = 20) -> None:
        self._message = MessageMaker(settings)
        self._producer = make_producer(settings, "bench", linger_ms=linger_ms)

    def send(self, *records: Record) -> None:
        """Sends records; waits while the queue is full."""
        for record in records:
            message = self._message(record)
            headers: Any = message.headers or None
            while True:
                try:
                    self._producer.produce(message.topic, message.value, message.key, headers=headers)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._producer.poll(0)

    def flush(self) -> None:
        """Returns when all is acknowledged."""
        self._producer.flush()


def write_rollouts(sender: Sender, numbers: range, spans: int = 1) -> None:
    """Whole rollouts in the order of the log: starts, then spans and rewards, then ends."""
    for n in numbers:
        sender.send(started(n))
    for n in numbers:
        sender.send(*(span(n, call) for call in range(spans)), reward(n))
    sender.flush()
    for n in numbers:
        sender.send(ended(n))
    sender.flush()
