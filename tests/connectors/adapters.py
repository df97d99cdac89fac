"""Adapters made, saved and judged by peft alone."""

import hashlib
from pathlib import Path
from typing import Any

import torch

from headrace.schemas.records import Weights


def save_adapter(base: Path, directory: Path, *, rank: int = 4, seed: int = 0, **config: Any) -> None:
    """A random adapter to a model, saved by peft."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    targets = ["q_proj", "v_proj", "o_proj", "down_proj"]
    values = {"r": rank, "lora_alpha": 2 * rank, "target_modules": targets, "task_type": "CAUSAL_LM"} | config
    model: Any = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), LoraConfig(**values))
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "lora_" in name:
            parameter.data = 0.3 * torch.randn(parameter.shape, generator=generator)
    model.save_pretrained(str(directory))


def adapter_record(base: Path, directory: Path, version: int, policy: str = "policy") -> Weights:
    """The record of an adapter as it lies there."""

    def sums(folder: Path, *patterns: str) -> dict[str, str]:
        files = [path for pattern in patterns for path in folder.glob(pattern)]
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    return Weights(
        policy=policy,
        version=version,
        weights_id=f"id-{version}",
        uri=str(directory),
        format="lora",
        sha256=sums(directory, "adapter_*"),
        base_model=str(base),
        base_sha256=sums(base, "*.safetensors"),
    )


def adapted_logprobs(
    base: str | Path, directory: str | Path, prompt: list[int], response: list[int], temperature: float = 1.0
) -> list[float]:
    """Log-probabilities of the response ids by transformers and peft."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    loaded: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    model: Any = PeftModel.from_pretrained(loaded, str(directory)).eval()
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1].float() / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(response)[:, None])[:, 0].tolist()
