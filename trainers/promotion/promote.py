"""Publishes a version of a run under a channel's name."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headrace.schemas.records import ResourcesUpdate, RunManifest, Trajectory, Weights
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.promotion.gate import Gate, PromotionRefusedError, Validation, validation_of
from headrace.trainers.publish import Publisher, resources_update

log = logging.getLogger(__name__)
CLIENT = "promote"


@dataclass(frozen=True)
class Promotion:
    """What has become of it.

    Attributes:
        weights: what the channel has now.
        validation: of the version; None where it was in the channel before, and was validated then.
        changed: false where the channel had it already.
    """

    weights: Weights
    validation: Validation | None
    changed: bool


def promote(
    settings: Settings, run_id: str, version: int, channel: str, gate: Gate, verify: Callable[[Weights], None]
) -> Promotion:
    """Gives a channel a version of a run: a newer one, or an earlier one again (a rollback).

    The channel has copies of its own (hard links where the file system allows), so that it does not lose a version when
    the run prunes it. Whoever promotes into the same channel at the same time is fenced.

    Args:
        verify: raises where files are missing or are not those that were published.

    Raises:
        PromotionRefusedError: there is no such version, its validation is missing or too low, or its files are gone.
        FencedError: somebody else promotes into this channel.
    """
    # First the fence, then the log: what another one has published is seen, or cannot be published any more.
    publisher = Publisher(settings, f"channel-{channel}", lambda: False)
    try:
        policy = _policy_of(settings, run_id)
        if policy == channel:
            raise PromotionRefusedError(
                f"{channel} is the policy that run {run_id} trains: choose a channel that no run publishes, and start "
                "production engines with --policy CHANNEL"
            )
        updates = list(_updates(settings))
        wanted = _published(updates, run_id, policy, version)
        history = sorted((w for u in updates for w in _weights(u) if w.policy == channel), key=lambda w: w.version)
        serving = history[-1] if history else None
        if serving is not None and serving.weights_id == wanted.weights_id:
            return Promotion(serving, None, changed=False)
        before = next((w for w in reversed(history) if w.weights_id == wanted.weights_id), None)
        source = before or wanted
        verify(source)
        validation = None
        if before is None:
            validation = _check(settings, gate, version, policy, updates, serving)
        # An engine calls the model that it was started with version 0, so that a channel begins at 1.
        number = 1 if serving is None else serving.version + 1
        weights = _copy(source, channel, number, known=before is not None)
        publisher.publish([resources_update(weights, run_id, _step(updates, wanted))])
        log.info("%s is version %d of run %s now", channel, version, run_id)
        return Promotion(weights, validation, changed=True)
    finally:
        publisher.close()


def _check(
    settings: Settings,
    gate: Gate,
    version: int,
    policy: str,
    updates: list[ResourcesUpdate],
    serving: Weights | None,
) -> Validation:
    trajectories = list(_validations(settings))
    candidate = validation_of(trajectories, policy, version)
    origin = None if serving is None else _origin(updates, serving)
    gate.check(
        version, candidate, None if origin is None else validation_of(trajectories, origin.policy, origin.version)
    )
    return candidate


def _policy_of(settings: Settings, run_id: str) -> str:
    codec = Codec(settings)
    topic = settings.topic("training")
    for message in read_topic(settings, topic, partition_ids(settings, topic), client_id=CLIENT):
        if message.key() == run_id.encode():
            record = codec.decode(message.value())
            if isinstance(record, RunManifest):
                return record.policy
    raise PromotionRefusedError(f"the log knows no run {run_id}: is --prefix that of its pipeline?")


def _updates(settings: Settings) -> Iterator[ResourcesUpdate]:
    """All publications. One that cannot be read is an error: the channel's newest version may stand in it."""
    codec = Codec(settings)
    for message in read_topic(settings, settings.topic("resources"), [0], client_id=CLIENT):
        if message.value() is not None:
            yield codec.decode_as(ResourcesUpdate, message.value())


def _validations(settings: Settings) -> Iterator[Trajectory]:
    codec, topic = Codec(settings), settings.topic("triplets")
    for message in read_topic(settings, topic, partition_ids(settings, topic), client_id=CLIENT):
        try:
            record = codec.decode_as(Trajectory, message.value())
        except DecodeError:
            continue  # its readers have written the dead letter; without it there is less to show, not more
        if record.mode == "val":
            yield record


def _weights(update: ResourcesUpdate) -> list[Weights]:
    return [resource for resource in update.resources.values() if isinstance(resource, Weights)]


def _published(updates: list[ResourcesUpdate], run_id: str, policy: str, version: int) -> Weights:
    versions = {w.version: w for u in updates if u.run_id == run_id for w in _weights(u) if w.policy == policy}
    if version not in versions:
        known = f"{min(versions)} to {max(versions)}" if versions else "none"
        raise PromotionRefusedError(f"run {run_id} has published no version {version} of {policy}; it has {known}")
    return versions[version]


def _origin(updates: list[ResourcesUpdate], serving: Weights) -> Weights | None:
    """What a run has published of the weights that a channel serves."""
    every = (w for u in updates for w in _weights(u))
    return next((w for w in every if w.weights_id == serving.weights_id and w.policy != serving.policy), None)


def _step(updates: list[ResourcesUpdate], wanted: Weights) -> int:
    return next((u.step or 0 for u in updates for w in _weights(u) if w.uri == wanted.uri), 0)


def _copy(source: Weights, channel: str, version: int, *, known: bool) -> Weights:
    if known:
        return msgspec.structs.replace(source, version=version)
    directory = Path(source.uri)
    # Beside the folders of the runs, where engines see it too.
    copies = Checkpoints(directory.parent.parent, f"channel-{channel}", keep=2)
    copy = copies.adopt(directory, channel, version)
    # The base of an adapter stays with its run, which never removes it.
    kept = {"base_model": source.base_model, "format": source.format, "base_sha256": source.base_sha256}
    return msgspec.structs.replace(copy, **kept)
