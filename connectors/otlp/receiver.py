"""Takes export requests: decoded, written, and answered once the brokers have every span of them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from headrace.connectors.content_coding import NotReadable, TooLarge, UnknownEncoding, decompressed
from headrace.connectors.otlp.answer import (
    BAD_REQUEST,
    JSON,
    PROTOBUF,
    TOO_LARGE,
    TOO_MANY,
    TOO_SLOW,
    UNAVAILABLE,
    UNSUPPORTED,
    Answer,
    refused,
    taken,
)
from headrace.connectors.otlp.decode import Decode, Decoded, OtlpError, decode_json, decode_protobuf
from headrace.connectors.otlp.letters import RefusedSpans, letters_of
from headrace.connectors.otlp.record import Caller, Malformed, check_id
from headrace.connectors.otlp.settings import OtlpSettings
from headrace.connectors.otlp.spans import Prepared, prepare
from headrace.streams.errors import HeadraceError
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.messages import OutMessage

log = logging.getLogger(__name__)

PATH = "/v1/traces"
ROLLOUT_HEADER, ATTEMPT_HEADER, SESSION_HEADER = "x-rollout-id", "x-attempt-id", "x-session-id"
RETRY_SECONDS = 2
MESSAGE_CHARACTERS = 1000
THREAD_BYTES = 1024 * 1024  # a larger request is read beside the event loop, which answers others meanwhile
DECODERS: dict[str, Decode] = {PROTOBUF: decode_protobuf, JSON: decode_json}


class Receiver:
    """Answers `POST /v1/traces`. Any HTTP server may carry it: bytes in, bytes out.

    Attributes:
        counters: requests, spans, rewards, refusals by their reason, and what was answered.
    """

    def __init__(self, settings: OtlpSettings, producer: AckedProducer, client_id: str) -> None:
        self._settings = settings
        self._producer = producer
        self._letter = DeadLetterMaker(settings, client_id)
        self._topic = settings.topic("spans")
        self._wait = settings.otlp_broker_wait.total_seconds()
        self._in_hand = 0
        self.counters: Counter[str] = Counter()

    async def handle(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to a request; names of headers are in lower case, or the mapping takes any case."""
        self.counters["requests"] += 1
        answer = await self._handle(headers, body)
        if answer.status != 200:
            self.counters[f"answered_{answer.status}"] += 1
        return answer

    def too_large(self, headers: Mapping[str, str]) -> Answer:
        """The answer to a request that the server did not read to its end."""
        return self._unread(headers, TOO_LARGE, self._limit_message())

    def unreadable(self, headers: Mapping[str, str], problem: str) -> Answer:
        """The answer to a request whose body broke off, or whose transfer coding is broken."""
        return self._unread(headers, BAD_REQUEST, f"the body cannot be read: {problem}")

    def too_many(self, headers: Mapping[str, str]) -> Answer:
        """The answer to a request while too much is being read."""
        return self._unread(headers, TOO_MANY, "too many requests are being read", RETRY_SECONDS)

    def too_slow(self, headers: Mapping[str, str]) -> Answer:
        """The answer to a request whose body does not come."""
        seconds = self._settings.otlp_body_wait.total_seconds()
        return self._unread(headers, TOO_SLOW, f"the body did not come within {seconds:g} s (otlp_body_wait)")

    def _unread(self, headers: Mapping[str, str], status: int, message: str, retry_after: int | None = None) -> Answer:
        self.counters["requests"] += 1
        self.counters[f"answered_{status}"] += 1
        return refused(_content_type(headers) or JSON, status, message, retry_after)

    async def _handle(self, headers: Mapping[str, str], body: bytes) -> Answer:
        content_type = _content_type(headers)
        if content_type is None:
            return refused(JSON, UNSUPPORTED, f"Content-Type must be {PROTOBUF} or {JSON}")
        try:
            caller = _caller(headers)
            body = decompressed(body, headers.get("content-encoding") or "", self._settings.otlp_max_body_bytes)
        except TooLarge:
            return refused(content_type, TOO_LARGE, self._limit_message())
        except NotReadable as error:
            return refused(content_type, BAD_REQUEST, f"the body is not what its Content-Encoding says: {error}")
        except UnknownEncoding:
            return refused(content_type, UNSUPPORTED, "Content-Encoding must be gzip, deflate or identity")
        except Malformed as error:
            return refused(content_type, BAD_REQUEST, str(error))
        size = len(body)
        if self._in_hand and self._in_hand + size > self._settings.otlp_max_in_hand_bytes:
            return refused(content_type, TOO_MANY, "too many spans wait for the brokers", RETRY_SECONDS)
        self._in_hand += size
        try:
            if size < THREAD_BYTES:
                decoded, prepared = self._read(content_type, body, caller)
            else:
                decoded, prepared = await asyncio.to_thread(self._read, content_type, body, caller)
            return await self._write(content_type, decoded, prepared)
        except OtlpError as error:
            return refused(content_type, BAD_REQUEST, str(error)[:MESSAGE_CHARACTERS])
        finally:
            self._in_hand -= size

    def _read(self, content_type: str, body: bytes, caller: Caller) -> tuple[Decoded, Prepared]:
        decoded = DECODERS[content_type](body, caller)
        return decoded, prepare(decoded, self._producer.message, self._settings.otlp_max_span_bytes)

    async def _write(self, content_type: str, decoded: Decoded, prepared: Prepared) -> Answer:
        try:
            async with asyncio.timeout(self._wait):
                await self._send(prepared)
        except TimeoutError:
            return refused(content_type, UNAVAILABLE, f"no broker answered within {self._wait:g} s", RETRY_SECONDS)
        except HeadraceError as error:  # of the brokers, or of the store of large records
            return refused(content_type, UNAVAILABLE, str(error)[:MESSAGE_CHARACTERS], RETRY_SECONDS)
        self._count(decoded, prepared)
        if not decoded.refused and not prepared.refused:
            return taken(content_type)
        return taken(content_type, len(prepared.refused), _message(decoded, prepared))

    async def _send(self, prepared: Prepared) -> None:
        """Returns when the brokers have all of it. Nothing is taken back where they have only some: whoever sends the
        request again sends the same spans, of which readers know the first."""
        spans = self._producer.send_all(prepared.messages)
        if not prepared.large and not prepared.refused:
            await spans
            return
        letters = letters_of(self._topic, prepared.refused)
        await asyncio.gather(spans, *map(self._send_large, prepared.large), *map(self._send_letter, letters))

    async def _send_large(self, message: OutMessage) -> None:
        claimed = await asyncio.to_thread(self._producer.message.claimed, message)
        await self._producer.send_message(claimed)

    async def _send_letter(self, refused_spans: RefusedSpans) -> None:
        letter = await asyncio.to_thread(self._letter, refused_spans, refused_spans.reason, refused_spans.detail)
        await self._producer.send_message(letter)

    def _count(self, decoded: Decoded, prepared: Prepared) -> None:
        counters = self.counters
        counters["spans"] += prepared.spans
        counters["rewards"] += len(decoded.rewards)
        if not decoded.refused and not prepared.refused:
            return
        counters.update(one.code for one in prepared.refused)
        counters.update(one.code for one in decoded.refused if one.raw is None)
        if prepared.refused:
            log.warning("%d spans of a request were refused: %s", len(prepared.refused), prepared.refused[0].code)

    def _limit_message(self) -> str:
        return f"the request is larger than {self._settings.otlp_max_body_bytes} bytes (otlp_max_body_bytes)"


def _content_type(headers: Mapping[str, str]) -> str | None:
    name = (headers.get("content-type") or "").partition(";")[0].strip().lower()
    return name if name in DECODERS else None


def _caller(headers: Mapping[str, str]) -> Caller:
    names = (ROLLOUT_HEADER, ATTEMPT_HEADER, SESSION_HEADER)
    caller = Caller(*(headers.get(name) or None for name in names))
    if caller.rollout_id is not None:
        check_id(caller.rollout_id, ROLLOUT_HEADER)
    if caller.attempt_id is not None:
        check_id(caller.attempt_id, ATTEMPT_HEADER)
    if caller.session_id is not None and not caller.session_id.isprintable():
        raise Malformed(f"{SESSION_HEADER} is no text")
    return caller


def _message(decoded: Decoded, prepared: Prepared) -> str:
    """Why spans were refused, and which reward values were."""
    reasons = Counter(one.message or one.code for one in prepared.refused)
    rewards = Counter(one.code for one in decoded.refused if one.raw is None and one.code.endswith("_reward"))
    parts = [f"{n} refused: {reason}" for reason, n in reasons.most_common(5)]
    parts += [f"{n} reward values refused: {code}" for code, n in rewards.items()]
    return "; ".join(parts)[:MESSAGE_CHARACTERS]
