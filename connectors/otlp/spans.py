"""From decoded spans to messages; what fits no record is refused."""

import msgspec

from headrace.connectors.otlp.decode import MALFORMED, Decoded, Refused
from headrace.connectors.otlp.encode import encode_spans
from headrace.connectors.otlp.envelope import split
from headrace.schemas.records import Span
from headrace.streams.codec import EncodeError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.messages import MessageMaker, OutMessage
from headrace.streams.tracecontext import format_traceparent

SPAN_TOO_LARGE = "span_too_large"


class Prepared(msgspec.Struct):
    """What is written of a request.

    Attributes:
        messages: spans and rewards as messages.
        large: spans that go by claim-check.
        refused: the spans that are not taken.
        spans: how many are.
    """

    messages: list[OutMessage]
    large: list[OutMessage]
    refused: list[Refused]
    spans: int = 0


def prepare(decoded: Decoded, maker: MessageMaker, max_span_bytes: int) -> Prepared:
    """The messages of a request.

    Args:
        max_span_bytes: of a record; a larger span is refused, so that nobody outside fills the store of large records.
    """
    prepared = Prepared([], [], decoded.malformed)
    limit = max_span_bytes
    for span in decoded.spans:
        try:
            message = maker.whole(span, [("traceparent", format_traceparent(span.trace_id, span.span_id))])
            size = len(message.value or b"")
            if size > limit:
                raise RecordTooLargeError(f"a span of {size} bytes; the limit is {limit} (otlp_max_span_bytes)")
            if maker.fits(message):
                prepared.messages.append(message)
            else:
                maker.check(message, "a span")
                prepared.large.append(message)
        except EncodeError as error:
            prepared.refused.append(_refused(span, MALFORMED, str(error)))
        except RecordTooLargeError as error:
            prepared.refused.append(_refused(span, SPAN_TOO_LARGE, str(error)))
    prepared.spans = len(prepared.messages) + len(prepared.large)
    prepared.messages += [maker.whole(reward) for reward in decoded.rewards]
    return prepared


def _refused(span: Span, code: str, message: str) -> Refused:
    raw = next(split(encode_spans([span]).SerializeToString()), None)
    return Refused(code, f"{span.rollout_id}/{span.trace_id}/{span.span_id}", span.rollout_id, message, raw)
