"""A trainer on a real broker, fed with synthetic trajectories."""

import random
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from headrace.schemas.records import Record, RunManifest, TrainingStep, Trajectory, VersionRange
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.clients import make_producer
from headrace.streams.kafka.follower import TopicFollower
from headrace.streams.kafka.messages import Message, MessageMaker
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.loop import TrainerLoop
from headrace.trainers.settings import RunSettings
from headrace.trainers.window import Windows
from headrace.trainers.window_settings import WindowSettings
from tests.trainers.make import POLICY, RUN, trajectory, triplet

GROUP = 4
WAIT_SECONDS = 90.0
Place = tuple[int, int]


def synthetic(groups: Iterable[int], *, seed: int = 0, **fields: Any) -> list[Trajectory]:
    """Groups of four with random tokens and rewards."""
    made: list[Trajectory] = []
    for group in groups:
        rng = random.Random(f"{seed}-{group}")
        for index in range(GROUP):
            prompt = [rng.randrange(48) for _ in range(rng.randrange(2, 9))]
            response = [rng.randrange(48) for _ in range(rng.randrange(1, 5))]
            call = triplet(prompt, response, [rng.uniform(-5, -1) for _ in response])
            values: dict[str, Any] = {
                "group_size": GROUP,
                "final_reward": float(rng.random() < 0.5),
                "triplets": [call],
                "policy_version": VersionRange(min=0, max=0),
            }
            made.append(trajectory(f"g{group}", index, **(values | fields)))
    return made


def produce(settings: Settings, records: Iterable[Record], raw: Iterable[bytes] = ()) -> None:
    producer = make_producer(settings, "test", linger_ms=0)
    make = MessageMaker(settings)
    for record in records:
        message = make(record)
        producer.produce(message.topic, message.value, message.key)
    for value in raw:
        producer.produce(settings.topic("triplets"), value, b"poison")
    assert producer.flush(10) == 0


def window_settings(**fields: Any) -> WindowSettings:
    return WindowSettings(**({"run_id": RUN, "policy": POLICY, "groups": 2, "max_staleness": 1000} | fields))


def loop(
    settings: Settings,
    model: Path,
    tmp_path: Path,
    lr: float = 1e-3,
    window: WindowSettings | None = None,
    arithmetic: GrpoSettings | None = None,
    **fields: Any,
) -> TrainerLoop:
    run = {"run_id": RUN, "policy": POLICY, "model": model, "checkpoints": tmp_path / "checkpoints"} | fields
    algorithm = Grpo(arithmetic or GrpoSettings(lr=lr), POLICY)
    return TrainerLoop(settings, RunSettings(**run), window or window_settings(), algorithm)


def training(settings: Settings) -> tuple[list[RunManifest], list[TrainingStep]]:
    codec = Codec(settings)
    records = [codec.decode(m.value()) for m in read_topic(settings, settings.topic("training"), [0], client_id="test")]
    return [r for r in records if isinstance(r, RunManifest)], [r for r in records if isinstance(r, TrainingStep)]


def triplets(settings: Settings) -> dict[Place, Trajectory]:
    codec, topic = Codec(settings), settings.topic("triplets")
    found: dict[Place, Trajectory] = {}
    for message in read_topic(settings, topic, partition_ids(settings, topic), client_id="test"):
        found[message.partition() or 0, message.offset() or 0] = codec.decode_as(Trajectory, message.value())
    return found


def run_until(
    settings: Settings,
    trainer: TrainerLoop,
    enough: Callable[[list[TrainingStep]], bool],
    seconds: float = WAIT_SECONDS,
) -> None:
    """Runs in this process until it has joined, and the steps of the log, whoever wrote them, are enough."""
    steps: list[TrainingStep] = []
    joined, reached, stop = threading.Event(), threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def handle(record: Record, message: Message) -> None:
        if isinstance(record, TrainingStep):
            steps.append(record)
            if enough(steps):
                reached.set()

    def work() -> None:
        try:
            torch.set_num_threads(1)
            trainer.run(stop, lambda facts: joined.set())
        except BaseException as error:
            failed.append(error)
            joined.set()
            reached.set()

    follower = TopicFollower(settings, "training", handle, client_id="test").start()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert joined.wait(seconds), "it has not joined"
        assert reached.wait(seconds), f"not enough after {len(steps)} steps"
    finally:
        stop.set()
        thread.join(WAIT_SECONDS)
        follower.close()
    if failed:
        raise failed[0]


def trained_at_least(count: int) -> Callable[[list[TrainingStep]], bool]:
    return lambda steps: sum(len(s.window.samples) for s in steps) >= count


def decided(steps: Iterable[TrainingStep]) -> list[Place]:
    return [
        (p.partition, p.offset)
        for step in steps
        for p in [*step.window.samples, *(x for d in step.window.dropped for x in d.samples)]
    ]


def undisturbed(
    model: Path, steps: list[TrainingStep], log: dict[Place, Trajectory], arithmetic: GrpoSettings | None = None
) -> dict[str, torch.Tensor]:
    """The weights after the same windows, without Kafka, checkpoints or restarts."""
    return learnt_undisturbed(model, steps, log, arithmetic).weights()


def learnt_undisturbed(
    model: Path, steps: list[TrainingStep], log: dict[Place, Trajectory], arithmetic: GrpoSettings | None = None
) -> Grpo:
    """As `undisturbed`, with its optimizer."""
    algorithm = Grpo(arithmetic or GrpoSettings(lr=1e-3), POLICY)
    algorithm.load(model)
    for step in steps:
        if not step.window.samples:
            continue
        groups_trained = {log[p.partition, p.offset].group_id for p in step.window.samples}
        windows = Windows(window_settings(groups=len(groups_trained)))
        for offset, place in enumerate(step.window.samples):
            windows.take((0, offset), 0, log[place.partition, place.offset])
        groups = windows.close(step.policy_version - 1, 0)
        assert groups is not None
        assert algorithm.train(groups, windows) is not None
    return algorithm
