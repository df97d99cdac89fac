"""Calls whose prompt goes to the engine as ids: those of the turn before, exactly, and those of what is new."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson

from headrace.connectors.gateway.answer import Answer
from headrace.connectors.gateway.caller import Caller
from headrace.connectors.gateway.engines import Engine
from headrace.connectors.gateway.request import ModelRequest
from headrace.connectors.gateway.spans import Observed
from headrace.connectors.gateway.token_in.bridge import BEFORE, TEMPLATE, WORDS, calls_tools, new_ids, stand_in
from headrace.connectors.gateway.token_in.continuation import (
    CONTINUED,
    ENGINE,
    MODEL,
    Continuation,
    answered,
    closed,
    find_turn,
)
from headrace.connectors.gateway.token_in.fingerprints import fingerprint
from headrace.connectors.gateway.token_in.memory import ID_BYTES, Memory, Turn
from headrace.connectors.gateway.upstream import ConnectionLost, EngineTimeout, NotServed, Upstream
from headrace.schemas.packing import pack_int32
from headrace.streams.http1.answers import MalformedAnswerError

log = logging.getLogger(__name__)

# An engine may be started anew: after so long one that had not the means is asked again, and how it renders forgotten.
UNABLE_SECONDS = 60.0
# Renderings of stand-ins that are remembered: they are the same for every turn with the same tools.
REMEMBERED_RENDERINGS = 1024


class TokenIn:
    """Token-in continuation of one gateway process.

    Args:
        enabled: for calls that do not say themselves.
        max_bytes: of the turns that are remembered.
    """

    def __init__(self, upstream: Upstream, *, enabled: bool, max_bytes: int) -> None:
        self._upstream, self._enabled = upstream, enabled
        self._memory = Memory(max_bytes)
        self._renderings: OrderedDict[bytes, tuple[float, list[int]]] = OrderedDict()
        self._unable: dict[str, float] = {}

    def begin(self, caller: Caller, request: ModelRequest) -> Continuation | None:
        """What a call goes on from; None where its prompt is rendered as ever."""
        wanted = self._enabled if caller.token_in is None else caller.token_in
        if not wanted or request.operation.is_text or not (caller.train and caller.recorded):
            return None
        if caller.attempt_id is None and caller.session_id is not None:
            key = (caller.session_id, None)
        else:
            key = (caller.rollout_id, caller.attempt_id)
        return find_turn({**request.fields, **request.prompt}, key, self._memory)

    async def body(self, call: Observed, engine: Engine) -> bytes:
        """The body of a call for an engine.

        Raises:
            Unreachable: as the call itself.
        """
        assert call.request is not None
        going, model = call.continuation, engine.model or ""
        if going is None or going.turn is None:
            return call.request.upstream(model)
        found = await self._prompt(going, going.turn, engine)
        if isinstance(found, str):
            going.plain(found)
        else:
            going.result, going.sent = CONTINUED, found
        return call.request.upstream(model, going.sent)

    def end(self, call: Observed) -> None:
        """Notes what came of it, and remembers the turn."""
        going, answer = call.continuation, call.answer
        if going is None:
            return
        if going.sent and answer is not None and answer.prompt_token_ids != going.sent:
            going.plain(ENGINE)
            if answer.prompt_token_ids and call.endpoint is not None:
                self._unable[call.endpoint] = time.monotonic() + UNABLE_SECONDS
        if answer is not None and call.error is None:
            self._keep(going, answer, call.policy or call.model or "")

    def _keep(self, going: Continuation, answer: Answer, model: str) -> None:
        parent, prompt = going.turn, answer.prompt_token_ids
        if not prompt:
            return
        before = parent.ids if parent is not None else b""
        if not prompt.startswith(before):
            parent, before = None, b""
        for choice in reversed(answer.choices):  # of two that say the same the first is kept
            if choice.finish_reason is None or not choice.response_token_ids:
                continue
            ended = closed(going, choice.finish_reason, len(choice.response_token_ids) // ID_BYTES)
            said = answered(going.fingerprint, choice.text, orjson.loads(choice.tool_calls))
            suffix = prompt[len(before) :] + choice.response_token_ids
            self._memory.keep(going.key, said, Turn(suffix, going.context, model, ended, parent))

    async def _prompt(self, going: Continuation, turn: Turn, engine: Engine) -> bytes | str:
        """The packed ids, or why there are none."""
        if turn.model != (engine.policy or engine.model):
            return MODEL
        if self._unable.get(engine.endpoint, 0.0) > time.monotonic():
            return ENGINE
        try:
            found = await self._new_ids(going, turn, engine)
        except (NotServed, ConnectionLost, EngineTimeout, MalformedAnswerError) as error:
            # The call itself may still be answered: it must not fail of what only continues it.
            log.info("%s: turns are not continued there", error)
            if not (isinstance(error, NotServed) and error.busy):
                self._unable[engine.endpoint] = time.monotonic() + UNABLE_SECONDS
            return ENGINE
        return found if isinstance(found, str) else turn.ids + pack_int32(found)

    async def _new_ids(self, going: Continuation, turn: Turn, engine: Engine) -> list[int] | str:
        options = {**going.options, "model": engine.model}
        reason = TEMPLATE
        for before in BEFORE:
            turns = [[*before, stand_in(going.new, word)] for word in WORDS]
            alone, other, followed = await asyncio.gather(
                self._render(engine, {**options, "messages": turns[0], "add_generation_prompt": False}),
                self._render(engine, {**options, "messages": turns[1], "add_generation_prompt": False}),
                self._ask(engine, {**options, "messages": [*turns[0], *going.new]}),
            )
            if alone is None or other is None or followed is None:
                continue  # the template refuses it
            found = new_ids(turn.last, turn.closed, alone, other, followed, tools=calls_tools(going.new))
            if not isinstance(found, str):
                return found
            reason = found
        return reason

    async def _render(self, engine: Engine, asked: Mapping[str, Any]) -> list[int] | None:
        key, now = fingerprint([engine.endpoint, asked]), time.monotonic()
        if (known := self._renderings.get(key)) is not None and known[0] > now:
            self._renderings.move_to_end(key)
            return known[1]
        ids = await self._ask(engine, asked)
        if ids is not None:
            self._renderings[key] = now + UNABLE_SECONDS, ids
            if len(self._renderings) > REMEMBERED_RENDERINGS:
                self._renderings.popitem(last=False)
        return ids

    async def _ask(self, engine: Engine, asked: Mapping[str, Any]) -> list[int] | None:
        return await self._upstream.tokenize(engine.endpoint, orjson.dumps(asked))
