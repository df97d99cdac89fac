"""`TaskProducer`: tasks from Python, from plain code and from coroutines alike."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from itertools import islice
from types import TracebackType
from typing import Any, Self, TypeVar

from headrace.schemas.records import Task, TaskConfig
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.clock import wall_us
from headrace.streams.producing.specs import TaskFieldError, TaskSpec, spec_of, tasks_of
from headrace.streams.settings import Settings, load_settings

T = TypeVar("T")
LINGER_MS = 2  # somebody waits for the ack of each single task
BATCH = 5000  # tasks in flight of a bulk production


class TaskProducer:
    """Asks for rollouts. Every method returns once the brokers have acknowledged; safe to share between threads.

    `enqueue` is for plain code, `enqueue_async` for coroutines. Close it, or use it as a
    context manager of either kind.

    Args:
        settings: of the pipeline; read from headrace.toml and HEADRACE_* where none are given.
        run_id: the training run that asks, written into each task.
    """

    def __init__(
        self, settings: Settings | None = None, *, run_id: str | None = None, client_id: str = "task-producer"
    ) -> None:
        self._settings = settings or load_settings()
        self._run_id = run_id
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=client_id, daemon=True)
        self._thread.start()
        self._producer = self._call(self._open(client_id))

    def enqueue(
        self,
        input: Any,
        *,
        rollout_id: str | None = None,
        group_id: str | None = None,
        group_size: int = 1,
        sample_index: int = 0,
        mode: str | None = None,
        resources_id: str | None = None,
        config: TaskConfig | Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """Asks for one rollout; its id.

        Args:
            input: any JSON value; the agent gets it as `task`.
            rollout_id: an id of your own, without `~`; of several tasks with one id the first counts.
            group_id: rollouts of one group are compared with each other; `group_size` says how many it has, and
                `sample_index` which of them this is.
            mode: train, val or test.
            resources_id: the resources that the agent is to use instead of the newest.
            config: time-outs and retries.

        Raises:
            TaskFieldError: a value that no task may have.
            RecordTooLargeError: the task is above `max_message_bytes`.
            DeliveryError: the brokers, or the claim-check store of a large one, did not take it in time.
        """
        spec = spec_of(
            input,
            rollout_id=rollout_id,
            group_id=group_id,
            mode=mode,
            resources_id=resources_id,
            config=config,
            metadata=metadata,
        )
        task = self._task(spec, group_size, sample_index)
        self._call(self._send([task]))
        return task.rollout_id

    async def enqueue_async(
        self,
        input: Any,
        *,
        rollout_id: str | None = None,
        group_id: str | None = None,
        group_size: int = 1,
        sample_index: int = 0,
        mode: str | None = None,
        resources_id: str | None = None,
        config: TaskConfig | Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> str:
        """As `enqueue`, awaited from any event loop."""
        spec = spec_of(
            input,
            rollout_id=rollout_id,
            group_id=group_id,
            mode=mode,
            resources_id=resources_id,
            config=config,
            metadata=metadata,
        )
        task = self._task(spec, group_size, sample_index)
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._send([task]), self._loop))
        return task.rollout_id

    def enqueue_group(self, input: Any, size: int, *, mode: str | None = None) -> list[str]:
        """Asks for one input `size` times, as one group; the ids by `sample_index`. Raises as `enqueue`."""
        spec = spec_of(input, mode=mode)
        tasks = list(tasks_of([spec], wall_us, group_size=size, run_id=self._run_id))
        self._call(self._send(tasks))
        return [task.rollout_id for task in tasks]

    def produce(self, tasks: Iterable[Task], acked: Callable[[int], None] | None = None) -> list[str]:
        """Produces tasks that are made already; their ids, once all are acknowledged.

        Args:
            acked: told of every batch how many tasks it had.

        Raises:
            RecordTooLargeError, DeliveryError: as `enqueue`; earlier batches stay produced.
        """
        ids: list[str] = []
        source = iter(tasks)
        while batch := list(islice(source, BATCH)):
            self._call(self._send(batch))
            ids += [task.rollout_id for task in batch]
            if acked:
                acked(len(batch))
        return ids

    def close(self) -> None:
        """Closes the connection; may be called twice."""
        if self._loop.is_closed():
            return
        self._call(self._producer.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def _task(self, spec: TaskSpec, group_size: int, sample_index: int) -> Task:
        if not 0 <= sample_index < group_size:
            raise TaskFieldError("sample_index", f"is {sample_index}; a group of {group_size} counts from 0")
        (task,) = tasks_of([spec], wall_us, run_id=self._run_id)
        task.group_size, task.sample_index = group_size, sample_index
        return task

    def _call(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    async def _open(self, client_id: str) -> AckedProducer:
        return AckedProducer(self._settings, client_id, linger_ms=LINGER_MS)

    async def _send(self, tasks: list[Task]) -> None:
        messages = [await self._producer.make(task) for task in tasks]
        await asyncio.gather(*(self._producer.send_message(message) for message in messages))
