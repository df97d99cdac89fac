"""How a runner works."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

import msgspec

from headrace.streams.errors import SettingsError
from headrace.streams.tracing.names import TracerName

NO_SHARE_GROUPS = (
    "share groups need a client that keeps a record in hand while it polls on, and renews its lock (KIP-1222): "
    "confluent-kafka 2.16 has neither, so a rollout longer than the lock would be delivered again and then archived; "
    "run without --share-group, with more partitions where there are more runners than those"
)
HOOK_SECONDS = 5.0


class Isolation(StrEnum):
    """Where agents run."""

    THREAD = "thread"  # in the runner's process: coroutines on its event loop, plain functions on threads
    PROCESS = "process"  # each rollout in a child process of its own, used again for the next


class ObserverOptions(msgspec.Struct, frozen=True):
    """What observes the attempts of a runner.

    Attributes:
        instrument: libraries to instrument.
        hooks: `MODULE_OR_FILE:NAME` of each.
        hook_seconds: how long one callback may take.
    """

    tracer: TracerName = TracerName.NONE
    instrument: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    hook_seconds: float = HOOK_SECONDS


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """What `headrace runner` can be told.

    Attributes:
        concurrency: rollouts at once.
        policy: the model's name where no resources are published.
        resources: name of the publications to use for tasks that pin none; None takes the newest of all.
        worker_id: a stable name of this process.
        drain: how long running rollouts may go on after a stop; what is left is given back.
        isolation: where agents run.
        spec: the agent as `MODULE_OR_FILE:AGENT`, for child processes; a runner without it starts none.
        static: the group knows this member by its worker id (KIP-345), so that a restart within the session time-out
            moves no partition.
        share_group: take tasks as a share group (KIP-932).
        observers: the tracer and the hooks.

    Raises:
        SettingsError: two of them do not go together, or one is not supported.
    """

    concurrency: int = 64
    policy: str = "policy"
    resources: str | None = None
    worker_id: str | None = None
    drain: timedelta = timedelta(seconds=30)
    isolation: Isolation = Isolation.THREAD
    spec: str | None = None
    static: bool = False
    share_group: bool = False
    observers: ObserverOptions = field(default_factory=ObserverOptions)

    def __post_init__(self) -> None:
        if self.isolation is Isolation.PROCESS and self.spec is None:
            raise SettingsError("isolation by process needs the agent as MODULE_OR_FILE:AGENT, to load it there")
        if self.share_group:
            raise SettingsError(NO_SHARE_GROUPS)
        if self.static and self.worker_id is None:
            raise SettingsError("a static member needs a stable name: give --worker-id too")
