"""The assembler's memory over a million spans and a hundred thousand rollouts: it should be flat.

A pure feed: the whole processor (what its loop keeps: open rollouts, offsets held, closed ids, the intake's keys) over
a log in memory whose records are dropped once they are read, so that what grows is the assembler's. Every hundredth
rollout stays open for ten minutes of log time. One JSON line; `mb` is the resident memory of the process at intervals.

    python -m tests.bench.assembler_memory --rollouts 100000 --calls 10
"""

import argparse
import gc
import json
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from headrace.schemas.packing import pack_float32, pack_int32
from headrace.schemas.records import AttemptEvent, Choice, ModelCall, Reward, Span, TaskFacts
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.kafka.log_reader import Partition, Place
from headrace.streams.kafka.messages import Message, OutMessage
from headrace.streams.settings import load_settings
from headrace.streams.topics import short_name
from tests.bench.assembled import rss_mb
from tests.streams.memory_log import MemoryLog, MemoryLoop, Stored

SETTINGS = load_settings(prefix="bench", partitions=1)
STEP_MS = 20  # of log time a rollout: 50 a second
SLOW_EVERY, SLOW_ROLLOUTS = 100, 30_000  # so many rollouts later, ten minutes, a slow one ends
TURN = 50
LOOKS = 20


class PassingLog(MemoryLog):
    """Keeps no record but what an open rollout may need again; outputs are counted and let go."""

    def __init__(self) -> None:
        super().__init__(SETTINGS)
        self.kept: dict[Place, Stored] = {}
        self.ends_of: dict[str, int] = {}
        self.fresh: dict[str, list[Stored]] = {}
        self.written: dict[str, int] = {}

    def append(self, message: OutMessage | None, topic: str | None = None) -> int:
        name = short_name(message.topic, self.settings) if message is not None else topic or ""
        place = self.ends_of.get(name, 0)
        self.ends_of[name] = place + 1
        if message is None:
            return place
        self.written[name] = self.written.get(name, 0) + 1
        if name in ("attempts", "spans", "rewards"):
            stored = Stored(message.topic, self.now_ms, place, message)
            self.fresh.setdefault(name, []).append(stored)
            if (message.key or b"").startswith(b"slow"):
                self.kept[name, 0, place] = stored
        return place

    def messages(self, topic: str, start: int = 0, end: int | None = None) -> list[Stored]:
        return self.fresh.pop(topic, [])

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        return {at: self.ends_of.get(at[0], 0) for at in partitions}

    def at(self, wanted: Mapping[Partition, Iterable[int]]) -> dict[Place, Message]:
        places = [(topic, p, offset) for (topic, p), offsets in wanted.items() for offset in offsets]
        return {place: self.kept[place] for place in places if place in self.kept}


def call(rollout_id: str, attempt_id: str, n: int, number: int) -> Span:
    return Span(
        rollout_id=rollout_id,
        attempt_id=attempt_id,
        source="gateway",
        trace_id=f"{n:032x}",
        span_id=f"{n * 64 + number:016x}",
        name="chat policy",
        start=1000 + number * 10,
        end=1005 + number * 10,
        attributes=json.dumps({f"gen_ai.attribute.{i}": "x" * 30 for i in range(12)}),
        llm=ModelCall(
            model="policy",
            response_id=f"c{n}-{number}",
            prompt_token_ids=pack_int32(list(range(60 + 8 * number))),
            choices=[
                Choice(
                    index=0,
                    response_token_ids=pack_int32([5, 6, 7, 2]),
                    logprobs=pack_float32([-0.1] * 4),
                    finish_reason="stop",
                    text="7",
                )
            ],
        ),
    )


def begin(log: MemoryLog, n: int, calls: int) -> tuple[str, str]:
    """Start and calls of a rollout; its id and its attempt's."""
    rollout_id = f"{'slow' if n % SLOW_EVERY == 0 else 'ro'}-{n:08d}"
    attempt_id = f"{rollout_id}-1"
    facts = TaskFacts(group_id=f"g{n // 16}", group_size=16, sample_index=n % 16, mode="train", input='{"digit": 3}')
    log.write(AttemptEvent(rollout_id=rollout_id, attempt_id=attempt_id, type="started", task=facts, at=0))
    log.write(*(call(rollout_id, attempt_id, n, number) for number in range(calls)))
    return rollout_id, attempt_id


def end(log: MemoryLog, rollout_id: str, attempt_id: str) -> None:
    log.write(
        Reward(
            rollout_id=rollout_id, attempt_id=attempt_id, reward_id=f"w-{rollout_id}", primary=True, value=1.0,
            source="agent", at=0,
        ),
        AttemptEvent(
            rollout_id=rollout_id, attempt_id=attempt_id, type="succeeded", final=True, complete=True, at=0
        ),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=10)
    options = parser.parse_args()
    log = PassingLog()
    loop = MemoryLoop(log, lambda: AssemblyProcessor(SETTINGS, "bench", log_reader=log))
    slow: list[tuple[str, str]] = []
    mb: list[float] = []
    began = time.monotonic()
    for n in range(options.rollouts):
        rollout = begin(log, n, options.calls)
        log.now_ms += STEP_MS
        if n % SLOW_EVERY == 0:
            slow.append(rollout)
        else:
            end(log, *rollout)
        if slow and n % SLOW_EVERY == 0 and len(slow) > SLOW_ROLLOUTS // SLOW_EVERY:
            done = slow.pop(0)
            end(log, *done)
            loop.turn()
            log.kept = {place: m for place, m in log.kept.items() if m.key() != done[0].encode()}
        if n % TURN == 0:
            loop.turn()
        if n % (options.rollouts // LOOKS) == 0:
            gc.collect()
            mb.append(rss_mb())
            print(f"{n} rollouts: {mb[-1]} MB", file=sys.stderr)
    for rollout in slow:
        end(log, *rollout)
    while loop.turn():
        pass
    result: dict[str, Any] = {
        "rollouts": options.rollouts,
        "spans": options.rollouts * options.calls,
        "trajectories": log.written.get("triplets", 0),
        "seconds": round(time.monotonic() - began, 1),
        "open_at_once": SLOW_ROLLOUTS // SLOW_EVERY,
        "mb": [*mb, rss_mb()],
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
