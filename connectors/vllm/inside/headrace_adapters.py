# pyright: basic, reportMissingImports=false
"""LoRA adapters of a running vLLM server: several at a time, each request under the one that it began with."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headrace.connectors.engine.adapter import LORA, Adapter
from headrace.connectors.engine.weights import WeightsRefused, WeightsRequest

KEPT = 4  # versions that requests can name; more are kept while they answer one


@dataclass(eq=False)
class Loaded:
    """One version's adapter. name: the model's name for it; running: requests that it answers."""

    name: str
    version: int
    weights_id: str
    directory: Path
    running: int = 0


class Adapters:
    """What vLLM has loaded by the handler of its /v1/load_lora_adapter.

    models: vLLM's `OpenAIServingModels`.
    directory: the server's own; the bytes that were checked are copied there, and loaded from there.
    """

    def __init__(self, models: Any, lora_config: Any, policy: str, directory: Path) -> None:
        self._models, self._config, self._policy, self._directory = models, lora_config, policy, directory
        self._loaded: dict[str, Loaded] = {}
        self.current: Loaded | None = None

    def check(self, adapter: Adapter) -> None:
        """Raises WeightsRefused where the server was not started for such an adapter."""
        most = self._config.max_lora_rank
        if adapter.rank > most:
            message = f"the adapter has rank {adapter.rank}, vLLM was started for {most}: give a higher --max-lora-rank"
            raise WeightsRefused(LORA, message, 422)

    async def load(self, adapter: Adapter, weights: WeightsRequest) -> None:
        """Every request that begins after this is answered under the new version.

        Raises:
            WeightsRefused: vLLM cannot serve it; what was current stays so.
        """
        from vllm.entrypoints.serve.engine.protocol import ErrorResponse
        from vllm.entrypoints.serve.lora.protocol import LoadLoRAAdapterRequest

        name = f"{self._policy}-v{weights.version}"
        directory = self._directory / name
        await asyncio.to_thread(_copy, adapter, directory)
        answer = await self._models.load_lora_adapter(LoadLoRAAdapterRequest(lora_name=name, lora_path=str(directory)))
        if isinstance(answer, ErrorResponse):
            shutil.rmtree(directory, ignore_errors=True)
            raise WeightsRefused(LORA, f"vLLM cannot load the adapter: {answer.error.message}", 422)
        self.current = self._loaded[name] = Loaded(name, weights.version, weights.weights_id, directory)

    async def prune(self, kept: int = KEPT) -> None:
        """Unloads the oldest that answer nothing, down to so many."""
        from vllm.entrypoints.serve.lora.protocol import UnloadLoRAAdapterRequest

        for loaded in list(self._loaded.values()):
            if len(self._loaded) > kept and not loaded.running and loaded is not self.current:
                del self._loaded[loaded.name]
                await self._models.unload_lora_adapter(UnloadLoRAAdapterRequest(lora_name=loaded.name))
                shutil.rmtree(loaded.directory, ignore_errors=True)

    def choose(self, raw: bytes) -> tuple[bytes, Loaded | None]:
        """The body with the name of an adapter in it, and the adapter; None for a request that gets none.

        What asks for the server's model gets the current one; what names a version gets that.
        """
        try:
            fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            asked = msgspec.json.decode(fields["model"], type=str | None) if "model" in fields else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return raw, None  # vLLM says what is wrong with it
        if asked in self._loaded:
            return raw, self._loaded[asked]
        if self.current is None or not (asked is None or self._models.is_base_model(asked)):
            return raw, None
        fields["model"] = msgspec.Raw(msgspec.json.encode(self.current.name))
        return msgspec.json.encode(fields), self.current


def _copy(adapter: Adapter, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)  # of a version that was refused before
    directory.mkdir(parents=True)
    for name, content in adapter.files.items():
        (directory / name).write_bytes(content)
