"""A grader that is one function: many trajectories at once, each acknowledged when its rewards are in the log."""

import asyncio
import logging
from typing import Any

from headrace.streams.codec import EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.graders.app import GraderApp
from headrace.streams.graders.asking import FAILED, GraderError
from headrace.streams.graders.process import IsolatedFunction
from headrace.streams.kafka.client_log import Seldom

log = logging.getLogger(__name__)
log.addFilter(Seldom())


class FunctionGrader:
    """Asks a function about every trajectory. Make it on the event loop, then run `grader.serve()`.

    Offsets are committed up to the first trajectory that is not finished, so a killed process asks again about those
    that it had in hand; their rewards have the same ids.

    Args:
        concurrency: trajectories at once.
    """

    def __init__(self, grader: GraderApp, function: IsolatedFunction, *, concurrency: int) -> None:
        self._grader = grader
        self._function = function
        self._slots = asyncio.Semaphore(concurrency)
        self._in_hand: dict[tuple[int, int], list[Any]] = {}
        grader.app.agent(grader.topic, name=f"grade-{grader.rules.name}")(self._agent)

    async def _agent(self, stream: Any) -> None:
        async for event in stream.noack().events():
            place = event.message.partition, event.message.offset
            await self._slots.acquire()
            if place in self._in_hand:  # a rebalance brings again what is under way
                self._in_hand[place].append(event)
                self._slots.release()
                continue
            self._in_hand[place] = [event]
            job = asyncio.get_running_loop().create_task(self._grade(event, place))
            self._grader.jobs.add(job)
            job.add_done_callback(self._grader.jobs.discard)

    async def _grade(self, event: Any, place: tuple[int, int]) -> None:
        try:
            await self._judge(event)
        except Exception as error:  # nothing of a grader's: the process ends, and begins again from what is committed
            self._grader.die(error)
            return
        finally:
            self._slots.release()
            events = self._in_hand.pop(place)
        for one in events:
            one.ack()

    async def _judge(self, event: Any) -> None:
        record = await self._grader.read(event)
        if record is None:
            return
        try:
            await self._grader.write(await self._function.ask(record), record)
        except (GraderError, EncodeError, RecordTooLargeError) as error:
            reason = error.reason if isinstance(error, GraderError) else FAILED
            self._grader.counts.add("failed")
            log.warning("Grader %s: rollout %s is a dead letter: %s", self._grader.rules.name, record.rollout_id, error)
            await self._grader.put_away(event, reason, str(error))
