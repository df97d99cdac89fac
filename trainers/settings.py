"""What a run of a trainer is told, beside its algorithm's arithmetic."""

from dataclasses import dataclass
from pathlib import Path

from headrace.streams.errors import SettingsError


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """One run.

    Attributes:
        model: Hugging Face directory of the base weights.
        checkpoints: folder of all runs' checkpoints; engines must see it under the same path.
        keep: so many newest versions stay on disk.
        goal: the run ends when the mean reward of the last `goal_samples` trained samples is so high; None: never.
        max_steps: the run ends after so many steps; None: never.
        threads: of torch; results are bit-identical only at the same number.
        dtype: of the forward pass.
    """

    run_id: str
    policy: str
    model: Path
    checkpoints: Path
    seed: int = 0
    keep: int = 6
    goal: float | None = None
    goal_samples: int = 200
    max_steps: int | None = None
    threads: int = 1
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name, value in (("--run", self.run_id), ("--policy", self.policy)):
            if not value or not all(c.isascii() and (c.isalnum() or c in "._-") for c in value) or value[0] == ".":
                raise SettingsError(f"{name} {value!r}: use letters, digits, '.', '_' and '-', not '.' at the start")
        if self.keep < 2 or self.goal_samples < 1 or self.threads < 1:
            raise SettingsError("--keep must be at least 2, --goal-samples and --threads at least 1")
