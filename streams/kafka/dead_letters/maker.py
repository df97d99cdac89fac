"""Dead letters that fit their topic: what is too large goes by claim-check, and nothing blocks for its size."""

import hashlib
from dataclasses import replace

from headrace.schemas import claim_check
from headrace.streams.claims import ClaimStores
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.admin import cluster_id
from headrace.streams.kafka.dead_letters.letter import LEFT_OUT, context_of, make
from headrace.streams.kafka.messages import Message, OutMessage, size_of
from headrace.streams.settings import Settings
from headrace.streams.topics import DEAD_LETTER_EXTRA_BYTES

LONGEST_KEY_BYTES = 1024


class DeadLetterMaker:
    """Makes the dead letters of one reader.

    A record may be larger than this process could have written: the limit of a topic counts compressed bytes, that of
    a producer those before.
    """

    def __init__(self, settings: Settings, reader: str) -> None:
        self._limit = settings.max_message_bytes + DEAD_LETTER_EXTRA_BYTES
        self._settings = settings
        self._claims = ClaimStores(settings)
        self._reader = reader

    def __call__(self, message: Message, reason: str, detail: str) -> OutMessage:
        """The dead letter of a message.

        Raises:
            ClaimsUnavailableError, BrokerUnavailableError: it has to go by claim-check, and the store, or the broker
                that tells the cluster's id, does not answer now.
        """
        letter = make(message, reason, detail, self._reader)
        if size_of(letter) <= self._limit:
            return letter
        value = letter.value
        if value is not None and self._claims.refusal(len(value)) is None:
            try:
                claim = self._claims.put(f"{cluster_id(self._settings)}/{message.topic()}", value)
            except RecordTooLargeError:
                pass  # nothing can be written there; what fits is kept
            else:
                claimed = replace(letter, value=claim_check.encode(claim))
                if size_of(claimed) <= self._limit:
                    return claimed
        return self._abridged(message, reason, detail)

    def _abridged(self, message: Message, reason: str, detail: str) -> OutMessage:
        key, value = message.key(), message.value() or b""
        short = key if key is None or len(key) <= LONGEST_KEY_BYTES else None
        left = f"a value of {len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()}, and headers"
        if short is not key:
            left += f", and a key of {len(key or b'')} bytes"
        context = [*context_of(message, reason, detail, self._reader), (LEFT_OUT, left)]
        return replace(make(message, reason, detail, self._reader), key=short, value=None, headers=context)
