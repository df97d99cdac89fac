"""Flags of trainers that can train an adapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headrace.trainers.models.lora import LoraSettings


@dataclass(frozen=True, kw_only=True)
class LoraFlags:
    """Of a LoRA adapter."""

    lora_rank: Annotated[
        int | None, typer.Option(min=1, help="Train and publish a LoRA adapter of this rank (all weights).")
    ] = None
    lora_alpha: Annotated[
        int | None, typer.Option(min=1, help="Its scale is this divided by the rank (twice the rank).")
    ] = None
    lora_targets: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME", help="The modules that it changes (all linear ones of a Llama's layers)."),
    ] = None

    def settings(self, seed: int) -> LoraSettings | None:
        """See `LoraSettings`; None where no rank is given."""
        from headrace.trainers.models.lora import lora_of

        return lora_of(self.lora_rank, self.lora_alpha, self.lora_targets, seed)
