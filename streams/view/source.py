"""What people ask of a pipeline, whether the topics answer or the view does."""

from typing import Any, Protocol

from headrace.schemas.records import RolloutState
from headrace.streams.view.selection import Selection

Fields = dict[str, Any]
"""A row by the names of its columns, JSON texts decoded."""

ROLLOUT_FIELDS = (
    "rollout_id",
    "status",
    "mode",
    "run_id",
    "group_id",
    "resources_id",
    "origin",
    "enqueued_at",
    "ended_at",
)
"""Fields of rollouts that may be asked for and sorted by; `changed_at` is when it was asked for or, later, ended."""
CHANGED_AT = "changed_at"
ROLLOUT_TIES = ("rollout_id",)
SPAN_TIES = ("log_partition", "log_offset")
LATEST = "latest"


class Source(Protocol):
    """Answers about rollouts and their traces. Raises HeadraceError where there is no answer."""

    def rollouts(self, selection: Selection) -> list[RolloutState]:
        """The rollouts that a selection of ROLLOUT_FIELDS names."""
        ...

    def rollout(self, rollout_id: str) -> RolloutState | None:
        """One rollout; None if it is not known."""
        ...

    def spans(self, rollout_id: str) -> list[Fields]:
        """The spans of a rollout in the log's order, as rows of `tables.spans`."""
        ...

    def rewards(self, rollout_id: str) -> list[Fields]:
        """Its rewards in the log's order, as rows of `tables.rewards`."""
        ...

    def trajectory(self, rollout_id: str, group_id: str | None) -> Fields | None:
        """The newest revision of its trajectory, as a row of `tables.trajectories`."""
        ...

    def close(self) -> None:
        """Lets connections go."""
        ...


def rollout_field(state: RolloutState, name: str) -> Any:
    """The value of a field that a selection names."""
    if name == CHANGED_AT:
        return state.ended_at if state.ended_at is not None else state.enqueued_at
    return getattr(state, name)


def span_field(span: Fields, name: str) -> Any:
    """The value of a column that a selection names."""
    return span[name]


def latest_attempt(state: RolloutState | None, spans: list[Fields]) -> str:
    """The id of the rollout's latest attempt; where lifecycle knows none, that of the last span; '' is none."""
    if state is not None and state.attempts:
        attempt = max(enumerate(state.attempts), key=lambda a: (a[1].attempt, a[1].delivery, a[0]))[1]
        return attempt.attempt_id or ""
    return spans[-1]["attempt_id"] if spans else ""
