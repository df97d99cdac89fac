"""The trajectories of a run's steps, from the log."""

from collections.abc import Sequence

from headrace.schemas.records import TrainingStep, Trajectory
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import offsets_at
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.settings import Settings
from headrace.trainers.groups import At
from headrace.trainers.replay.windows import ReplayError, beside, trained_of

CLIENT = "replay"


class StepReader:
    """Reads triplets once, from their beginning; what a step does not need yet waits for its step.

    Args:
        steps: all that will be asked for, in their order.

    Raises:
        ReplayError: retention has taken records of some of them.
    """

    def __init__(self, settings: Settings, steps: Sequence[TrainingStep]) -> None:
        self._codec = Codec(settings)
        topic = settings.topic("triplets")
        self._wanted = {at for step in steps for at in [*trained_of(step), *beside(step)]}
        starts = {(topic, p): BEGINNING for p in partition_ids(settings, topic)}
        kept = offsets_at(make_admin(settings, CLIENT), dict.fromkeys(starts, 0))
        gone = {at for at in self._wanted if (first := kept.get((topic, at[0]), -1)) < 0 or at[1] < first}
        if gone:
            affected = [s.step for s in steps if gone & {*trained_of(s), *beside(s)}]
            raise ReplayError(
                f"{len(gone)} of {len(self._wanted)} trajectories are not in the log any more (setting replay_window): "
                f"{len(affected)} of {len(steps)} steps need them, the first is step {affected[0]}"
            )
        self._messages = read_to_end(settings, starts, client_id=CLIENT)
        self._waiting: dict[At, bytes] = {}

    def read(self, step: TrainingStep) -> dict[At, Trajectory]:
        """The records of a step by position.

        Raises:
            ReplayError: some are gone.
        """
        wanted = [*trained_of(step), *beside(step)]
        missing = set(wanted) - self._waiting.keys()
        while missing:
            message = next(self._messages, None)
            if message is None:
                raise ReplayError(f"step {step.step}: {len(missing)} of its {len(wanted)} trajectories are gone")
            at = (message.partition() or 0, message.offset() or 0)
            if at in self._wanted:
                self._waiting[at] = message.value() or b""
                missing.discard(at)
        return {at: self._codec.decode_as(Trajectory, self._waiting.pop(at)) for at in wanted}
