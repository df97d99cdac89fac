"""What a trainer writes: manifest, steps and resources, each step in one transaction with its window."""

import json
import uuid
from collections.abc import Callable, Sequence
from importlib.metadata import version
from platform import python_version
from typing import Any

from headrace.schemas.records import LogPosition, Record, ResourcesUpdate, RunManifest, Weights
from headrace.streams.errors import FencedError
from headrace.streams.kafka.clock import wall_us
from headrace.streams.kafka.messages import Headers, MessageMaker, OutMessage
from headrace.streams.kafka.transactional.processor import Output
from headrace.streams.kafka.transactional.transactions import Transactions
from headrace.streams.settings import Settings
from headrace.trainers.settings import RunSettings

LIBRARIES = ("headrace", "torch", "numpy", "safetensors")


def group_of(run_id: str) -> str:
    """Short name of a run's consumer group; lag tools read its offsets, the trainer does not."""
    return f"trainer.{run_id}"


class Publisher:
    """The one writer of a run; making it fences every earlier one."""

    def __init__(self, settings: Settings, run_id: str, stopping: Callable[[], bool]) -> None:
        """While `stopping()`, brokers that are away are not waited for."""
        self._run_id = run_id
        self._make = MessageMaker(settings)
        try:
            name = group_of(run_id)
            self._transactions = Transactions(settings, f"trainer-{run_id}", settings.group(name), stopping)
        except FencedError as error:
            raise self._fenced() from error

    def publish(self, records: Sequence[Record], dead_letters: Sequence[OutMessage] = ()) -> None:
        """One transaction.

        Raises:
            FencedError: another trainer has taken over the run.
            SessionLostError: whether it was committed is for the log to say.
        """
        output = Output(messages=[self._make(record) for record in records])
        try:
            # Without offsets: the step holds the position. librdkafka's send_offsets_to_transaction does not come back
            # when the broker dies between its two requests.
            self._transactions.write(output, list(dead_letters), [], None)
        except FencedError as error:
            raise self._fenced() from error

    def publish_following(
        self, samples: Sequence[tuple[Record, Headers]], follow: Callable[[list[LogPosition]], Sequence[Record]]
    ) -> None:
        """One transaction of records and of those that say where these stand.

        Args:
            samples: with their headers.
            follow: given the positions of `samples`, the records that come after them.

        Raises:
            FencedError, SessionLostError: see `publish`.
        """
        messages = [self._make(record, headers) for record, headers in samples]
        output = Output(messages, lambda positions: [self._make(record) for record in follow(positions)])
        try:
            self._transactions.write(output, [], [], None)
        except FencedError as error:
            raise self._fenced() from error

    def close(self) -> None:
        """Lets the producer go; an open transaction is aborted."""
        self._transactions.close()

    def _fenced(self) -> FencedError:
        return FencedError(f"another trainer has taken over run {self._run_id}; this one ends and leaves it the run")


def resources_update(weights: Weights, run_id: str, step: int) -> ResourcesUpdate:
    """The publication of a version."""
    return ResourcesUpdate(
        resources_id=f"{weights.policy}-v{weights.version}-{uuid.uuid4().hex[:12]}",
        name=weights.policy,
        version=weights.version,
        resources={weights.policy: weights},
        run_id=run_id,
        step=step,
        created_at=wall_us(),
    )


def run_manifest(run: RunSettings, algorithm: str, arithmetic: dict[str, Any], base: Weights) -> RunManifest:
    """All that the run depends on."""
    libraries = (*LIBRARIES, "peft") if arithmetic["algorithm"].get("lora") else LIBRARIES
    return RunManifest(
        run_id=run.run_id,
        algorithm=algorithm,
        policy=run.policy,
        settings=json.dumps(arithmetic, sort_keys=True),
        seed=run.seed,
        base_weights=base,
        versions={"python": python_version(), **{name: version(name) for name in libraries}},
        threads=run.threads,
        dtype=run.dtype,
        created_at=wall_us(),
    )
