"""Writes verl.npz: what verl's core_algos gives on the tensors of inputs.py.

uv venv golden-verl && uv pip install --python golden-verl/bin/python verl==0.9.1 cachetools
golden-verl/bin/python tests/trainers/golden/make_verl.py
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import inputs
import numpy as np
import torch
from verl.trainer.ppo import core_algos
from verl.workers.config import FSDPActorConfig, PolicyLossConfig

AGGREGATIONS = {"rollout_mean": "seq-mean-token-mean", "token_mean": "token-mean", "token_sum": "token-sum"}


def config(low: float, high: float, **fields: Any) -> Any:
    return FSDPActorConfig(
        strategy="fsdp2",
        ppo_mini_batch_size=4,
        ppo_micro_batch_size_per_gpu=4,
        rollout_n=inputs.SIZE,
        clip_ratio=low,
        clip_ratio_low=low,
        clip_ratio_high=high,
        policy_loss=PolicyLossConfig(),
        **fields,
    )


def main() -> None:
    torch.set_default_dtype(torch.float64)  # constants that the package makes itself would be rounded to float32
    x = {name: torch.tensor(value) for name, value in inputs.make().items()}
    mask, index = x["mask"], np.array([str(g) for g in x["group"].tolist()], dtype=object)
    last = torch.zeros_like(mask)
    last[torch.arange(len(mask)), mask.sum(1).long() - 1] = x["rewards"]
    found: dict[str, Any] = {"version": f"verl {version('verl')}"}

    def take(name: str, result: Any) -> None:
        found[f"advantage/{name}"] = result[0].numpy()

    take("grpo", core_algos.compute_grpo_outcome_advantage(last, mask, index))
    take("dr_grpo", core_algos.compute_grpo_outcome_advantage(last, mask, index, norm_adv_by_std_in_grpo=False))
    take("rloo", core_algos.compute_rloo_outcome_advantage(last, mask, index))
    algorithm = type("Config", (dict,), {"gamma": 1.0})()
    take("reinforce_pp", core_algos.compute_reinforce_plus_plus_outcome_advantage(last, mask, config=algorithm))
    take("reinforce_pp_baseline", core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage(last, mask, index))
    advantages, returns = core_algos.compute_gae_advantage_return(
        last, x["values"], mask, torch.tensor(inputs.GAMMA), torch.tensor(inputs.LAMBDA)
    )
    found["advantage/gae"], found["returns/gae"] = (advantages * mask).numpy(), (returns * mask).numpy()

    def take_loss(name: str, loss: Any) -> None:
        current = x["current"].clone().requires_grad_(True)
        value = loss(current)
        value.backward()
        found[f"loss/{name}"] = value.item()
        found[f"gradient/{name}"] = (current.grad * mask).numpy()

    def policy(kind: str, mode: str, low: float, high: float, weights: Any = None, **fields: Any) -> Any:
        loss = core_algos.get_policy_loss_fn(kind)
        return lambda current: loss(
            old_log_prob=x["proximal"],
            log_prob=current,
            advantages=x["advantages"],
            response_mask=mask,
            loss_agg_mode=mode,
            config=config(low, high, **fields),
            rollout_is_weights=weights,
        )[0]

    low, high = inputs.CLIP_LOW, inputs.CLIP_HIGH
    for ours, mode in AGGREGATIONS.items():
        take_loss(f"dual_clip/{ours}", policy("vanilla", mode, low, high, clip_ratio_c=inputs.DUAL_CLIP))
        take_loss(f"clip/{ours}", policy("vanilla", mode, low, high, clip_ratio_c=1e9))
        for kind, verls in (("k1", "kl"), ("k3", "low_var_kl")):
            take_loss(
                f"{kind}/{ours}",
                lambda current, mode=mode, verls=verls: core_algos.agg_loss(
                    core_algos.kl_penalty(current, x["reference"], verls), mask, mode
                ),
            )
    normed = "seq-mean-token-sum-norm"
    info = {"loss_scale_factor": inputs.DIVISOR}
    take_loss("clip/divided", policy("vanilla", normed, low, high, clip_ratio_c=1e9, global_batch_info=info))
    take_loss(
        "k3/divided",
        lambda current: core_algos.agg_loss(
            core_algos.kl_penalty(current, x["reference"], "low_var_kl"), mask, normed, loss_scale_factor=inputs.DIVISOR
        ),
    )
    truncated = (x["proximal"] - x["behaviour"]).exp().clamp(max=inputs.TRUNCATION)
    take_loss("truncated/token_mean", policy("vanilla", "token-mean", low, high, truncated, clip_ratio_c=1e9))
    take_loss("gspo/rollout_mean", policy("gspo", "seq-mean-token-mean", inputs.GSPO_LOW, inputs.GSPO_HIGH))
    take_loss("cispo/token_mean", policy("cispo", "token-mean", 1.0 - 1e-9, inputs.TRUNCATION - 1.0))

    values = x["new_values"].clone().requires_grad_(True)
    loss = core_algos.compute_value_loss(
        values, x["returns"], x["values"], mask, inputs.VALUE_CLIP, loss_agg_mode="token-mean"
    )[0]
    loss.backward()
    found["value_loss"], found["value_gradient"] = loss.item(), (values.grad * mask).numpy()
    np.savez_compressed(Path(__file__).parent / "verl.npz", **found)


if __name__ == "__main__":
    main()
