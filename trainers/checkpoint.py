"""Checkpoints on a file system: whole or not there, under a path that is never written twice."""

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import msgspec
import safetensors.torch
import torch
from safetensors import safe_open
from torch import Tensor

from headrace.schemas.records import TrainerState, Weights
from headrace.streams.errors import HeadraceError
from headrace.trainers.models.loading import ADAPTER_FILE

WEIGHTS_FILE = "model.safetensors"
CONFIG_FILE = "adapter_config.json"
LORA = "lora"  # format of an adapter
MANIFEST_FILE = "manifest.json"
TEMPORARY = ".partial-"
VERSION = "v"
STATE = "state-"
BASE = "base"
_OWN_NAME = re.compile(rf"{re.escape(TEMPORARY)}.*|({VERSION}\d{{6}}|{STATE}\d{{6}}|{BASE})-[0-9a-f]+(\.safetensors)?")
FACTS = "headrace"  # key of the state's facts in the metadata of its safetensors file
NOT_COPIED = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".index.json")
STATES_KEPT = 2


class CheckpointError(HeadraceError):
    """A checkpoint cannot be written or read."""


@dataclass(frozen=True)
class State:
    """The optimizer's tensors, random state, and facts that are JSON values."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]


class Checkpoints:
    """The checkpoints of one run, in `<root>/<run_id>`.

    Args:
        base: the model directory that the run starts from; its tokenizer and configuration go into every checkpoint.
        keep: so many newest versions stay on disk.
    """

    def __init__(self, root: Path, run_id: str, *, keep: int) -> None:
        self.directory = root.absolute() / run_id
        self.keep = keep
        self._files: dict[str, str] = {}
        self._dtypes: dict[str, torch.dtype] = {}
        self._base: Weights | None = None
        self._versions: list[Path] = []
        self._states: list[Path] = []

    @property
    def _shared(self) -> Path:
        return self.directory / "model-files"

    def adopt(self, base: Path, policy: str, version: int) -> Weights:
        """Makes the run's own copy of its base weights (by hard links where the file system allows) as a version.

        Raises:
            CheckpointError: there is no space, or no right to write.
        """
        # Not named like the others: it stays as long as the run may be restarted or replayed.
        name = _fresh(BASE)
        with _Writing(self.directory / name) as partial:
            for file in sorted(p for p in base.iterdir() if p.is_file() and not p.name.startswith(".")):
                if file.name != MANIFEST_FILE:
                    _link(file, partial / file.name)
            hashes = {file.name: _sha256(file) for file in sorted(partial.iterdir())}
            weights_id = _write_manifest(partial, hashes)
        return self._weights(policy, version, name, weights_id, hashes, str(base.absolute()))

    def use(self, adopted: Weights) -> None:
        """Takes configuration, tokenizer and dtypes from the run's base weights.

        Raises:
            CheckpointError: they are not there any more; or there is no space, or no right to write.
        """
        base = Path(adopted.uri)
        if not base.is_dir():
            raise CheckpointError(f"the run's base weights {base} are gone: start a new run with another --run")
        self._base = adopted
        self._files, self._dtypes = {}, {}
        for file in sorted(base.iterdir()):
            if file.suffix == ".safetensors":
                with cast(Any, safe_open)(file, "pt") as tensors:
                    self._dtypes |= {name: _dtype(tensors.get_slice(name).get_dtype()) for name in tensors.keys()}  # noqa: SIM118
            elif file.name != MANIFEST_FILE and not file.name.endswith(NOT_COPIED):
                self._files[file.name] = self._keep(file)

    def _keep(self, file: Path) -> str:
        """Makes a copy of a file that all checkpoints link to; its SHA-256."""
        kept, content = self._shared / file.name, file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        try:
            self._shared.mkdir(parents=True, exist_ok=True)
            if not kept.exists() or _sha256(kept) != digest:
                partial = kept.with_name(TEMPORARY + kept.name)
                _write(partial, content)
                partial.replace(kept)
        except OSError as error:
            raise _unwritable(kept, error) from error
        return digest

    def write(
        self,
        tensors: Mapping[str, Tensor],
        policy: str,
        version: int,
        base_model: str | None,
        adapter: Mapping[str, Any] | None = None,
    ) -> Weights:
        """A directory of these weights, in the dtypes of the base model, durable when this returns.

        Args:
            adapter: its configuration, where the weights are those of an adapter to the base weights: the directory is
                peft's then, and else Hugging Face's.

        Raises:
            CheckpointError: there is no space, or no right to write.
        """
        typed = {name: t.to(self._dtypes.get(name, t.dtype)).contiguous() for name, t in tensors.items()}
        content: bytes = cast(Any, safetensors.torch).save(typed, metadata={"format": "pt"})
        written = {WEIGHTS_FILE: content} if adapter is None else self._adapter_files(adapter, content)
        name = _fresh(f"{VERSION}{version:06d}")
        with _Writing(self.directory / name) as partial:
            linked = self._files if adapter is None else {}
            for file in linked:
                _link(self._shared / file, partial / file)
            for file, data in written.items():
                _write(partial / file, data)
            hashes = {**linked, **{file: hashlib.sha256(data).hexdigest() for file, data in written.items()}}
            weights_id = _write_manifest(partial, hashes)
        self._versions.append(self.directory / name)
        weights = self._weights(policy, version, name, weights_id, hashes, base_model)
        return weights if adapter is None else self._of_base(weights)

    def _adapter_files(self, adapter: Mapping[str, Any], content: bytes) -> dict[str, bytes]:
        assert self._base is not None, "an adapter belongs to base weights"
        config = {**adapter, "base_model_name_or_path": self._base.uri}
        return {CONFIG_FILE: json.dumps(config, indent=2, sort_keys=True).encode(), ADAPTER_FILE: content}

    def _of_base(self, weights: Weights) -> Weights:
        assert self._base is not None
        sums = {file: digest for file, digest in self._base.sha256.items() if file.endswith(".safetensors")}
        return msgspec.structs.replace(weights, format=LORA, base_model=self._base.uri, base_sha256=sums)

    def loses_precision(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether `write` rounds these weights, so that the state has to hold them too."""
        return any(self._dtypes.get(name, t.dtype) != t.dtype for name, t in tensors.items())

    def write_state(self, step: int, state: State) -> TrainerState:
        """One file with all that a restart needs beside the weights, durable when this returns.

        Raises:
            CheckpointError: there is no space, or no right to write.
        """
        tensors = {name: t.detach().contiguous() for name, t in state.tensors.items()}
        content: bytes = cast(Any, safetensors.torch).save(tensors, metadata={FACTS: json.dumps(state.facts)})
        path = self.directory / f"{_fresh(f'{STATE}{step:06d}')}.safetensors"
        partial = path.with_name(TEMPORARY + path.name)
        try:
            _write(partial, content)
            partial.rename(path)
            _sync(self.directory)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise _unwritable(path, error) from error
        self._states.append(path)
        return TrainerState(uri=str(path), sha256=hashlib.sha256(content).hexdigest())

    def prune(self) -> None:
        """Removes what is older than the newest `keep` versions; call it once a newer one is published."""
        while len(self._versions) > self.keep:
            shutil.rmtree(self._versions.pop(0), ignore_errors=True)
        while len(self._states) > STATES_KEPT:
            self._states.pop(0).unlink(missing_ok=True)

    def refuse_foreign(self) -> None:
        """For a run that the log does not know: what stands in its folder belongs to another one of its name.

        Raises:
            CheckpointError: there are versions or states, of a run on another cluster or under another prefix.
        """
        if self.directory.is_dir() and any(
            _OWN_NAME.fullmatch(path.name) and path.name.startswith((VERSION, STATE))
            for path in self.directory.iterdir()
        ):
            raise CheckpointError(
                f"{self.directory} holds versions of a run that these topics do not know (another cluster or prefix?): "
                "choose another --run or --checkpoints"
            )

    def sweep(self, published: Iterable[str], states: Iterable[str]) -> None:
        """Removes what a killed process has left: what is half written, and what was written but never published.

        Files that have no name of ours stay.

        Args:
            published: the URIs of all weights of this run that the resources topic names.
            states: the URIs of all states that its steps name.
        """
        if not self.directory.is_dir():
            return
        known, known_states = list(dict.fromkeys(published)), list(dict.fromkeys(states))
        kept = {*known, *known_states, str(self._shared)}
        for path in self.directory.iterdir():
            if str(path) in kept or not _OWN_NAME.fullmatch(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        directories = [path for uri in known if (path := Path(uri)).is_dir() and path.parent == self.directory]
        self._versions = [path for path in directories if path.name.startswith(VERSION)]
        self._states = [path for uri in known_states if (path := Path(uri)).is_file()]

    def _weights(
        self, policy: str, version: int, name: str, weights_id: str, hashes: dict[str, str], base_model: str | None
    ) -> Weights:
        path = self.directory / name
        return Weights(
            policy=policy,
            version=version,
            weights_id=weights_id,
            uri=str(path),
            base_model=base_model,
            sha256=hashes,
            bytes=sum((path / file).stat().st_size for file in hashes),
        )


def read_state(recorded: TrainerState) -> State:
    """The state that a TrainingStep names.

    Raises:
        CheckpointError: it is gone, or not what was written.
    """
    path = Path(recorded.uri)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"the state of the last step cannot be read: {error}; start a new run") from error
    if hashlib.sha256(content).hexdigest() != recorded.sha256:
        raise CheckpointError(f"{path} is not what the last step wrote: its sha256 differs; start a new run")
    with cast(Any, safe_open)(path, "pt") as file:
        facts = json.loads(file.metadata()[FACTS])
    return State(cast(Any, safetensors.torch).load(content), facts)


class _Writing:
    """A directory that appears whole, by a rename, or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(TEMPORARY + path.name)

    def __enter__(self) -> Path:
        try:
            self._partial.mkdir(parents=True)
        except OSError as error:
            raise _unwritable(self._path, error) from error
        return self._partial

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                _sync(self._partial)
                self._partial.rename(self._path)
                _sync(self._path.parent)
            except OSError as late:
                raise _unwritable(self._path, late) from late
            return
        shutil.rmtree(self._partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise _unwritable(self._path, error) from error


def _unwritable(path: Path, error: OSError) -> CheckpointError:
    return CheckpointError(f"cannot write {path}: {error.strerror or error}; free space, or set --checkpoints")


def _fresh(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex}"


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        _write(target, source.read_bytes())


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_manifest(directory: Path, hashes: dict[str, str]) -> str:
    content = json.dumps(hashes, sort_keys=True).encode()
    _write(directory / MANIFEST_FILE, content)
    return hashlib.sha256(content).hexdigest()


def _dtype(name: str) -> torch.dtype:
    return {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}.get(
        name, torch.float32
    )
