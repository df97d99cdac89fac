"""What a trainer has left in the log and on disk, and that none of it is lost, repeated or changed by a restart."""

from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import load_file

from headrace.schemas.records import ResourcesUpdate, TrainingStep, Weights
from headrace.streams.codec import Codec
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings
from headrace.trainers.grpo.settings import GrpoSettings
from tests.trainers.pipeline import decided, training, triplets, undisturbed


def published(settings: Settings) -> list[Weights]:
    """What *resources* have, in their order."""
    codec = Codec(settings)
    found: list[Weights] = []
    for message in read_topic(settings, settings.topic("resources"), [0], client_id="test"):
        update = codec.decode_as(ResourcesUpdate, message.value())
        found += [w for w in update.resources.values() if isinstance(w, Weights)]
    return found


def assert_exact(settings: Settings, model: Path, arithmetic: GrpoSettings | None = None) -> list[TrainingStep]:
    """Every trajectory is decided once, and the newest weights are those of an undisturbed run."""
    log = triplets(settings)
    manifests, steps = training(settings)
    assert len(manifests) == 1
    assert Counter(decided(steps)) == Counter(list(log))
    expected = undisturbed(model, steps, log, arithmetic)
    newest = max(published(settings), key=lambda w: w.version)
    (file,) = Path(newest.uri).glob("*.safetensors")
    actual = load_file(file)
    assert actual.keys() == expected.keys()
    assert all(torch.equal(actual[name], expected[name]) for name in expected)
    assert [w.version for w in published(settings)] == list(range(len([s for s in steps if s.window.samples]) + 1))
    return steps
