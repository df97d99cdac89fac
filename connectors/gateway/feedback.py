"""`POST /v1/feedback`: one judgement, or a list of them."""

import time
from collections import Counter, OrderedDict
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import orjson

from headrace.connectors.gateway.errors import BAD_REQUEST, NOT_FOUND, UNAVAILABLE, CallError
from headrace.streams.feedback.errors import NO_VIEW, UNKNOWN_TARGET, FeedbackError
from headrace.streams.feedback.errors import UNAVAILABLE as AWAY
from headrace.streams.feedback.giving import Feedbacks, Outcome
from headrace.streams.feedback.request import MAX_KEY, Feedback, read_feedback

PATH = "/v1/feedback"
KEY_HEADER = "idempotency-key"
MAX_ITEMS = 1000
NOT_IMPLEMENTED = 501
STATUS = {UNKNOWN_TARGET: NOT_FOUND, NO_VIEW: NOT_IMPLEMENTED, AWAY: UNAVAILABLE}
ARRIVING_RETRY_SECONDS, AWAY_RETRY_SECONDS = 5, 2
REMEMBERED_TARGETS = 10_000


class FeedbackAnswer(msgspec.Struct):
    """An HTTP answer.

    Attributes:
        retry_after: seconds, where it is worth trying again.
    """

    status: int
    body: bytes
    retry_after: int | None = None


class Arriving:
    """How long targets have been asked for in vain: a trace is exported some time after its first call was answered.

    Args:
        seconds: for so long a target may still be arriving.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asked: OrderedDict[tuple[str, str], float] = OrderedDict()

    def may(self, feedback: Feedback, now: float) -> bool:
        """Whether a target that is unknown now may still come."""
        key = (feedback.kind, feedback.id)
        first = self._asked.setdefault(key, now)
        if len(self._asked) > REMEMBERED_TARGETS:
            self._asked.popitem(last=False)
        return now - first < self._seconds


class FeedbackEndpoint:
    """Bytes in, bytes out; answered only once it is written or refused."""

    def __init__(self, feedbacks: Feedbacks, arriving_seconds: float) -> None:
        self._feedbacks = feedbacks
        self._arriving = Arriving(arriving_seconds)

    @property
    def counters(self) -> Counter[str]:
        """Of what was written, and of what was refused by its code."""
        return self._feedbacks.counters

    async def handle(self, headers: Mapping[str, str], body: bytes) -> FeedbackAnswer:
        """The answer to a request.

        Raises:
            CallError: 400 where the body is no JSON object or list of objects, or has too many.
        """
        key = headers.get(KEY_HEADER)
        if key is not None and not 0 < len(key) <= MAX_KEY:
            raise CallError(BAD_REQUEST, "invalid_feedback", f"{KEY_HEADER} has 1 to {MAX_KEY} characters")
        try:
            value: Any = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise CallError(BAD_REQUEST, "invalid_json", f"the body is no valid JSON: {error}") from error
        if not isinstance(value, list):
            return await self._one(value, key)
        items = cast("list[Any]", value)
        if not 0 < len(items) <= MAX_ITEMS:
            raise CallError(BAD_REQUEST, "invalid_feedback", f"a list has 1 to {MAX_ITEMS} pieces of feedback")
        keys = [f"{key}/{i}" if key is not None else None for i in range(len(items))]
        answers = await self._all(items, keys)
        results = [{"status": answer.status, **orjson.loads(answer.body)} for answer in answers]
        return FeedbackAnswer(200, orjson.dumps({"results": results}))

    async def _one(self, value: Any, key: str | None) -> FeedbackAnswer:
        (answer,) = await self._all([value], [key])
        return answer

    async def _all(self, values: list[Any], keys: list[str | None]) -> list[FeedbackAnswer]:
        read: list[Feedback | FeedbackError] = []
        for value, key in zip(values, keys, strict=True):
            try:
                read.append(read_feedback(value, key))
            except FeedbackError as error:
                self.counters[error.code] += 1
                read.append(error)
        given = [feedback for feedback in read if isinstance(feedback, Feedback)]
        outcomes = iter(await self._feedbacks.give(given))
        return [
            self._answer(None, one) if isinstance(one, FeedbackError) else self._answer(one, next(outcomes))
            for one in read
        ]

    def _answer(self, feedback: Feedback | None, outcome: Outcome) -> FeedbackAnswer:
        if not isinstance(outcome, FeedbackError):
            written = [{"rollout_id": w.rollout_id, "reward_id": w.reward_id} for w in outcome]
            return FeedbackAnswer(200, orjson.dumps({"written": written}))
        status = STATUS.get(outcome.code, BAD_REQUEST)
        retry_after = None
        if status == UNAVAILABLE:
            retry_after = AWAY_RETRY_SECONDS
        elif status == NOT_FOUND and feedback is not None and self._arriving.may(feedback, time.monotonic()):
            retry_after = ARRIVING_RETRY_SECONDS
        error = CallError(status, outcome.code, str(outcome), param=outcome.param)
        return FeedbackAnswer(status, error.body(), retry_after)
