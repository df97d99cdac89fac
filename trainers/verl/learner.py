"""verl's workers as a learner: the rows of a window in, changed weights and their figures out."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import safetensors.torch
from torch import Tensor

from headrace.trainers.batch import TokenRow
from headrace.trainers.grpo.learner import Assign, dealt
from headrace.trainers.grpo.settings import GrpoSettings
from headrace.trainers.verl.arrays import arrays_of, of_one_temperature
from headrace.trainers.verl.process import VerlProcess

log = logging.getLogger(__name__)


class VerlLearner:
    """See `GrpoLearner`, whose names the tensors of weights and state have."""

    def __init__(self, process: VerlProcess, directory: Path, settings: GrpoSettings) -> None:
        """Makes the workers, which load the weights of a Hugging Face directory.

        Raises:
            VerlFailedError: they cannot.
        """
        self._process = process
        self.settings = settings
        self.vocab_size = int(process.ask("load", directory=str(directory.absolute()))["vocab_size"])
        self._read_back: tuple[dict[str, Tensor], dict[str, Tensor]] | None = None
        self.steps = 0

    def step(self, rows: Sequence[TokenRow], assign: Assign = list) -> dict[str, float]:
        """Takes the optimizer steps of one window on all its rows; figures by metric name."""
        s = self.settings
        ready = of_one_temperature(assign(list(rows)))
        places = {id(row): index for index, row in enumerate(ready)}
        parts = [[places[id(row)] for row in part] for part in dealt(ready, s.mini_batches)]
        found = self._process.ask("step", batch=arrays_of(ready), parts=parts * s.epochs)
        self._read_back = None
        figures = {name: float(value) for name, value in found.items()}
        if "mismatch/k3" in figures:
            figures["mismatch/alarm"] = float(not figures["mismatch/k3"] <= s.alarm_bound)
        return figures | {"lr": s.lr, "rows/trained": float(len(ready))}

    def weights(self) -> dict[str, Tensor]:
        """The tensors of a checkpoint, under Hugging Face's names."""
        return self._read()[0]

    def state(self) -> dict[str, Tensor]:
        """The optimizer's moments, and the random state of each worker."""
        return self._read()[1]

    def restore(self, weights: Mapping[str, Tensor], state: Mapping[str, Tensor], steps: int) -> None:
        """Goes on from a checkpoint and the state beside it."""
        files = self._files()
        for file, tensors in zip(files, (weights, state), strict=True):
            cast(Any, safetensors.torch).save_file({n: t.contiguous() for n, t in tensors.items()}, file)
        self._process.ask("read", weights=str(files[0]), state=str(files[1]), steps=steps)
        self._read_back, self.steps = None, steps

    def _read(self) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        if self._read_back is None:
            weights, state = self._files()
            self.steps = int(self._process.ask("write", weights=str(weights), state=str(state))["steps"])
            load = cast(Any, safetensors.torch).load
            # Read, not mapped: the next step writes the same files.
            self._read_back = load(weights.read_bytes()), load(state.read_bytes())
        return self._read_back

    def _files(self) -> tuple[Path, Path]:
        return self._process.folder / "weights.safetensors", self._process.folder / "state.safetensors"
