"""Two lifecycles and two assemblers share the partitions; state moves with them."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from headrace.schemas.records import AttemptEvent, Record, Reward, Span, Task, TaskFacts
from headrace.streams.assembly.loop import AssemblyProcessor
from headrace.streams.kafka.transactional import TransactionalLoop
from headrace.streams.lifecycle.loop import LifecycleProcessor
from headrace.streams.settings import Settings

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


class Member:
    """A processor on a thread."""

    def __init__(self, settings: Settings, kind: Callable[[Settings, str], Any], worker_id: str) -> None:
        self.processor = kind(settings, worker_id)
        self._loop = TransactionalLoop(settings, self.processor, worker_id)
        self._thread = threading.Thread(target=self._loop.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._loop.stop()
        self._thread.join(60)
        assert not self._thread.is_alive()

    @property
    def worked(self) -> int:
        """Transactions so far."""
        return self.processor.counters.get("transactions", 0)


@pytest.fixture
def settings(make_settings: Callable[..., Settings]) -> Settings:
    """Nobody sends heartbeats here."""
    return make_settings(lease=timedelta(hours=1))


@pytest.fixture
def member(settings: Settings) -> Iterator[Callable[..., Member]]:
    members: list[Member] = []

    def start(kind: Any, worker_id: str) -> Member:
        members.append(Member(settings, kind, worker_id))
        return members[-1]

    yield start
    for one in members:
        one.stop()


def begin(n: int) -> list[Record]:
    facts = TaskFacts(group_id="g", input="1")
    return [
        Task(rollout_id=f"ro{n}", input="1", group_id="g", enqueued_at=0),
        AttemptEvent(rollout_id=f"ro{n}", attempt_id=f"ro{n}-1", type="started", task=facts, at=0),
        Span(
            rollout_id=f"ro{n}", attempt_id=f"ro{n}-1", source="runner", trace_id="t", span_id=f"{n}", name="step",
            start=1, end=2,
        ),
    ]  # fmt: skip


def finish(n: int) -> list[Record]:
    return [
        Reward(rollout_id=f"ro{n}", reward_id=f"r{n}", primary=True, value=1.0, source="agent", at=0),
        AttemptEvent(
            rollout_id=f"ro{n}", attempt_id=f"ro{n}-1", type="succeeded", final=True, complete=True, at=0
        ),
    ]  # fmt: skip


def test_members_come_and_go(log: Any, member: Any, wait_for: Any):
    def write(numbers: range, records: Callable[[int], list[Record]]) -> None:
        log.write(*(record for n in numbers for record in records(n)))

    def done(count: int) -> bool:
        ended = {s.rollout_id for s in log.records("rollouts") if s.status == "succeeded"}
        return len(ended) == count and len({t.rollout_id for t in log.records("triplets")}) == count

    first = [member(LifecycleProcessor, "l1"), member(AssemblyProcessor, "a1")]
    write(range(40), begin)
    write(range(20), finish)
    wait_for(lambda: done(20))
    second = [member(LifecycleProcessor, "l2"), member(AssemblyProcessor, "a2")]
    extra = itertools.count(100)

    def shared() -> bool:
        n = next(extra)
        write(range(n, n + 1), begin)
        write(range(n, n + 1), finish)
        return all(one.worked for one in second)

    wait_for(shared)
    more = next(extra) - 100
    write(range(40, 60), begin)
    write(range(20, 50), finish)  # of which some began where they do not end
    wait_for(lambda: done(50 + more))
    for one in first:
        one.stop()
    write(range(50, 60), finish)
    wait_for(lambda: done(60 + more))

    states = {s.rollout_id: s for s in log.records("rollouts")}
    assert Counter(s.status for s in states.values()) == {"succeeded": 60 + more}
    assert all(len(s.attempts) == 1 for s in states.values())
    trajectories = [t for t in log.records("triplets") if t.revision == 0]
    assert sorted(t.rollout_id for t in trajectories) == sorted(states)
    assert not any(log.messages(topic, dead=True) for topic in ("tasks", "attempts", "spans", "rewards"))
