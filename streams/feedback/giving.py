"""Feedback on its way into the log: its target looked up, its reward written and acknowledged."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING

import msgspec

from headrace.schemas.records import Reward
from headrace.streams.codec import EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.feedback.errors import INVALID, NO_VIEW, UNAVAILABLE, FeedbackError, UnknownTargetError
from headrace.streams.feedback.request import Feedback, Target, reward_of
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError, Position
from headrace.streams.kafka.partitioner import SEGMENT_MARK
from headrace.streams.view.errors import ViewError

if TYPE_CHECKING:
    from headrace.streams.feedback.targets import Targets

LOOK_AGAIN_SECONDS = 0.2


class Written(msgspec.Struct, frozen=True):
    """What the brokers have acknowledged."""

    rollout_id: str
    reward_id: str
    partition: int
    offset: int


Outcome = list[Written] | FeedbackError


class Feedbacks:
    """Writes feedback.

    Args:
        view: URL of the view's database. Without one only feedback by rollout is taken, and the assembler judges
            whether there is such a rollout.
        broker_seconds: how long an acknowledgement is waited for.
        arrival_seconds: how long a target that the view does not know is waited for.
    """

    def __init__(
        self, producer: AckedProducer, view: str | None, *, broker_seconds: float, arrival_seconds: float
    ) -> None:
        self._producer, self._view = producer, view
        self._broker_seconds, self._arrival_seconds = broker_seconds, arrival_seconds
        self._targets: Targets | None = None  # loaded with SQLAlchemy, where there is a view
        self._opening = asyncio.Lock()
        self.counters: Counter[str] = Counter()

    def close(self) -> None:
        """Lets the connections to the view go."""
        if self._targets is not None:
            self._targets.close()

    async def give(self, given: Sequence[Feedback]) -> list[Outcome]:
        """Returns once the brokers have the rewards, or it is known why not. They are written in the order given.

        Returns:
            Of each what was written, or why nothing was: UnknownTargetError, or a FeedbackError `no_view`,
            `unavailable` (the view or the brokers do not answer) or `invalid_feedback` (it fits no record).
        """
        found = await asyncio.gather(*map(self._find, given), return_exceptions=True)
        now = time.time_ns() // 1000
        writing: list[Awaitable[Outcome]] = []
        for feedback, targets in zip(given, found, strict=True):
            if isinstance(targets, FeedbackError):
                writing.append(_done(targets))
            elif isinstance(targets, BaseException):
                raise targets
            else:
                writing.append(self._write([reward_of(feedback, target, now) for target in targets]))
        outcomes = await asyncio.gather(*writing)
        for outcome in outcomes:
            self.counters[outcome.code if isinstance(outcome, FeedbackError) else "feedback"] += 1
        return outcomes

    async def _find(self, feedback: Feedback) -> list[Target]:
        if self._view is None:
            if feedback.kind == "rollout":
                return [Target(feedback.id)]
            message = (
                f"feedback by {feedback.kind} is looked up in the view, and none is named: set HEADRACE_VIEW to "
                "that of `headrace processor view`"
            )
            raise FeedbackError(NO_VIEW, message, param=f"{feedback.kind}_id")
        deadline = time.monotonic() + self._arrival_seconds
        try:
            targets = await self._opened(self._view)
            while True:
                try:
                    return await asyncio.to_thread(targets.find, feedback)
                except UnknownTargetError:
                    if time.monotonic() + LOOK_AGAIN_SECONDS > deadline:
                        raise
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
        except ViewError as error:
            raise FeedbackError(UNAVAILABLE, f"the view cannot be asked: {error}") from error

    async def _opened(self, view: str) -> "Targets":
        async with self._opening:
            if self._targets is None:
                self._targets = await asyncio.to_thread(_open, view)
            return self._targets

    async def _write(self, rewards: Sequence[Reward]) -> Outcome:
        try:
            async with asyncio.timeout(self._broker_seconds):
                places = await asyncio.gather(*map(self._send, rewards))
        except TimeoutError:
            message = f"no broker acknowledged it within {self._broker_seconds:g} s; what comes again counts once"
            return FeedbackError(UNAVAILABLE, message)
        except DeliveryError as error:
            return FeedbackError(UNAVAILABLE, f"it was not written: {error}")
        except (EncodeError, RecordTooLargeError) as error:
            return FeedbackError(INVALID, str(error))
        written = {
            (reward.rollout_id, reward.reward_id): Written(reward.rollout_id, reward.reward_id, *place)
            for reward, place in zip(rewards, places, strict=True)
        }
        return list(written.values())

    async def _send(self, reward: Reward) -> Position:
        if SEGMENT_MARK not in reward.rollout_id:
            return await self._producer.send(reward)
        # The first one asks the cluster how many partitions there are.
        return await self._producer.send_message(await asyncio.to_thread(self._producer.message, reward))


async def _done(error: FeedbackError) -> Outcome:
    return error


def _open(view: str) -> "Targets":
    from headrace.streams.feedback.targets import Targets

    return Targets(view)
