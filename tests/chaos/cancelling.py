"""Asks for cancels as `cancel_requested` events on the attempts topic."""

from collections.abc import Iterable

from headrace.schemas.records import AttemptEvent
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.settings import Settings

FLUSH_SECONDS = 30.0


class Canceller:
    """One producer for all requests."""

    def __init__(self, settings: Settings) -> None:
        self._message = MessageMaker(settings)
        self._producer = make_producer(settings, "chaos-cancel")

    def __call__(self, rollout_ids: Iterable[str]) -> bool:
        """Whether all requests were acknowledged."""
        for rollout_id in rollout_ids:
            event = AttemptEvent(rollout_id=rollout_id, attempt=0, type="cancel_requested", at=wall_us())
            message = self._message(event)
            headers = message.headers or None
            self._producer.produce(message.topic, message.value, message.key, headers=headers)  # type: ignore[arg-type]
        return self._producer.flush(FLUSH_SECONDS) == 0
