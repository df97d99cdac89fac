"""Windows to steps that verl takes."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from headrace.trainers.advantages.estimators import Values
from headrace.trainers.advantages.window import Scored
from headrace.trainers.grpo.algorithm import Grpo
from headrace.trainers.grpo.learner import Learner
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.verl.learner import VerlLearner
from headrace.trainers.verl.process import VerlProcess
from headrace.trainers.verl.settings import VerlSettings


class Verl(Grpo):
    """As `Grpo`: the same windows, rows and advantages; the step itself is verl's."""

    name = "verl"

    def __init__(self, objective: GrpoSettings, verl: VerlSettings, policy: str, process: VerlProcess) -> None:
        super().__init__(objective, policy)
        self._verl = verl
        self._process = process
        if verl.advantages == "verl":
            self._estimator = self._estimate

    def settings(self) -> dict[str, Any]:
        """All that a step's arithmetic depends on."""
        places = ("network", "threads")
        return super().settings() | {"verl": {k: v for k, v in asdict(self._verl).items() if k not in places}}

    def _learner_of(self, directory: Path) -> Learner:
        return VerlLearner(self._process, directory, self._settings)

    def _estimate(self, groups: Sequence[Sequence[Scored]], name: str, *, epsilon: float) -> list[list[Values]]:
        """By `verl.trainer.ppo.core_algos`, whose epsilon is 1e-6 too."""
        scores = [[float(member.scores[0]) for member in group] for group in groups]
        found: Any = self._process.ask("advantages", groups=scores, estimator=name)["advantages"]
        return [[np.array([value]) for value in group] for group in found]
