"""Writes the spans of calls; returns when the brokers have them."""

import asyncio
import logging
from collections import Counter
from datetime import timedelta

from headrace.connectors.gateway.errors import BAD_GATEWAY, TOO_LARGE, CallError, unavailable
from headrace.connectors.gateway.redaction import Redactor
from headrace.connectors.gateway.spans import Observed, SpanMaker
from headrace.connectors.gateway.spool import Spool
from headrace.schemas.records import Span
from headrace.streams.codec import EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.kafka.messages import Headers, OutMessage
from headrace.streams.tracecontext import format_traceparent

log = logging.getLogger(__name__)

# A gateway that is to end waits so long for acknowledgements: another one may answer the call that is made again.
LAST_SECONDS = 2.0


class Recorder:
    """One a process.

    Args:
        wait: for an acknowledgement.
        redactor: has the last word on what is written.
        spool: takes spans of outside traffic when brokers are away.
        spool_after: for so long such a span waits for an acknowledgement.

    Attributes:
        counters: calls that have no span (`unsampled`), spans that were spooled, and those without their content, by
            the reason.
    """

    def __init__(
        self,
        producer: AckedProducer,
        spans: SpanMaker,
        wait: timedelta,
        redactor: Redactor | None = None,
        spool: Spool | None = None,
        spool_after: timedelta = timedelta(seconds=1),
    ) -> None:
        self._spool, self._spool_after = spool, min(wait, spool_after).total_seconds()
        self._producer, self._spans, self._wait = producer, spans, wait.total_seconds()
        self._redactor = redactor or Redactor(None)
        self._waiting: set[asyncio.Timeout] = set()
        self.counters: Counter[str] = Counter()

    def hurry(self) -> None:
        """The gateway is about to end: what waits for brokers that are away is told so soon."""
        self._wait = min(self._wait, LAST_SECONDS)
        deadline = asyncio.get_running_loop().time() + self._wait
        for waiting in self._waiting:
            if not waiting.expired():
                waiting.reschedule(min(deadline, waiting.when() or deadline))

    async def record(self, call: Observed) -> None:
        """Returns when the brokers have the span.

        Raises:
            CallError: 413 where the call is too large for a record, 503 where no broker acknowledged in time. A span
                that says so is written all the same.
        """
        if not call.caller.recorded:
            self.counters["unsampled"] += 1
            return None
        try:
            return await self._send(call, self._spans(call))
        except RecordTooLargeError as error:
            refusal = CallError(TOO_LARGE, "record_too_large", f"the call cannot be recorded: {error}")
        except EncodeError as error:
            refusal = CallError(BAD_GATEWAY, "engine_garbage", f"the call cannot be recorded: {error}")
        call.fail(refusal)
        try:
            await self._send(call, self._spans(call, bodies=False))
        except (RecordTooLargeError, EncodeError):
            await self._send(call, self._spans.bare(call))
        raise refusal

    async def _send(self, call: Observed, span: Span) -> None:
        span, withheld = self._redactor(span, opted_out=not call.caller.train)
        if withheld is not None:
            self.counters[withheld] += 1
        headers: Headers = [("traceparent", format_traceparent(span.trace_id, span.span_id))]
        if self._spool is not None and call.caller.attempt_id is None:
            message = self._producer.message.whole(span, headers)
            if self._producer.message.fits(message):  # another one goes by claim-check, and needs its store
                return await self._send_or_spool(message, self._spool)
        waiting = asyncio.timeout(self._wait)
        self._waiting.add(waiting)
        try:
            async with waiting:
                await self._producer.send(span, headers)
        except TimeoutError as error:
            message = f"no broker acknowledged the span within {self._wait:g} s"
            raise unavailable("broker_unavailable", message) from error
        except DeliveryError as error:
            raise unavailable("broker_unavailable", f"the span was not written: {error}") from error
        finally:
            self._waiting.discard(waiting)

    async def _send_or_spool(self, message: OutMessage, spool: Spool) -> None:
        """Returns when the brokers have it, or the spool. While anything is in the spool, the brokers are away."""
        if not spool.pending:
            try:
                async with asyncio.timeout(self._spool_after):
                    await self._producer.send_message(message)
                    return
            except (TimeoutError, DeliveryError):
                log.info("no broker takes spans: they are spooled")
        if not spool.append(message):
            raise unavailable("broker_unavailable", "no broker takes the span, and the spool is full")
        self.counters["spooled"] += 1
