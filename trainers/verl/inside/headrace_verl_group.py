# pyright: basic, reportMissingImports=false
"""A group of verl's workers on Ray, and what the trainer asks of it."""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import Any

import numpy as np
import ray
import torch
from headrace_verl_batches import Batch
from headrace_verl_worker import HeadraceWorker
from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
from verl.trainer.config import CheckpointConfig
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_and_rejection_mask
from verl.utils import tensordict_utils as tu
from verl.workers.config import (
    FSDPActorConfig,
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    PolicyLossConfig,
    TrainingWorkerConfig,
)
from verl.workers.utils.losses import ppo_loss

log = logging.getLogger("headrace.verl")
OBJECT_STORE_BYTES = 200 * 1024 * 1024
NO_DUAL_CLIP = 1e9
AGGREGATIONS = {
    "token_mean": "token-mean",
    "row_mean": "seq-mean-token-mean",
    "token_sum": "seq-mean-token-sum-norm",
}
ESTIMATORS = {
    "grpo": partial(core_algos.compute_grpo_outcome_advantage, norm_adv_by_std_in_grpo=True),
    "dr_grpo": partial(core_algos.compute_grpo_outcome_advantage, norm_adv_by_std_in_grpo=False),
    "rloo": core_algos.compute_rloo_outcome_advantage,
}


class Group:
    """The workers; every method is one message of the trainer."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        self._settings = given["settings"]
        self._workers: Any = None
        self._config: dict[str, Any] = {}
        self._pad = 0
        began = time.perf_counter()
        size = given["workers"]
        ray.init(
            num_cpus=size + 1,  # counted, not taken
            num_gpus=size if given["device"] != "cpu" else 0,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _node_ip_address="127.0.0.1",
            _temp_dir=given["folder"],
        )
        log.info("Ray is up after %.1f s", time.perf_counter() - began)

    def load(self, directory: str) -> dict[str, Any]:
        """The weights of a Hugging Face directory and a fresh optimizer."""
        began = time.perf_counter()
        model = HFModelConfig(
            path=directory,
            use_remove_padding=False,
            enable_gradient_checkpointing=False,
            override_config={"attn_implementation": "sdpa"},
        )
        config = model.hf_config.to_dict() | {"_name_or_path": None}
        self._pad = model.hf_config.pad_token_id or 0
        facts = {"vocab_size": int(model.hf_config.get_text_config().vocab_size)}
        if self._workers is not None:
            if config != self._config:
                raise ValueError(f"{directory} has another configuration than the model that these workers hold")
            self._workers.headrace_read(directory, None, 0)
            return facts
        self._config = config
        s, given = self._settings, self._given
        forward = {"float32": "fp32", "bfloat16": "bf16"}[s["dtype"]]
        worker = TrainingWorkerConfig(
            model_type="language_model",
            model_config=model,
            engine_config=FSDPEngineConfig(
                strategy="fsdp2",
                use_dynamic_bsz=True,
                max_token_len_per_gpu=s["micro_batch_tokens"],
                infer_max_token_len_per_gpu=s["micro_batch_tokens"],
                model_dtype="fp32",
                dtype=s["dtype"],
                mixed_precision={"param_dtype": forward, "reduce_dtype": "fp32", "buffer_dtype": "fp32"},
                use_torch_compile=False,
                use_remove_padding=False,
            ),
            optimizer_config=FSDPOptimizerConfig(
                lr=s["lr"],
                betas=tuple(s["betas"]),
                weight_decay=s["weight_decay"],
                clip_grad=s["max_grad_norm"],
                lr_warmup_steps_ratio=0.0,
                lr_scheduler_type="constant",
                total_training_steps=1 << 30,
                override_optimizer_config={"foreach": True},
            ),
            checkpoint_config=CheckpointConfig(),
        )
        gpu = given["device"] != "cpu"
        self._workers = RayWorkerGroup(
            resource_pool=RayResourcePool(process_on_nodes=[given["workers"]], use_gpu=gpu, max_colocate_count=1),
            ray_cls_with_init=RayClassWithInitArgs(cls=ray.remote(HeadraceWorker), config=worker),
            device_name=given["device"],
        )
        self._workers.reset()
        self._workers.set_loss_fn(partial(ppo_loss, self._actor()))
        log.info("%d workers of verl are up after %.1f s", given["workers"], time.perf_counter() - began)
        return facts

    def step(self, batch: dict[str, bytes], parts: list[list[int]]) -> dict[str, Any]:
        """The optimizer steps of one window, each on the rows of a part."""
        s, size = self._settings, self._given["workers"]
        whole = Batch(batch, size)
        began = time.perf_counter()
        figures = self._score(whole)
        scored = time.perf_counter()
        found: list[dict[str, float]] = []
        for indices in parts:
            data = whole.part(indices, size).tensordict(
                micro_batch_tokens=s["micro_batch_tokens"], pad=self._pad, entropy=True
            )
            found.append(_flat(tu.get(_got(self._workers.train_mini_batch(data)), "metrics")))
        metrics = {name: sum(f.get(name, 0.0) for f in found) / len(found) for name in found[0]}
        norms = [f["grad_norm"] for f in found]
        return figures | {
            "loss": metrics["loss"],
            "entropy": metrics["actor/entropy_loss"],
            "clip/fraction": metrics["actor/pg_clipfrac"],
            "grad_norm": sum(norms) / len(norms),
            "step/skipped": float(sum(not np.isfinite(norm) for norm in norms)),
            "seconds/score": scored - began,
            "seconds/update": time.perf_counter() - scored,
        }

    def advantages(self, groups: list[list[float]], estimator: str) -> dict[str, Any]:
        """One advantage a member, by verl's own estimator."""
        values = torch.tensor([[v] for group in groups for v in group], dtype=torch.float32)
        index = np.array([str(n) for n, group in enumerate(groups) for _ in group], dtype=object)
        found, _ = ESTIMATORS[estimator](values, torch.ones_like(values), index)
        each = iter(found[:, 0].tolist())
        return {"advantages": [[next(each) for _ in group] for group in groups]}

    def write(self, weights: str | None, state: str | None) -> dict[str, int]:
        """Files of weights and of the optimizer's state."""
        return {"steps": self._workers.headrace_write(weights, state)[0]}

    def read(self, weights: str, state: str | None, steps: int) -> dict[str, bool]:
        """Goes on from such files."""
        self._workers.headrace_read(weights, state, steps)
        return {"read": True}

    def close(self) -> None:
        """Ends Ray."""
        ray.shutdown()

    def _score(self, whole: Batch) -> dict[str, float]:
        """What the weights with which the window begins say of its tokens; sets the batch's old log-probabilities."""
        s = self._settings
        data = whole.tensordict(micro_batch_tokens=s["micro_batch_tokens"], pad=self._pad, entropy=False, infer=True)
        output = _got(self._workers.infer_batch(data))
        current = whole.of_responses(output["log_probs"])
        mask, behaviour = whole.padded(whole.masks), whole.padded(whole.behaviour)
        proximal = whole.padded(current)
        difference = (proximal - behaviour)[mask]
        k3 = torch.expm1(difference) - difference
        fresh = (mask & torch.from_numpy(whole.fresh.copy())[:, None])[mask]
        figures = {
            "tokens/trained": float(mask.sum()) * s["epochs"],
            "ratio/mean": float(difference.exp().mean()),
            "ratio/max": float(difference.exp().max()),
            "ratio/k3": float(k3.mean()),
        }
        if fresh.any():
            figures["mismatch/k3"] = float(k3[fresh].mean())
        if s["ratio"] != "decoupled":
            return figures
        whole.old = current
        proto, kept, corrected = compute_rollout_correction_and_rejection_mask(
            old_log_prob=proximal,
            rollout_log_prob=behaviour,
            response_mask=mask,
            rollout_is=self._given["correction"],
            rollout_is_threshold=s["truncation"],
        )
        if proto is not None:
            weights = proto.batch["rollout_is_weights"]
            whole.weights = [row[: m.numel()].contiguous() for row, m in zip(weights, whole.masks, strict=True)]
        whole.masks = [row[: m.numel()].bool() for row, m in zip(kept, whole.masks, strict=True)]
        return figures | {
            f"verl/{name.removeprefix('rollout_corr/')}": float(value)
            for name, value in corrected.items()
            if name.removeprefix("rollout_corr/") in ("rollout_is_mean", "rollout_is_max", "rollout_is_eff_sample_size")
        }

    def _actor(self) -> FSDPActorConfig:
        s = self._settings
        return FSDPActorConfig(
            strategy="fsdp2",
            ppo_mini_batch_size=1,
            use_dynamic_bsz=True,
            clip_ratio=s["clip_low"],
            clip_ratio_low=s["clip_low"],
            clip_ratio_high=s["clip_high"],
            clip_ratio_c=s["dual_clip"] or NO_DUAL_CLIP,
            loss_agg_mode=AGGREGATIONS[s["aggregation"]],
            loss_scale_factor=s["token_divisor"],
            entropy_coeff=s["entropy"],
            use_kl_loss=False,
            rollout_n=1,
            policy_loss=PolicyLossConfig(loss_mode={"clip": "vanilla", "gspo": "gspo"}[s["loss"]]),
        )


def _got(output: Any) -> Any:
    return output.get() if hasattr(output, "futures") or type(output).__name__.endswith("Future") else output


def _flat(metrics: dict[str, Any]) -> dict[str, float]:
    """verl's figures as numbers: each is one, or a list of them."""
    return {name: float(np.mean(value)) for name, value in metrics.items() if not isinstance(value, (str, bytes, dict))}
