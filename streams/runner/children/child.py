"""The child process: runs one rollout after another, and says over a socket what the agent says.

    python -m headrace.streams.runner.children.child DESCRIPTOR PARENT_PID

No Kafka client runs in it: records are encoded here, and written by the parent.
"""

import asyncio
import json
import logging
import os
import socket
import sys
import threading
from typing import NamedTuple

import msgspec
import uvloop

from headrace.schemas.records import Record
from headrace.streams.agent.base import Agent
from headrace.streams.agent.failover import use_gateways
from headrace.streams.agent.tracer import AttemptTracer, Position
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.kafka.acked_producer import DeliveryError
from headrace.streams.kafka.messages import MessageMaker
from headrace.streams.runner.calling import FAILED, SUCCEEDED, LocalCall, Outcome, decode_input, error_info
from headrace.streams.runner.children import frames
from headrace.streams.runner.children.dying import die_with
from headrace.streams.runner.loading import load_agent
from headrace.streams.runner.observing import Observers
from headrace.streams.runner.spawned import guard_spawned_tasks
from headrace.streams.runner.threads import AgentThreads
from headrace.streams.settings import Settings

EXIT_ORPHANED = 3


class Loaded(NamedTuple):
    """What a child has loaded, or why it could not."""

    agent: Agent | None
    message: MessageMaker | None
    observers: Observers
    problem: str | None = None


class SocketWriter:
    """The tracer's writer: a record goes to the parent, which answers when the brokers have it."""

    def __init__(self, link: frames.FrameLink, message: MessageMaker) -> None:
        self._link = link
        self._message = message
        self._number = 0
        self._waiting: dict[int, asyncio.Future[Position]] = {}

    def send(self, record: Record) -> asyncio.Future[Position]:
        """As `AckedProducer.send`."""
        message = self._message(record)
        self._number += 1
        future: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = future
        self._link.send(
            frames.Say(
                number=self._number,
                topic=message.topic,
                key=message.key,
                value=message.value,
                headers=message.headers,
                partition=message.partition,
            )
        )
        return future

    def acked(self, frame: frames.Acked) -> None:
        """The parent has an answer."""
        future = self._waiting.pop(frame.number)
        if future.done():
            return
        if frame.error is not None:
            future.set_exception(DeliveryError(frame.error))
        else:
            future.set_result((frame.partition, frame.offset))


class Child:
    """Does what the parent says; one rollout at a time. Make it on the event loop."""

    def __init__(self, loaded: Loaded) -> None:
        self.link = frames.FrameLink(frames.ToChild, self._received, self._orphaned)
        self._agent = loaded.agent
        self._problem = loaded.problem
        self._observers = loaded.observers
        self._writer = SocketWriter(self.link, loaded.message) if loaded.message is not None else None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._threads = AgentThreads()
        self._call: LocalCall | None = None
        self._jobs: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Works until the parent closes its end."""
        self.link.send(frames.Ready(error=self._problem))
        await self._over

    def _received(self, frame: frames.Frame) -> None:
        if isinstance(frame, frames.Acked):
            assert self._writer is not None
            self._writer.acked(frame)
        elif isinstance(frame, frames.Work):
            job = asyncio.get_running_loop().create_task(self._work(frame))
            self._jobs.add(job)
            job.add_done_callback(self._jobs.discard)
        elif isinstance(frame, frames.Stop):
            if self._call is not None:
                self._call.stop()
        elif isinstance(frame, frames.Gateways):
            use_gateways(lambda: (frame.live, frame.known))

    async def _work(self, work: frames.Work) -> None:
        assert self._agent is not None
        assert self._writer is not None
        returned: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        rollout = msgspec.structs.replace(work.rollout, input=decode_input(work.input))
        tracer = AttemptTracer(rollout, self._writer)
        resources = frames.resources_of(work)
        call = LocalCall(self._agent, tracer, resources, self._threads, returned.set_result, self._observers)
        self._call = call
        outcome = await returned
        try:
            await call.flush()
        except (DeliveryError, RecordTooLargeError) as error:
            if outcome.status == SUCCEEDED:
                outcome = Outcome(FAILED, error=error_info(error))
        call.close()
        self._call = None
        self.link.send(
            frames.Done(
                status=outcome.status,
                reward=outcome.reward,
                error=outcome.error,
                threads=threading.active_count(),
                counts=self._observers.counts.take(),
            )
        )

    def _orphaned(self) -> None:
        if self._jobs:  # the agent may never return
            os._exit(EXIT_ORPHANED)
        if not self._over.done():
            self._over.set_result(None)


def _load(setup: frames.Setup) -> Loaded:
    logging.basicConfig(
        level=setup.log_level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    observers = Observers(setup.observers, setup.worker_id, alone=True)
    try:
        agent = load_agent(setup.agent)
        return Loaded(agent, MessageMaker(Settings(**json.loads(setup.settings))), observers.load())
    except BaseException as error:  # whatever the agent's module raises, the parent says it
        return Loaded(None, None, observers, f"{type(error).__name__}: {error}")


async def _serve(own: socket.socket, loaded: Loaded) -> None:
    child = Child(loaded)
    own.setblocking(False)
    guard_spawned_tasks(asyncio.get_running_loop())
    await asyncio.get_running_loop().create_connection(lambda: child.link, sock=own)
    await child.run()


def main() -> None:
    """The process."""
    descriptor, parent = int(sys.argv[1]), int(sys.argv[2])
    die_with(parent)
    own = socket.socket(fileno=descriptor)
    own.set_inheritable(False)
    loaded = _load(frames.read_setup(own))  # before there is an event loop, as in the parent
    uvloop.run(_serve(own, loaded))


if __name__ == "__main__":
    main()
