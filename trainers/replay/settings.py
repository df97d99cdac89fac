"""What a replay is told."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.streams.errors import InvalidValueError, SettingsError
from headrace.trainers.replay.changes import Changes
from headrace.trainers.replay.offsets import Bound

REPLAY = "replay"
"""Key of the manifest's settings that says what an offline run has changed; no trainer goes on with such a run."""


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """One replay.

    Attributes:
        run_id: of the run that is trained again.
        into_run: name of the new run; None: the same.
        checkpoints: where its versions are written.
        start: where its traffic begins; None: with the run's first step.
        end: where its traffic ends, not included; None: with its last step.
        until: the last step; None: no such bound.
        keep: versions that stay on disk.
        reward: MODULE_OR_FILE:FUNCTION of another reward; None: as recorded.
        reward_seconds: for one of its answers.
        primary_key: which of an answer's dimensions is the final reward.
        changes: settings of the assembler.
        recorded: trajectories are trained as they stand in the log, and not made again.
        from_base: begins with the run's base weights, wherever its first step is.
        allow_missing: what retention has taken is left out.
    """

    run_id: str
    checkpoints: Path
    into_run: str | None = None
    start: Bound | None = None
    end: Bound | None = None
    until: int | None = None
    keep: int = 2
    reward: str | None = None
    reward_seconds: float = 60.0
    primary_key: str | None = None
    changes: Changes = field(default_factory=Changes)
    recorded: bool = False
    from_base: bool = False
    allow_missing: bool = False

    def __post_init__(self) -> None:
        if self.recorded and self.changed:
            raise InvalidValueError(
                "--recorded trains trajectories as they stand; --reward and --assembler-setting make them again"
            )
        if self.until is not None and self.end is not None:
            raise InvalidValueError("--until and --to both say where the replay ends: give one")
        if self.primary_key is not None and self.reward is None:
            raise InvalidValueError("--primary-key goes with --reward")
        name = self.into_run
        if name is not None and not (name and name[0] != "." and all(_plain(c) for c in name)):
            raise SettingsError(f"--run {name!r}: use letters, digits, '.', '_' and '-', not '.' at the start")

    @property
    def name(self) -> str:
        """Of the new run."""
        return self.into_run or self.run_id

    @property
    def changed(self) -> bool:
        """Whether it asks for other trajectories than the first run had."""
        return self.reward is not None or bool(self.changes)

    def told(self, prefix: str) -> dict[str, Any]:
        """What an offline run's manifest says of it, as JSON values.

        Args:
            prefix: of the first run's topics.
        """
        bounds = {"from": self.start and self.start.text, "to": self.end and self.end.text, "until": self.until}
        return {
            "prefix": prefix,
            **{name: value for name, value in bounds.items() if value is not None},
            **({} if self.reward is None else {"reward": self.reward}),
            **({} if not self.changes else {"assembler": self.changes.names()}),
            **({"from_base": True} if self.from_base else {}),
            **({"allow_missing": True} if self.allow_missing else {}),
        }


def _plain(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "._-")
