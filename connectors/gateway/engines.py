"""The engines that a gateway may call: who they are, what they have loaded, which of them is called next."""

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from headrace.connectors.gateway.errors import NOT_FOUND, CallError
from headrace.schemas.records import VersionRange, WorkerState

# An engine that refused a call is not tried again for so long, twice as long each time, up to a limit.
DOWN_SECONDS = 0.25
MAX_DOWN_SECONDS = 2.0
# A rollout goes back to the engine of its last call, which has its prefix cached, unless that one has more calls than
# the least busy by more than this: a prefill saved is worth a few rows more in a batch.
STICKY_SLACK = 4
# Rollouts remembered for that: 100 bytes each.
REMEMBERED = 65_536


class Engine:
    """One engine.

    Attributes:
        model: its name for what it serves; None while that is not known.
        in_flight: calls that it has of this gateway.
        failures: calls that it refused since the last that it took.
        state: its last announcement; None of an engine given by URL.
    """

    def __init__(self, endpoint: str, *, policy: str | None = None, model: str | None = None) -> None:
        self.endpoint, self.policy, self.model = endpoint, policy, model
        self.in_flight = 0
        self.failures = 0
        self.down_until = 0.0
        self.last_used = 0.0
        self.state: WorkerState | None = None

    @property
    def loaded(self) -> int | None:
        """The newest version whose load it has acknowledged; None where nobody told."""
        return self.state.loaded_version if self.state else None

    def versions(self, loaded_before: int | None) -> VersionRange | None:
        """What generated an answer that ends now, of an engine that does not say so itself.

        Args:
            loaded_before: `loaded` as it was before the request was sent.
        """
        if self.state is None or loaded_before is None:
            return None
        begun = max(self.state.loading_version or 0, self.state.loaded_version or 0, loaded_before)
        return VersionRange(min=loaded_before, max=begun)


class Engines:
    """The engines, from the workers topic or from URLs given; all calls belong on one event loop.

    Args:
        live: the engines that have announced themselves lately.
    """

    def __init__(self, live: Callable[[], list[WorkerState]], urls: Iterable[str] = ()) -> None:
        self._live = live
        self._given = [Engine(url) for url in urls]
        self._engines: dict[str, Engine] = {}
        self._last: OrderedDict[str, str] = OrderedDict()  # the endpoint of each rollout's last call
        self._changed = asyncio.Event()

    @property
    def given(self) -> list[Engine]:
        """Those given by URL."""
        return self._given

    def all(self) -> list[Engine]:
        """Those that may be called."""
        return self._given or list(self._engines.values())

    def refresh(self) -> None:
        """Looks again who is alive."""
        if not self._given:
            self._engines = {state.worker_id: self._engine(state) for state in self._live() if state.endpoint}
        self.wake()

    def wake(self) -> None:
        """Lets calls that wait for an engine look again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _engine(self, state: WorkerState) -> Engine:
        endpoint = state.endpoint or ""
        engine = self._engines.get(state.worker_id)
        if engine is None or engine.endpoint != endpoint:
            engine = Engine(endpoint, policy=state.policy, model=state.policy)
        engine.state = state
        return engine

    def pick(self, model: str | None, rollout_id: str | None = None) -> Engine | None:
        """The engine for a call: of those with the newest version the least busy; None while there is none.

        That of the rollout's last call is preferred, as long as it is not clearly busier.

        Raises:
            CallError: 404 where several policies are served and `model` is none of them.
        """
        found = self.all()
        if not found:
            return None
        named = [engine for engine in found if engine.policy == model] if model is not None else []
        if not named and len({engine.policy for engine in found}) > 1:
            served = ", ".join(sorted({engine.policy or "?" for engine in found}))
            raise CallError(
                NOT_FOUND, "model_not_found", f"no engine serves {model!r}; there are: {served}", param="model"
            )
        now = time.monotonic()
        ready = [engine for engine in named or found if engine.model is not None and engine.down_until <= now]
        best = min(ready, key=_rank, default=None)
        if best is None or len(ready) == 1 or rollout_id is None:
            return best
        last = self._last.get(rollout_id)
        for engine in ready:
            if engine.endpoint == last and engine.loaded == best.loaded:
                return engine if engine.in_flight <= best.in_flight + STICKY_SLACK else best
        return best

    async def acquire(self, model: str | None, deadline: float, rollout_id: str | None = None) -> Engine | None:
        """Waits for an engine until a time of the monotonic clock; None if none came."""
        while (engine := self.pick(model, rollout_id)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            changed = self._changed
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, DOWN_SECONDS)):
                    await changed.wait()
        engine.last_used = time.monotonic()
        if rollout_id is not None and len(self.all()) > 1:
            self._remember(rollout_id, engine)
        return engine

    def _remember(self, rollout_id: str, engine: Engine) -> None:
        self._last[rollout_id] = engine.endpoint
        self._last.move_to_end(rollout_id)
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)

    @staticmethod
    def mark_down(engine: Engine, seconds: float | None = None) -> None:
        """It refused a call.

        Args:
            seconds: how long it asks to be let alone.
        """
        now = time.monotonic()
        if engine.down_until <= now:  # of calls that failed together one counts
            engine.failures += 1
        if seconds is None:
            seconds = min(DOWN_SECONDS * (1 << min(engine.failures - 1, 8)), MAX_DOWN_SECONDS)
        engine.down_until = max(engine.down_until, now + seconds)


def _rank(engine: Engine) -> tuple[int, int, float]:
    loaded = engine.loaded
    return (0 if loaded is None else -loaded, engine.in_flight, engine.last_used)
