"""Graders: processors that judge assembled rollouts and write rewards, on Faust.

A function is enough for most (`headrace processor grader MODULE:FUNCTION`); `grader_app` gives a Faust app for
agents of one's own.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.streams.graders.app import GraderApp, grader_app
    from headrace.streams.graders.trajectory import GradedTrajectory

__all__ = ["GradedTrajectory", "GraderApp", "grader_app"]


def __getattr__(name: str) -> Any:
    if name == "GradedTrajectory":
        from headrace.streams.graders.trajectory import GradedTrajectory

        return GradedTrajectory
    if name in __all__:
        from headrace.streams.graders import app  # Faust's import takes a second

        return getattr(app, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
