"""Which backend a model gets."""

from __future__ import annotations

from pathlib import Path

from headrace.connectors.engine.architecture import native_config, read_config
from headrace.connectors.engine.backend import Backend
from headrace.connectors.engine.checkpoint import read_checkpoint
from headrace.connectors.engine.native_backend import NativeBackend


def load_backend(directory: Path) -> Backend:
    """The model of a Hugging Face directory; transformers is imported only for what `decoder` cannot compute."""
    config = read_config(directory)
    tensors = read_checkpoint(str(directory))
    native = native_config(config)
    if native is None:
        from headrace.connectors.engine.transformers_backend import TransformersBackend

        return TransformersBackend(directory, config, tensors)
    return NativeBackend(native, tensors)
