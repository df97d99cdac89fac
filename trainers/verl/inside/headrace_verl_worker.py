# pyright: basic, reportMissingImports=false
"""verl's training worker, with its weights and optimizer to be written and read as whole tensors."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.distributed.tensor import DTensor, distribute_tensor
from verl.single_controller.base.decorator import Dispatch, register
from verl.utils.device import get_device_name
from verl.workers.engine_workers import TrainingWorker

MOMENTS = {"first": "exp_avg", "second": "exp_avg_sq"}
RNG = "rng."


class HeadraceWorker(TrainingWorker):
    """A rank of the policy."""

    def __init__(self, config):
        if get_device_name() == "cpu" and not dist.is_initialized():
            # TrainingWorker asks for the backends 'cpu:gloo,cpu:gloo', which torch refuses.
            rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            dist.init_process_group("gloo", rank=rank, world_size=size, init_method=os.environ.get("DIST_INIT_METHOD"))
        if get_device_name() == "cpu":
            torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        super().__init__(config)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    def headrace_write(self, weights, state):
        """Rank 0 writes the weights, and the optimizer's moments with every rank's random state, where it gets a path.

        Returns the optimizer's number of steps.
        """
        optimizer = self.engine.optimizer
        steps = 0
        tensors, moments = {}, {}
        for name, parameter in self._parameters():
            tensors[name] = _whole(parameter)
            known = optimizer.state.get(parameter, {})
            steps = max(steps, int(known.get("step", 0)))
            for ours, theirs in MOMENTS.items():
                moments[f"{ours}.{name}"] = _whole(known[theirs]) if known else torch.zeros_like(tensors[name])
        states: list = [None] * dist.get_world_size()
        dist.all_gather_object(states, torch.get_rng_state())
        if dist.get_rank() == 0:
            if weights:
                save_file(tensors, weights, metadata={"format": "pt"})
            if state:
                save_file(moments | {f"{RNG}{rank}": value for rank, value in enumerate(states)}, state)
        return steps

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)
    @torch.no_grad()
    def headrace_read(self, weights, state, steps):
        """Takes weights of a file or a directory, and the state beside them; a fresh optimizer where there is none."""
        optimizer = self.engine.optimizer
        files = sorted(Path(weights).glob("*.safetensors")) if os.path.isdir(weights) else [weights]
        found = {name: tensor for file in files for name, tensor in load_file(file).items()}
        known = load_file(state) if state else {}
        optimizer.state.clear()
        optimizer.zero_grad()
        for name, parameter in self._parameters():
            _copy(parameter, found[name])
            if steps:
                optimizer.state[parameter] = {
                    theirs: _like(parameter, known[f"{ours}.{name}"]) for ours, theirs in MOMENTS.items()
                } | {"step": torch.tensor(float(steps))}
        random = known.get(f"{RNG}{dist.get_rank()}")
        if random is not None:
            torch.set_rng_state(random)

    def _parameters(self):
        return [(name, p) for name, p in self.engine.module.named_parameters() if p.requires_grad]


def _whole(tensor):
    whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return whole.detach().cpu().contiguous()


def _like(parameter, whole):
    if not isinstance(parameter, DTensor):
        return whole.to(parameter.device, parameter.dtype).clone()
    moved = whole.to(parameter.device, parameter.dtype)
    return distribute_tensor(moved, parameter.device_mesh, parameter.placements)


def _copy(parameter, whole):
    parameter.copy_(_like(parameter, whole))
