"""Validation trajectories by the version that they were asked for. Pure, with the time passed in."""

import msgspec

from headrace.schemas.records import ResourcesUpdate, Trajectory
from headrace.trainers.validation.scores import PASSED, VALIDATION, Score, score

KEPT_VERSIONS = 64  # a reward for one that was validated long before is not told any more
QUIET_SECONDS = 10.0  # so long after its last trajectory a version's score is told


class Validations:
    """Collects what validates a run; a score is told once nothing more has come for a while, and anew if more does.

    Args:
        passed: least reward of a solved task.
    """

    def __init__(self, run_id: str, passed: float = PASSED) -> None:
        self._run_id = run_id
        self._passed = passed
        self._versions: dict[str, int] = {}
        self._asked: dict[str, list[Trajectory]] = {}
        self._over: set[str] = set()
        self._changed: dict[str, float] = {}

    def publication(self, update: ResourcesUpdate) -> None:
        """A version, if it is of this run."""
        if update.run_id == self._run_id:
            self._versions[update.resources_id] = update.version

    def trajectory(self, found: Trajectory, now: float) -> None:
        """One of a task of mode val that pins a publication."""
        pinned = found.resources_id
        if found.mode == VALIDATION and pinned is not None and pinned not in self._over:
            # Of what the score reads: the samples themselves may be megabytes.
            found = msgspec.structs.replace(found, triplets=[], conversations=None, source=None, input="null")
            self._asked.setdefault(pinned, []).append(found)
            self._changed[pinned] = now

    def scores(self, now: float, quiet: float = QUIET_SECONDS) -> list[Score]:
        """Those that are due, oldest version first."""
        due = [i for i, at in self._changed.items() if i in self._versions and now - at >= quiet]
        for resources_id in due:
            del self._changed[resources_id]
        told = [i for i in self._asked if i not in self._changed]
        made = [score(self._versions[i], self._asked[i], passed=self._passed) for i in due]
        for resources_id in told[: max(0, len(told) - KEPT_VERSIONS)]:
            del self._asked[resources_id]
            self._over.add(resources_id)
        return sorted((s for s in made if s is not None), key=lambda s: s.version)
