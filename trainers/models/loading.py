"""Reads a causal language model from a Hugging Face directory."""

import json
import threading
import time
from pathlib import Path
from typing import Any, Protocol, cast

import safetensors.torch
import torch
from torch import Tensor, nn

from headrace.streams.errors import HeadraceError
from headrace.trainers.models.llama import Llama, LlamaSettings
from headrace.trainers.models.lora import LoraSettings, add_adapter

POLL_SECONDS = 0.05
ADAPTER_FILE = "adapter_model.safetensors"
PACK_LIMIT = 4096  # transformers' attention over packed sequences is dense


class CausalLM(Protocol):
    """What scoring and training ask of a model; `module` owns the parameters, under Hugging Face's names.

    Attributes:
        trees: whether `hidden` takes masks.
        pack_limit: most tokens of a packed row, where attention costs the square of them; None is no limit.
    """

    trees: bool
    pack_limit: int | None

    @property
    def module(self) -> nn.Module: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def hidden_size(self) -> int: ...

    def hidden(
        self,
        token_ids: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        lengths: list[int] | None = None,
    ) -> Tensor: ...

    def head(self, hidden: Tensor) -> Tensor: ...


class ModelError(HeadraceError):
    """The directory holds no model that can be loaded."""


def load_causal_lm(
    directory: Path, *, dtype: torch.dtype = torch.float32, lora: LoraSettings | None = None
) -> CausalLM:
    """The model of a Hugging Face directory, in evaluation mode (no dropout).

    Args:
        lora: of the adapter that alone is trained then.

    Raises:
        ModelError: no config, no safetensors, or tensors that do not fit the config.
        SettingsError: see `add_adapter`.
    """
    settings = LlamaSettings.from_config(read_config(directory))
    model: CausalLM
    if settings is None:
        model = _Transformers(directory, dtype)
    else:
        model = _Native(settings, read_tensors(directory), directory, dtype)
    if lora is not None:
        add_adapter(model.module, lora)
    return model


def wait_for_model(directory: Path, seconds: float, stop: threading.Event) -> bool:
    """Waits until the directory is there; false when told to stop meanwhile.

    Whoever makes it renames it into place, so that it is whole once it is there.

    Raises:
        ModelError: it is not there after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while not (directory / "config.json").exists():
        if stop.wait(POLL_SECONDS):
            return False
        if time.monotonic() >= deadline:
            if directory.is_dir():
                raise ModelError(f"{directory} is no Hugging Face model directory: it has no config.json")
            raise ModelError(
                f"no model at {directory} after {seconds:.0f} s; correct --model, or give a longer --wait-model"
            )
    return True


def read_config(directory: Path) -> dict[str, Any]:
    """The `config.json` of a Hugging Face directory."""
    try:
        return cast(dict[str, Any], json.loads((directory / "config.json").read_text()))
    except (OSError, ValueError) as error:
        raise ModelError(f"{directory} is no Hugging Face model directory: config.json: {error}") from error


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of the model: one, or those that the index names, or of an adapter its one."""
    adapter = directory / ADAPTER_FILE
    if adapter.exists():
        return [adapter]
    index = directory / "model.safetensors.index.json"
    if index.exists():
        return [directory / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]
    single = directory / "model.safetensors"
    if not single.exists():
        raise ModelError(f"{directory} has no model.safetensors; save the model with save_pretrained first")
    return [single]


def read_tensors(directory: Path) -> dict[str, Tensor]:
    """All tensors of the safetensors files of a model or an adapter, by name."""
    tensors: dict[str, Tensor] = {}
    for path in weight_files(directory):
        tensors.update(cast(Any, safetensors.torch).load_file(path))
    return tensors


class _Native:
    trees = True
    pack_limit: int | None = None

    def __init__(
        self, settings: LlamaSettings, tensors: dict[str, Tensor], directory: Path, dtype: torch.dtype
    ) -> None:
        self.llama = Llama(settings)
        if settings.tied:
            tensors = {"lm_head.weight": tensors["model.embed_tokens.weight"], **tensors}
        typed = {name: tensor.to(dtype) for name, tensor in tensors.items() if not name.endswith(".inv_freq")}
        try:
            self.llama.load_state_dict(typed, assign=True)
        except RuntimeError as error:
            raise ModelError(f"the weights in {directory} do not fit its config.json: {error}") from error
        if settings.tied:
            self.llama.lm_head.weight = self.llama.model.embed_tokens.weight
        self.llama.requires_grad_(True).eval()

    @property
    def module(self) -> nn.Module:
        return self.llama

    @property
    def vocab_size(self) -> int:
        return self.llama.settings.vocab_size

    @property
    def hidden_size(self) -> int:
        return self.llama.settings.hidden_size

    def hidden(
        self,
        token_ids: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        lengths: list[int] | None = None,
    ) -> Tensor:
        return self.llama.hidden(token_ids, positions, mask, lengths)

    def head(self, hidden: Tensor) -> Tensor:
        return self.llama.head(hidden)


class _Transformers:
    trees = False
    pack_limit: int | None = PACK_LIMIT

    def __init__(self, directory: Path, dtype: torch.dtype) -> None:
        # Slow to import; most small models never need it.
        from transformers import AutoModelForCausalLM

        auto = cast(Any, AutoModelForCausalLM)
        self.model: Any = auto.from_pretrained(directory, dtype=dtype).eval()

    @property
    def module(self) -> nn.Module:
        return self.model

    @property
    def vocab_size(self) -> int:
        return int(self.model.config.vocab_size)

    @property
    def hidden_size(self) -> int:
        return int(self.model.config.hidden_size)

    def hidden(
        self,
        token_ids: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        lengths: list[int] | None = None,
    ) -> Tensor:
        assert mask is None, "architectures differ in how they take masks"
        assert (positions is None) == (lengths is None)
        # use_cache off: a cache would cost memory, and with one the position ids of packed sequences, which alone say
        # where each begins, are silently ignored: every sequence would see those before it.
        decoder = self.model.get_decoder()
        return decoder(input_ids=token_ids, position_ids=positions, use_cache=False).last_hidden_state

    def head(self, hidden: Tensor) -> Tensor:
        return self.model.get_output_embeddings()(hidden)
