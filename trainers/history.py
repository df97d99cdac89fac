"""What the log says of a run and its policy: read at the start, the authority of a restart."""

from dataclasses import dataclass, field

from headrace.schemas.records import ResourcesUpdate, RunManifest, TrainingStep, Weights
from headrace.streams.codec import Codec, DecodeError
from headrace.streams.kafka.dead_letters.writer import FollowerLetters
from headrace.streams.kafka.reading import read_topic
from headrace.streams.settings import Settings

PASSED_OVER = frozenset({"empty", "unknown_framing", "malformed", "trailing_bytes", "wrong_record"})
"""What no trainer has written: anything else may be a step of the run, without which it must not go on."""
GOAL_REACHED = "goal_reached"
FINISHED = "run/finished"
VERSION = "v"  # after the name of the policy in the ids of publications, see `publish.resources_update`


@dataclass
class History:
    """The records of one run.

    Attributes:
        published: weights of the run, oldest version first.
        newest_version: of the policy, by whatever run; None where nothing was published.
    """

    manifest: RunManifest | None = None
    steps: list[TrainingStep] = field(default_factory=list[TrainingStep])
    published: list[Weights] = field(default_factory=list[Weights])
    newest_version: int | None = None

    @property
    def last(self) -> TrainingStep | None:
        """The run's last step, with or without samples."""
        return self.steps[-1] if self.steps else None

    @property
    def with_state(self) -> TrainingStep | None:
        """The last step that has trained."""
        return next((s for s in reversed(self.steps) if s.state is not None), None)

    @property
    def finished(self) -> bool:
        """Whether the run's goal or its last step was reached."""
        return any(s.metrics.get(FINISHED) for s in self.steps)


def read_history(settings: Settings, run_id: str, policy: str | None = None) -> History:
    """Reads training and resources to their read_uncommitted ends as of now.

    Args:
        policy: whose publications are wanted; None is the run's own, and none where the log does not know the run.

    Raises:
        DecodeError: a record of the run, or a publication of its policy, has a schema that this version does not know,
            or its value has gone from the claim-check store: upgrade, or mend the store, before going on.
    """
    codec = Codec(settings)
    letters = FollowerLetters(settings, f"trainer-{run_id}")
    history = History()
    for message in read_topic(settings, settings.topic("training"), [0], client_id=f"trainer-{run_id}-history"):
        if message.key() != run_id.encode():
            continue
        try:
            record = codec.decode(message.value())
        except DecodeError as error:
            if error.reason not in PASSED_OVER:
                raise
            letters.write(message, error.reason, str(error))
            continue
        if isinstance(record, RunManifest):
            history.manifest = history.manifest or record
        elif isinstance(record, TrainingStep):
            history.steps.append(record)
    if policy is None:
        if history.manifest is None:
            return history
        policy = history.manifest.policy
    for message in read_topic(settings, settings.topic("resources"), [0], client_id=f"trainer-{run_id}-history"):
        if message.value() is None:
            continue
        try:
            update = codec.decode_as(ResourcesUpdate, message.value())
        except DecodeError as error:
            # It may be the newest of this policy, whose number must not be given to another.
            name = (message.key() or b"").decode(errors="replace")
            if error.reason not in PASSED_OVER and name.startswith(f"{policy}-{VERSION}"):
                raise DecodeError(error.reason, f"publication {name} ({error}); upgrade this trainer first") from error
            letters.write(message, error.reason, str(error))
            continue
        for weights in update.resources.values():
            if isinstance(weights, Weights) and weights.policy == policy:
                history.newest_version = max(weights.version, history.newest_version or 0)
                if update.run_id == run_id:
                    history.published.append(weights)
    history.published.sort(key=lambda w: w.version)
    return history
