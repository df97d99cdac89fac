"""How a runner works."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """What `headrace runner` can be told.

    Attributes:
        concurrency: rollouts at once.
        policy: the model's name where no resources are published.
        resources: name of the publications to use for tasks that pin none; None takes the newest of all.
        worker_id: a stable name of this process.
        drain: how long running rollouts may go on after a stop; what is left is given back.
    """

    concurrency: int = 64
    policy: str = "policy"
    resources: str | None = None
    worker_id: str | None = None
    drain: timedelta = timedelta(seconds=30)
