"""One attempt while it is in hand here: the agent's call, and the first thing that ends it."""

import asyncio

from headrace.schemas.records import ErrorInfo
from headrace.streams.runner.calling import FAILED, SUCCEEDED, TIMEOUT, Call, Outcome
from headrace.streams.runner.dispatch.values import Start


class RunningAttempt:
    """An attempt in hand. Make it, and call all of it, on the event loop."""

    __slots__ = (
        "__weakref__",
        "_call",
        "_timer",
        "announced",
        "announcing",
        "dropped",
        "outcome",
        "over",
        "start",
    )

    def __init__(self, start: Start) -> None:
        self.start = start
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.announced: asyncio.Future[None] = self.outcome.get_loop().create_future()
        """Done when its start is acknowledged, or was given up."""
        self.announcing = False
        """Its start is being written, or has been."""
        self.dropped = False
        """Its partition has gone before that: it is another runner's to start."""
        self.over = False
        """Its end is written, or another's to write."""
        self._call: Call | None = None
        self._timer: asyncio.TimerHandle | None = None

    def announce(self) -> bool:
        """Whether its start may be written; from then on it is this runner's, whatever becomes of the partition."""
        self.announcing = not self.dropped
        return self.announcing

    def drop(self) -> bool:
        """Takes back an attempt whose start is not being written yet; False if it is too late for that."""
        self.dropped = not self.announcing
        return self.dropped

    def decide(self, outcome: Outcome) -> bool:
        """Ends the attempt, unless something has ended it before; what the agent says after that is refused."""
        if self.outcome.done():
            return False
        self.outcome.set_result(outcome)
        if self._timer is not None:
            self._timer.cancel()
        call, self._call = self._call, None
        if call is not None and outcome.status not in (SUCCEEDED, FAILED):  # the agent may still run
            call.stop()
        return True

    def called(self, call: Call) -> None:
        """The agent has been called, which counts against its time; `outcome` tells the rest."""
        if self.outcome.done():  # it has ended at once
            return
        self._call = call
        seconds = self.start.entry.task.config.timeout_seconds
        if seconds is not None:
            self._timer = self.outcome.get_loop().call_later(seconds, self._time_out, seconds)

    def _time_out(self, seconds: float) -> None:
        message = f"the agent did not return within timeout_seconds = {seconds:g}"
        self.decide(Outcome(TIMEOUT, error=ErrorInfo(type="Timeout", message=message)))
