"""A receiver whose messages stay in memory: what is tested with it is the edge, not Kafka."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from headrace.connectors.otlp.receiver import Receiver
from headrace.connectors.otlp.settings import OtlpSettings
from headrace.schemas.records import Reward, Span
from headrace.streams.codec import Codec
from headrace.streams.kafka.acked_producer import AckedProducer, DeliveryError
from headrace.streams.kafka.messages import MessageMaker, OutMessage


class MemoryProducer:
    """Acknowledges at once; `failing` as brokers that are away, `silent` as those that do not answer."""

    def __init__(self, settings: OtlpSettings) -> None:
        self.message = MessageMaker(settings)
        self.sent: list[OutMessage] = []
        self.failing = self.silent = False

    def send_all(self, messages: Sequence[OutMessage]) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self.failing:
            future.set_exception(DeliveryError("no broker"))
        elif not self.silent:
            self.sent += messages
            future.set_result(None)
        return future

    def send_message(self, message: OutMessage) -> asyncio.Future[Any]:
        return self.send_all([message])


class MemoryReceiver:
    """A receiver, what it has written, and its answers."""

    def __init__(self, **changes: Any) -> None:
        self.settings = OtlpSettings(**changes)
        self.producer = MemoryProducer(self.settings)
        self.receiver = Receiver(self.settings, cast(AckedProducer, self.producer), "otlp-test")
        self._codec = Codec(self.settings)

    def of_topic(self, name: str) -> list[OutMessage]:
        return [message for message in self.producer.sent if message.topic == name]

    @property
    def spans(self) -> list[Span]:
        found = [self._codec.decode(m.value) for m in self.of_topic(self.settings.topic("spans"))]
        return cast("list[Span]", found)

    @property
    def rewards(self) -> list[Reward]:
        found = [self._codec.decode(m.value) for m in self.of_topic(self.settings.topic("rewards"))]
        return cast("list[Reward]", found)

    @property
    def letters(self) -> list[OutMessage]:
        return self.of_topic(self.settings.topic("spans") + ".dlq")
