"""What rollouts that run for long cost the assembler: each is let go from memory after a minute, and its Assembled
written anew, again and again until it ends and all of it is read again.

A pure feed as in `assembler_memory.py`: so many rollouts that are open at once, each with a call every few seconds of
log time, then all of their ends. `kept` is the same with everything held in memory, for comparison. CPU time is that of
the processor alone (decoding, encoding and source lists; not the client's or the brokers'). One JSON line.

    python -m tests.bench.assembler_open --rollouts 1000 --calls 200 --every 3
"""

import argparse
import gc
import json
import time
from typing import Any

from headrace.streams.assembly import memory
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.kafka.messages import OutMessage, size_of
from headrace.streams.topics import short_name
from tests.bench.assembled import rss_mb
from tests.bench.assembler_memory import SETTINGS, PassingLog, begin, call, end
from tests.streams.memory_log import MemoryLoop

NEVER_SECONDS = 1e9


class WeighingLog(PassingLog):
    """Knows how many bytes were written to each topic."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[str, int] = {}

    def append(self, message: OutMessage | None, topic: str | None = None) -> int:
        if message is not None:
            name = short_name(message.topic, self.settings)
            self.bytes[name] = self.bytes.get(name, 0) + size_of(message)
        return super().append(message, topic)


def turn(loop: MemoryLoop) -> float:
    """CPU seconds of the turns until nothing is left to do."""
    began = time.process_time()
    while loop.turn():
        pass
    return time.process_time() - began


def run(rollouts: int, calls: int, every: int) -> dict[str, Any]:
    """One feed."""
    log = WeighingLog()
    loop = MemoryLoop(log, lambda: AssemblyProcessor(SETTINGS, "bench", log_reader=log))
    slow = [begin(log, 100 * n, 0) for n in range(rollouts)]  # whose records are kept to be read again
    reading = turn(loop)
    for number in range(calls):
        for n, (rollout_id, attempt_id) in enumerate(slow):
            log.write(call(rollout_id, attempt_id, 100 * n, number))
        for _ in range(every):
            log.now_ms += 1000
            reading += turn(loop)
    gc.collect()
    mb = rss_mb()
    written = {name: (log.written.get(name, 0), log.bytes.get(name, 0)) for name in ("assembled", "triplets")}
    for ids in slow:
        end(log, *ids)
    closing = turn(loop)
    assert log.written["triplets"] == rollouts
    return {
        "cpu_us_a_span": round(1e6 * reading / (rollouts * calls), 1),
        "cpu_us_a_close": round(1e6 * closing / rollouts, 1),
        "assembled_records": written["assembled"][0],
        "assembled_mb": round(written["assembled"][1] / 1e6, 1),
        "spans_mb": round(log.bytes["spans"] / 1e6, 1),
        "mb": mb,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--every", type=int, default=3, help="seconds of log time between two calls of a rollout")
    options = parser.parse_args()
    found = {"let_go": run(options.rollouts, options.calls, options.every)}
    memory.OPEN_SECONDS = NEVER_SECONDS
    found["kept"] = run(options.rollouts, options.calls, options.every)
    log_minutes = options.calls * options.every / 60
    print(json.dumps({"rollouts": options.rollouts, "calls": options.calls, "minutes": log_minutes, **found}))


if __name__ == "__main__":
    main()
