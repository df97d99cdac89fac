"""The trajectories of a run's steps, from the log."""

from collections.abc import Iterable, Sequence

import msgspec

from headrace.schemas.records import Trajectory
from headrace.streams.assembly.settings import AssemblySettings, settings_of_header
from headrace.streams.codec import Codec
from headrace.streams.kafka.admin import partition_ids
from headrace.streams.kafka.barrier import end_offsets, start_offsets
from headrace.streams.kafka.clients import make_admin
from headrace.streams.kafka.messages import Message
from headrace.streams.kafka.reading import BEGINNING, read_to_end
from headrace.streams.settings import Settings
from headrace.trainers.groups import At
from headrace.trainers.replay.errors import ReplayError

CLIENT = "replay"


class Recorded(msgspec.Struct, frozen=True):
    """A trajectory as the first run has read it.

    Attributes:
        assembly: the settings that it was assembled with.
    """

    at: At
    trajectory: Trajectory
    assembly: AssemblySettings


class SampleReader:
    """Reads triplets once, from their beginning; what is not asked for yet waits.

    Args:
        wanted: positions of all that will be asked for.

    Attributes:
        gone: those of them that retention has taken, or that no record has ever had.
    """

    def __init__(self, settings: Settings, wanted: Iterable[At]) -> None:
        self._codec = Codec(settings)
        topic = settings.topic("triplets")
        self._wanted = set(wanted)
        admin = make_admin(settings, CLIENT)
        starts = {(topic, p): BEGINNING for p in partition_ids(settings, topic, admin)}
        kept, ends = start_offsets(admin, starts), end_offsets(admin, starts)
        self.gone = {
            at for at in self._wanted if not kept.get((topic, at[0]), 0) <= at[1] < ends.get((topic, at[0]), 0)
        }
        self._messages = read_to_end(settings, starts, client_id=CLIENT)
        self._waiting: dict[At, Message] = {}

    def read(self, wanted: Sequence[At]) -> dict[At, Recorded]:
        """The records at positions, but for those that are gone.

        Raises:
            ReplayError: some went while this was reading.
        """
        present = [at for at in wanted if at not in self.gone]
        missing = set(present) - self._waiting.keys()
        while missing:
            message = next(self._messages, None)
            if message is None:
                raise ReplayError(f"{len(missing)} trajectories are gone, the first at {min(missing)}")
            at = (message.partition() or 0, message.offset() or 0)
            if at in self._wanted:
                self._waiting[at] = message
                missing.discard(at)
        return {at: self._decoded(at, self._waiting.pop(at)) for at in present}

    def _decoded(self, at: At, message: Message) -> Recorded:
        try:
            assembly = settings_of_header(message.headers())
        except msgspec.DecodeError as error:
            raise ReplayError(f"settings of the assembler at {at} cannot be read: {error}") from error
        return Recorded(at, self._codec.decode_as(Trajectory, message.value()), assembly)
