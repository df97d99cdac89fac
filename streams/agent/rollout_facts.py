"""What an agent may know of the rollout that it works on."""

from typing import Any

import msgspec


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """The `rollout` that an agent asks for.

    Attributes:
        input: the decoded input of the task, the same object as `task`.
        mode: train, val, test or None.
        resources_id: of the publication whose resources are used; None where nothing was published.
    """

    rollout_id: str
    attempt_id: str
    attempt: int = 1
    delivery: int = 1
    input: Any = None
    mode: str | None = None
    group_id: str | None = None
    group_size: int = 1
    sample_index: int = 0
    run_id: str | None = None
    resources_id: str | None = None
    metadata: dict[str, str] = {}
