"""Finding an engine that takes a call, and another where it does not."""

import logging
import time
from collections.abc import Awaitable, Callable

from headrace.connectors.gateway.engines import Engine, Engines
from headrace.connectors.gateway.errors import GATEWAY_TIMEOUT, CallError, EngineRefusal, garbage, unavailable
from headrace.connectors.gateway.retry_after import seconds_of
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.connectors.gateway.spans import Observed
from headrace.connectors.gateway.upstream import ConnectionLost, EngineTimeout, Unreachable
from headrace.streams.http1.answers import MalformedAnswerError

log = logging.getLogger(__name__)
Ask = Callable[[Observed, Engine], Awaitable[None]]


class EngineCalls:
    """Chooses engines for calls, and tries again where that is safe.

    One that refuses a connection, or says that it is busy (429, 503), is let alone for a while, longer each time, or as
    long as it asks for; the call goes to another, or waits for it, for `gateway_engine_wait` in all.
    """

    def __init__(self, settings: GatewaySettings, engines: Engines) -> None:
        self._engines = engines
        self._wait = settings.gateway_engine_wait.total_seconds()

    async def through(self, call: Observed, ask: Ask) -> None:
        """Calls `ask` with an engine, again where it raises what may be tried again.

        Raises:
            CallError: 503 where no engine took the call, or what the last one said; what `ask` raises.
        """
        assert call.request is not None
        deadline = time.monotonic() + self._wait
        model, rollout_id = call.request.model, call.caller.rollout_id
        lost, refusal = False, None
        while True:
            engine = await self._engines.acquire(model, deadline, rollout_id)
            if engine is None:
                raise refusal or unavailable(
                    "engine_unavailable", f"no engine answered within {self._wait:g} s; is one up?"
                )
            try:
                await self._ask(call, engine, ask)
                engine.failures = 0
                return
            except Unreachable as error:
                log.info("%s", error)
                self._engines.mark_down(engine)
            except EngineRefusal as error:
                if not error.busy:
                    if call.continuation is not None and call.continuation.refused():
                        continue  # the messages as they are may be taken: they are shorter where a template strips
                    raise
                refusal = error
                asked = seconds_of(error.retry_after, time.time()) if error.retry_after else None
                self._engines.mark_down(engine, asked)
                if engine.down_until >= deadline and self._engines.pick(model, rollout_id) is None:
                    raise
            except EngineTimeout as error:
                raise CallError(GATEWAY_TIMEOUT, "engine_timeout", str(error)) from error
            except ConnectionLost as error:
                # Once more, since an idle connection may close just as a call takes it; twice may be the call's fault.
                if lost or call.first_chunk_at:
                    raise unavailable("engine_lost", f"the engine went away: {error}") from error
                lost = True
            except MalformedAnswerError as error:
                raise garbage(f"the engine's answer is no HTTP: {error}") from error

    @staticmethod
    async def _ask(call: Observed, engine: Engine, ask: Ask) -> None:
        call.endpoint, call.model, call.policy = engine.endpoint, engine.model, engine.policy
        loaded = engine.loaded
        engine.in_flight += 1
        try:
            await ask(call, engine)
        finally:
            engine.in_flight -= 1
            call.policy_version = engine.versions(loaded)
