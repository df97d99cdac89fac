"""Writes trl.npz: what TRL's GRPOTrainer and RLOOTrainer give on the tensors of inputs.py.

    uv venv golden-trl && uv pip install --python golden-trl/bin/python trl==1.16.0 torch==2.13.0
    golden-trl/bin/python tests/trainers/golden/make_trl.py

The trainers' loss is called with its model's log-probabilities given. Their advantages stand in the middle of a long
method, so that those lines are taken from the installed source and run.
"""

import inspect
import textwrap
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import inputs
import numpy as np
import torch
from trl.trainer import grpo_trainer, rloo_trainer

Tensors = dict[str, torch.Tensor]
ROWS = inputs.GROUPS * inputs.SIZE


def block(method: Any, first: str, last: str) -> str:
    """The lines of a method from one that begins with `first` to before one that begins with `last`."""
    lines = inspect.getsource(method).splitlines()
    start = next(n for n, line in enumerate(lines) if line.strip().startswith(first))
    end = next(n for n, line in enumerate(lines) if n > start and line.strip().startswith(last))
    return textwrap.dedent("\n".join(lines[start:end]))


def advantages(x: Tensors, scale: str) -> torch.Tensor:
    """Of GRPOTrainer, with `scale_rewards` group or none."""
    code = block(
        grpo_trainer.GRPOTrainer._generate_and_score_completions,
        'if self.multi_objective_aggregation == "sum_then_normalize"',
        'elif self.multi_objective_aggregation == "normalize_then_sum"',
    )
    names = vars(grpo_trainer) | {
        "self": SimpleNamespace(
            multi_objective_aggregation="sum_then_normalize",
            reward_weights=torch.ones(1, dtype=torch.float64),
            scale_rewards=scale,
        ),
        "rewards_per_func": x["rewards"][:, None],
        "unscorable_mask": torch.zeros(ROWS, dtype=torch.bool),
        "device": torch.device("cpu"),
        "num_generations": inputs.SIZE,
    }
    exec(code, names)
    return names["advantages"]


def leave_one_out(x: Tensors) -> torch.Tensor:
    """Of RLOOTrainer."""
    method = rloo_trainer.RLOOTrainer._generate_and_score_completions
    code = block(method, "grouped_rewards = ", "# Normalize advantages")
    names = vars(rloo_trainer) | {"rewards": x["rewards"], "num_generations": inputs.SIZE, "self": SimpleNamespace()}
    exec(code, names)
    return names["advantages"]


def loss(x: Tensors, current: torch.Tensor, kind: str, **fields: Any) -> torch.Tensor:
    """GRPOTrainer's loss."""
    values: dict[str, Any] = {
        "aux_loss_enabled": False,
        "top_entropy_quantile": 1.0,
        "off_policy_mask_threshold": None,
        "importance_sampling_level": "token",
        "beta": 0.0,
        "loss_type": kind,
        "epsilon_low": inputs.CLIP_LOW,
        "epsilon_high": inputs.CLIP_HIGH,
        "use_vllm": False,
        "vllm_importance_sampling_correction": True,
        "max_completion_length": inputs.DIVISOR,
        "current_gradient_accumulation_steps": 1,
        "_entropy_bonus_enabled": False,
        "model": SimpleNamespace(training=True),
        "accelerator": SimpleNamespace(
            num_processes=1,
            gather=lambda t: t,
            gather_for_metrics=lambda t: t,
            reduce=lambda t, reduction: t,
            sync_gradients=True,
        ),
        "_metrics": {"train": defaultdict(list)},
        "args": SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1),
    }
    trainer = SimpleNamespace(**(values | fields))
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (current, torch.zeros_like(current), None)
    ids = torch.zeros(current.shape, dtype=torch.long)
    batch = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": ids[:, :1],
        "completion_ids": ids,
        "completion_mask": x["mask"],
        "advantages": x["advantages"],
        "old_per_token_logps": x["proximal"],
        "ref_per_token_logps": x["reference"],
        "num_items_in_batch": x["mask"].sum(),
        "importance_sampling_ratio": (x["proximal"] - x["behaviour"]).exp().clamp(max=inputs.TRUNCATION),
    }
    return grpo_trainer.GRPOTrainer._compute_loss(trainer, None, batch)


def main() -> None:
    torch.set_default_dtype(torch.float64)  # constants that the package makes itself would be rounded to float32
    x = {name: torch.tensor(value) for name, value in inputs.make().items()}
    found: dict[str, Any] = {
        "version": f"trl {version('trl')}",
        "advantage/grpo": advantages(x, "group").numpy(),
        "advantage/dr_grpo": advantages(x, "none").numpy(),
        "advantage/rloo": leave_one_out(x).numpy(),
    }
    dual = SimpleNamespace(delta=inputs.DUAL_CLIP, use_bias_correction_kl=False, steps_per_generation=1)
    sequence = {
        "importance_sampling_level": "sequence",
        "epsilon_low": inputs.GSPO_LOW,
        "epsilon_high": inputs.GSPO_HIGH,
    }
    cases: dict[str, tuple[str, dict[str, Any]]] = {
        "clip/rollout_mean": ("grpo", {}),
        "clip/token_mean": ("dapo", {}),
        "clip/divided": ("dr_grpo", {}),
        "dual_clip/rollout_mean": ("grpo", {"args": dual}),
        "clip_with_kl/rollout_mean": ("grpo", {"beta": inputs.BETA}),
        "truncated/token_mean": ("dapo", {"use_vllm": True}),
        "gspo/rollout_mean": ("grpo", sequence),
        "cispo/token_mean": ("cispo", {"epsilon_high": inputs.TRUNCATION}),
    }
    for name, (kind, fields) in cases.items():
        current = x["current"].clone().requires_grad_(True)
        value = loss(x, current, kind, **fields)
        value.backward()
        assert current.grad is not None
        found[f"loss/{name}"], found[f"gradient/{name}"] = value.item(), (current.grad * x["mask"]).numpy()
    np.savez_compressed(Path(__file__).parent / "trl.npz", **found)


if __name__ == "__main__":
    main()
