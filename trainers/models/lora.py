"""LoRA adapters (arXiv:2106.09685), made by peft, which is imported where a run asks for one and nowhere else."""

import importlib.util
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import nn

from headrace.streams.errors import HeadraceError, SettingsError

TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ADAPTER = "default"
PREFIX = "base_model.model."  # of the names in peft's files


class PeftMissingError(HeadraceError):
    """peft is not installed."""


@dataclass(frozen=True, kw_only=True)
class LoraSettings:
    """An adapter of rank `rank`: each target gets alpha / rank * B @ A, with B zero at the start.

    Attributes:
        targets: last names of the linear modules that are adapted.
        seed: of A.
    """

    rank: int
    alpha: int
    targets: tuple[str, ...] = TARGETS
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha < 1 or not self.targets or not all(self.targets):
            raise SettingsError("--lora-rank and --lora-alpha must be at least 1, --lora-targets names of modules")


def lora_of(rank: int | None, alpha: int | None, targets: str | None, seed: int) -> LoraSettings | None:
    """The settings that flags give; None where there is no rank. alpha: twice the rank where it is None.

    Raises:
        SettingsError: flags of an adapter, but no rank.
        PeftMissingError: peft is not installed.
    """
    if rank is None:
        if alpha is not None or targets is not None:
            raise SettingsError("--lora-alpha and --lora-targets go with --lora-rank")
        return None
    if importlib.util.find_spec("peft") is None:
        raise PeftMissingError("LoRA needs peft: pip install 'headrace[lora]'")
    names = TARGETS if targets is None else tuple(name.strip() for name in targets.split(","))
    return LoraSettings(rank=rank, alpha=2 * rank if alpha is None else alpha, targets=names, seed=seed)


def lora_from(given: dict[str, Any] | None) -> LoraSettings | None:
    """The settings as a run's manifest has them."""
    if given is None:
        return None
    values: dict[str, Any] = {**given, "targets": tuple(given["targets"])}
    return LoraSettings(**values)


def add_adapter(module: nn.Module, settings: LoraSettings) -> None:
    """Puts an adapter into a model, in place; what was there is frozen.

    The same settings give the same adapter, whatever torch's random state, which stays as it is.

    Raises:
        SettingsError: a target is no linear module of the model.
    """
    parts = cast("Iterable[tuple[str, nn.Module]]", module.named_modules())
    linear = {name.rpartition(".")[2] for name, part in parts if isinstance(part, nn.Linear)}
    # The head is no target: servers do not load adapters of it.
    known = sorted(linear - {"lm_head"})
    if missing := sorted(set(settings.targets) - set(known)):
        there = ", ".join(known) or "no linear layer"
        raise SettingsError(f"--lora-targets {', '.join(missing)}: the model has {there}")
    import peft

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)  # pyright: ignore[reportUnknownMemberType]
        cast(Any, peft).inject_adapter_in_model(_config(settings), module, ADAPTER)
    module.eval()


@contextmanager
def without_adapter(module: nn.Module) -> Generator[None]:
    """The model is its base alone, as under peft's `PeftModel.disable_adapter`: no gradient can be taken meanwhile."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [layer for layer in module.modules() if isinstance(layer, BaseTunerLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def adapter_config(settings: LoraSettings) -> dict[str, Any]:
    """What stands in `adapter_config.json`, without the base model."""
    config: dict[str, Any] = _config(settings).to_dict() | {"inference_mode": True}
    return {
        name: sorted(cast("set[str]", value)) if isinstance(value, set) else value for name, value in config.items()
    }


def trained_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """What is trained, under the names of its checkpoint: Hugging Face's, or peft's where there is an adapter.

    A tied head is one parameter under two names, and stands here once.
    """
    return {_published(name): p for name, p in module.named_parameters() if p.requires_grad}


def _published(name: str) -> str:
    inside = f".{ADAPTER}."
    return PREFIX + name.replace(inside, ".") if ".lora_" in name and inside in name else name


def _config(settings: LoraSettings) -> Any:
    from peft import LoraConfig

    return cast(Any, LoraConfig)(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=list(settings.targets),
        lora_dropout=0.0,
        bias="none",
        task_type="CAUSAL_LM",
    )
