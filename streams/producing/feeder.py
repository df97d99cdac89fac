"""The feeder of a training run: it asks for as much as the run may have undecided, and for no more.

Undecided are the rollouts of the run that it produced or that stand on the rollouts topic, less `TrainingStep.decided`.
A feeder that starts again counts also the tasks of the run that lifecycle has not yet taken.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from headrace.schemas.records import Record, RolloutState, RunManifest, Task, TrainingStep, Trajectory
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.errors import SettingsError
from headrace.streams.kafka.acked_producer import AckedProducer
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.group_offsets import GroupOffsets
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.producing.budget import Bound, RunBudget, bound_of, group_size_of
from headrace.streams.producing.choosing import Chooser, EveryPrompt
from headrace.streams.producing.prompts import PLACE, PROMPT, PromptBook
from headrace.streams.producing.specs import TaskSpec, tasks_of
from headrace.streams.settings import Settings
from headrace.streams.workers import WorkerAnnouncer

log = logging.getLogger(__name__)

KIND = "feeder"
TIMEOUT_SECONDS = 30.0
STOP_SECONDS = 10.0  # for what is being sent when it is told to stop; brokers that are away do not hold up the end
MOST_GROUPS_AT_ONCE = 64  # so that a decision that comes meanwhile is not waited with


class Feeder:
    """Feeds one run until its goal is reached or `stop` is called.

    Args:
        specs: gone through again and again; without rollout_id and group_id, which cannot come twice.
        run_id: the training run.
        bound: taken from the run's manifest where it is not given.
        seed: shuffles each epoch; None keeps the order.
        chooser: which prompts come next; None is each in turn. One that is given gets to know how the groups of each
            prompt have ended, from the trajectories of the run.
    """

    def __init__(
        self,
        settings: Settings,
        specs: Sequence[TaskSpec],
        run_id: str,
        *,
        bound: Bound | None = None,
        group_size: int = 1,
        mode: str | None = None,
        seed: int | None = 0,
        chooser: Chooser | None = None,
        worker_id: str | None = None,
    ) -> None:
        if not specs:
            raise SettingsError("there are no tasks to feed; the file is empty")
        self.produced = 0
        self._settings = settings
        self._specs = specs
        self._chooser = chooser or EveryPrompt(len(specs), seed)
        self._learns = chooser is not None
        self._book = PromptBook(run_id, specs)
        self._lock = threading.Lock()  # of the book
        self._budget = RunBudget(run_id)
        self._bound = bound
        self._group_size = group_size
        self._mode = mode
        self._worker_id = worker_id
        self._run_group_size: int | None = None  # of its manifest
        self._told = False
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self) -> None:
        """Ends `run` after what is being produced is acknowledged; call it on the loop."""
        self._stopping.set()
        self._changed.set()

    async def run(self, ready: asyncio.Future[str] | None = None) -> int:
        """Feeds; how many rollouts it asked for.

        Args:
            ready: gets the worker's id once the feeder knows how the run stands.

        Raises:
            SettingsError: a group does not fit the bound, or is not of the size that the run trains.
            TopicError: topics are missing.
        """
        self._loop = asyncio.get_running_loop()
        training = TopicFollower(self._settings, "training", self._training, client_id="feeder-training")
        rollouts = await asyncio.to_thread(self._follow_rollouts)
        triplets = await asyncio.to_thread(self._follow_triplets) if self._learns else None
        producer = AckedProducer(self._settings, "feeder")
        announcer = WorkerAnnouncer(self._settings, producer, KIND, worker_id=self._worker_id, counters=self._counters)
        try:
            await asyncio.to_thread(training.start)
            await announcer.start()
            if ready is not None:
                ready.set_result(announcer.state.worker_id)
            await self._feed(producer)
            await announcer.stop()
        finally:
            await asyncio.to_thread(training.close)
            await asyncio.to_thread(rollouts.close)
            if triplets is not None:
                await asyncio.to_thread(triplets.close)
            await producer.close()
        return self.produced

    async def _feed(self, producer: AckedProducer) -> None:
        while not self._stopping.is_set() and not self._budget.finished:
            self._changed.clear()
            groups = self._room()
            if groups == 0:
                self._tell_who_is_missing()
                await self._changed.wait()
                continue
            specs = self._choose(groups)
            tasks = list(
                tasks_of(specs, wall_us, group_size=self._group_size, mode=self._mode, run_id=self._budget.run_id)
            )
            for task in tasks:
                self._budget.add(task.rollout_id, task.enqueued_at // 1000)
            self._budget.forget(int(self._settings.retention.total_seconds() * 1000))
            if not await self._send(producer, tasks):
                return
            self.produced += len(tasks)

    def _tell_who_is_missing(self) -> None:
        if self._run_group_size is None and not self._told:
            self._told = True
            log.warning(
                "run %s is one that no trainer has begun: %d rollouts wait for `headrace trainer ... --run %s`",
                self._budget.run_id,
                self.produced,
                self._budget.run_id,
            )

    def _choose(self, groups: int) -> list[TaskSpec]:
        with self._lock:
            book = self._book
            # What was asked for before places stood in the metadata is known by its number alone.
            place = max(book.next_place, self._budget.rollouts // self._group_size)
            chosen = self._chooser(place, groups, book)
            if chosen[0].place - place >= len(self._specs):
                log.warning("All prompts are solved: the run is asked for those whose turn comes again")
            for choice in chosen:
                book.ask(choice.place, book.key(choice.prompt))
            specs = [(self._specs[c.prompt], {PLACE: str(c.place), PROMPT: book.key(c.prompt)}) for c in chosen]
        return [replace(spec, metadata={**spec.metadata, **marks}) for spec, marks in specs]

    async def _send(self, producer: AckedProducer, tasks: list[Task]) -> bool:
        """Sends, however long brokers or claim-check store are away; False if it was told to stop meanwhile."""
        sending = asyncio.gather(*(producer.insist_on(task) for task in tasks))
        stopping = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait({sending, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await asyncio.wait({sending}, timeout=STOP_SECONDS)
        if not sending.done():
            log.warning("stopped while the brokers were away: they may have taken some of %d tasks", len(tasks))
            sending.cancel()
            return False
        sending.result()
        return True

    def _room(self) -> int:
        if self._bound is None:
            return 0
        if self._run_group_size not in (None, self._group_size):
            raise SettingsError(
                f"run {self._budget.run_id} trains groups of {self._run_group_size}: give "
                f"--group-size {self._run_group_size}, not {self._group_size}"
            )
        if self._bound.rollouts < self._group_size:
            raise SettingsError(
                f"a group of {self._group_size} does not fit (max-staleness + 1) windows of {self._bound.rollouts} "
                "rollouts; make the window larger"
            )
        return min(self._budget.groups(self._bound, self._group_size), MOST_GROUPS_AT_ONCE)

    def _counters(self) -> dict[str, int]:
        return {
            "produced": self.produced,
            "undecided": self._budget.undecided,
            "decided": self._budget.decided,
            **self._curriculum_counters(),
        }

    def _curriculum_counters(self) -> dict[str, int]:
        if not self._learns:
            return {}
        with self._lock:
            skipped = self._book.next_place - self._budget.rollouts // self._group_size
            return {"skipped": max(0, skipped), "solved": self._chooser.solved(self._book)}

    # On the followers' threads

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: the feeder has ended
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._changed.set)

    def _training(self, record: Record, message: Message) -> None:
        if isinstance(record, TrainingStep):
            self._budget.decide(record)
            self._wake()
        elif isinstance(record, RunManifest) and record.run_id == self._budget.run_id:
            self._run_group_size = group_size_of(record)
            if self._bound is not None:
                return
            self._bound = bound_of(record, self._group_size)
            if self._bound is None:
                log.warning("the manifest of %s names no window; give --window and --max-staleness", record.run_id)
            self._wake()

    def _rollout(self, record: Record, message: Message) -> None:
        if isinstance(record, RolloutState):
            at = message.timestamp()[1]
            if record.run_id == self._budget.run_id:
                self._add(record, at)
            else:
                self._budget.pass_over(record.rollout_id, at)

    def _add(self, asked: RolloutState | Task, at: int) -> None:
        self._budget.add(asked.rollout_id, at)
        with self._lock:
            self._book.asked(asked.metadata)

    def _trajectory(self, record: Record, message: Message) -> None:
        if isinstance(record, Trajectory):
            with self._lock:
                self._book.take(record)

    def _unseen(self, message: Message) -> bool:
        return not self._budget.knows(message.key() or b"")

    def _follow_rollouts(self) -> TopicFollower:
        partitions = partition_ids(self._settings, self._settings.topic("rollouts"))
        follower = TopicFollower(
            self._settings,
            "rollouts",
            self._rollout,
            client_id="feeder-rollouts",
            partitions=partitions,
            wants=self._unseen,
        )
        follower.start()
        for task in tasks_not_taken(self._settings):
            if task.run_id == self._budget.run_id:
                self._add(task, task.enqueued_at // 1000)
        return follower

    def _follow_triplets(self) -> TopicFollower:
        partitions = partition_ids(self._settings, self._settings.topic("triplets"))
        return TopicFollower(
            self._settings, "triplets", self._trajectory, client_id="feeder-triplets", partitions=partitions
        ).start()


def tasks_not_taken(settings: Settings) -> list[Task]:
    """The tasks that lifecycle has not committed: their rollouts may not stand on the rollouts topic yet."""
    topic = settings.topic("tasks")
    partitions = partition_ids(settings, topic)
    offsets = GroupOffsets(settings, "feeder-offsets")
    try:
        committed = offsets.committed("lifecycle", [(topic, p) for p in partitions])
    finally:
        offsets.close()
    starts = {(topic, p): committed.get((topic, p), BEGINNING) for p in partitions}
    codec = Codec(settings)
    tasks: list[Task] = []
    for message in read_to_end(settings, starts, client_id="feeder-tasks"):
        with suppress(DecodeError):  # its owner writes the dead letter
            tasks.append(codec.decode_as(Task, message.value()))
    return tasks
