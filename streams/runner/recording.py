"""What a runner writes of attempts: starts, signs of life, ends, and the dead letters of tasks."""

import asyncio
import logging
from typing import Protocol

from headrace.schemas.records import Record
from headrace.streams.agent.tracer import Position
from headrace.streams.errors import BrokerUnavailableError, RecordTooLargeError
from headrace.streams.kafka.acked_producer import DeliveryError
from headrace.streams.kafka.dead_letters import DeadLetterMaker
from headrace.streams.kafka.messages import Message, MessageMaker, OutMessage
from headrace.streams.kafka.rereading import Rereader
from headrace.streams.runner import events
from headrace.streams.runner.calling import Outcome
from headrace.streams.runner.decoding import READER
from headrace.streams.runner.dispatch.values import GiveUp, Start, Withdraw
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)


class Sender(Protocol):
    """What is needed of `AckedProducer`."""

    message: MessageMaker

    def send(self, record: Record) -> asyncio.Future[Position]: ...
    def send_message(self, message: OutMessage) -> asyncio.Future[Position]: ...
    async def insist(self, message: OutMessage) -> Position: ...
    async def insist_on(self, record: Record) -> Position: ...
    def post(self, message: OutMessage) -> None: ...


class Recorder:
    """Writes attempt events. On the event loop, but for `sign`."""

    def __init__(self, settings: Settings, sender: Sender, worker_id: str) -> None:
        self._settings = settings
        self._sender = sender
        self._worker_id = worker_id
        self._dead_letter = DeadLetterMaker(settings, READER)

    async def start(self, start: Start, resources_id: str | None, *, with_input: bool) -> bool:
        """Writes a start; False if the brokers did not take it."""
        try:
            try:
                event = events.started(start, self._worker_id, resources_id, with_input=with_input)
                await self._sender.send(event)
            except RecordTooLargeError:  # the input fits into a task, but not beside what a start says more
                event = events.started(start, self._worker_id, resources_id, with_input=False)
                await self._sender.send(event)
        except DeliveryError as error:
            log.warning("the start of %s was not written, and will be tried again: %s", start.attempt_id, error)
            return False
        return True

    def sign(self, start: Start, kind: str) -> None:
        """Writes a `heartbeat` or an `activity`, from any thread; nobody waits for it."""
        self._sender.post(self._sender.message(events.sign(start, kind, self._worker_id)))

    async def end(self, start: Start, outcome: Outcome) -> None:
        """Writes an end, however long the brokers are away."""
        await self._sender.insist_on(events.ended(start, outcome, self._worker_id))

    async def withdraw(self, withdraw: Withdraw) -> None:
        """Writes the end of a task that was cancelled before it started."""
        try:
            await self._sender.insist_on(events.withdrawn(withdraw.entry, self._worker_id))
        except RecordTooLargeError:  # as with a start
            await self._sender.insist_on(events.withdrawn(withdraw.entry, self._worker_id, with_input=False))

    async def give_up(self, give_up: GiveUp) -> None:
        """Writes the dead letter and the end of a task that was lost too often."""
        event = events.given_up(give_up, self._worker_id)
        assert event.error is not None
        log.error("task of rollout %s: %s", event.rollout_id, event.error.message)
        task = await asyncio.to_thread(self._read_again, give_up)
        if task is not None:
            letter = self._dead_letter(task, events.TOO_MANY_DELIVERIES, event.error.message)
            await self.put_away(letter)
        await self._sender.insist_on(event)

    async def put_away(self, letter: OutMessage) -> None:
        """Writes a dead letter."""
        await self._sender.insist(letter)

    def _read_again(self, give_up: GiveUp) -> Message | None:
        """The task as it stands in the log, with its headers; None if it is gone."""
        entry = give_up.entry
        where = (self._settings.topic("tasks"), entry.partition)
        rereader = Rereader(self._settings, f"{self._worker_id}-given-up")
        try:
            return rereader.read({where: [entry.offset]}).get((*where, entry.offset))
        except BrokerUnavailableError as error:
            log.warning("the dead letter of rollout %s is not written: %s", entry.task.rollout_id, error)
            return None
        finally:
            rereader.close()
