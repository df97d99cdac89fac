"""Who is due for a sign of life, and whether the loop still turns; all by a clock of the test's."""

import asyncio
import threading

from headrace.schemas.records import Task
from headrace.streams.runner.attempt import RunningAttempt
from headrace.streams.runner.dispatch.values import Entry, Start
from headrace.streams.runner.pulse import BLOCKED_SECONDS, TELL_SECONDS, Heartbeats, LoopWatch


def attempt(rollout_id: str) -> RunningAttempt:
    entry = Entry(task=Task(rollout_id=rollout_id, input="1", enqueued_at=0), partition=0, offset=0)
    running = RunningAttempt(Start(entry, f"{rollout_id}-1", 1))
    running.announced.set_result(None)
    return running


async def test_each_attempt_is_due_once_an_interval_until_it_is_over() -> None:
    heartbeats = Heartbeats(10.0)
    a, b = attempt("a"), attempt("b")
    heartbeats.add(a, 0.0)
    heartbeats.add(b, 5.0)
    due = {now: list(heartbeats.due(now)) for now in (9.0, 10.0, 15.0, 19.9, 21.0)}
    assert due == {9.0: [], 10.0: [a], 15.0: [b], 19.9: [], 21.0: [a]}
    b.over = True
    assert list(heartbeats.due(100.0)) == [a]


async def test_an_attempt_whose_start_is_not_acknowledged_gives_no_sign() -> None:
    heartbeats = Heartbeats(10.0)
    waiting = attempt("a")
    waiting.announced = asyncio.get_running_loop().create_future()
    heartbeats.add(waiting, 0.0)
    assert list(heartbeats.due(10.0)) == []
    waiting.announced.set_result(None)
    assert list(heartbeats.due(20.0)) == [waiting]


async def test_a_blocked_loop_is_told_of_by_the_name_of_what_blocks_it() -> None:
    watch = LoopWatch(asyncio.get_running_loop(), 0.0)
    said: list[str | None] = []

    def look() -> None:
        moments = (BLOCKED_SECONDS - 0.1, TELL_SECONDS, TELL_SECONDS + 1, 2 * TELL_SECONDS)
        said.extend(watch.look(now) for now in moments)

    async def agent() -> None:
        looking = threading.Thread(target=look)
        looking.start()
        looking.join()  # the agent blocks here

    await asyncio.create_task(agent(), name="attempt r1-1")
    assert [text is not None for text in said] == [False, True, False, True]
    assert said[1] is not None
    assert said[1].startswith(f"attempt r1-1 has blocked the event loop for {TELL_SECONDS:.1f} s")
    assert ", in agent" in said[1]
    watch.alive(2 * TELL_SECONDS + 1)
    assert watch.look(2 * TELL_SECONDS + 2) is None
