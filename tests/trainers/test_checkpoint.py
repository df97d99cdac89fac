import hashlib
import json
import resource
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import load_file, save_file

from headrace.schemas.records import TrainerState
from headrace.trainers import checkpoint
from headrace.trainers.checkpoint import CheckpointError, Checkpoints, State, read_state

Make = Callable[..., Path]


def opened(tmp_path: Path, model: Path, keep: int = 2) -> Checkpoints:
    checkpoints = Checkpoints(tmp_path / "store", "run", keep=keep)
    checkpoints.use(checkpoints.adopt(model, "policy", 0))
    return checkpoints


def tensors(model: Path, add: float = 1.0) -> dict[str, torch.Tensor]:
    return {name: t + add for name, t in load_file(model / "model.safetensors").items()}


def test_a_version_is_a_whole_model_directory(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    checkpoints = opened(tmp_path, model)
    weights = checkpoints.write(tensors(model), "policy", 1, "model")
    directory = Path(weights.uri)
    assert {p.name for p in directory.iterdir()} == {*weights.sha256, "manifest.json"}
    for name, digest in weights.sha256.items():
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == digest
    assert hashlib.sha256((directory / "manifest.json").read_bytes()).hexdigest() == weights.weights_id
    assert json.loads((directory / "manifest.json").read_text()) == weights.sha256
    assert (directory / "config.json").read_bytes() == (model / "config.json").read_bytes()
    expected = tensors(model)
    assert all(torch.equal(t, expected[name]) for name, t in load_file(directory / "model.safetensors").items())
    assert weights.bytes == sum((directory / name).stat().st_size for name in weights.sha256)
    again = checkpoints.write(tensors(model), "policy", 1, "model")
    assert again.uri != weights.uri
    assert again.weights_id == weights.weights_id


def test_weights_are_published_in_the_base_models_dtype(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    halved = {name: t.bfloat16() for name, t in load_file(model / "model.safetensors").items()}
    save_file(halved, model / "model.safetensors")
    checkpoints = opened(tmp_path, model)
    wide = {name: t.float() + 1e-4 for name, t in halved.items()}
    written = load_file(Path(checkpoints.write(wide, "policy", 1, None).uri) / "model.safetensors")
    assert {t.dtype for t in written.values()} == {torch.bfloat16}
    assert checkpoints.loses_precision(wide)


def test_only_the_newest_versions_and_the_base_stay(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    checkpoints = opened(tmp_path, model, keep=2)
    written = [checkpoints.write(tensors(model, i), "policy", i, None) for i in range(1, 5)]
    states = [checkpoints.write_state(i, State({"x": torch.ones(1)}, {})) for i in range(1, 5)]
    checkpoints.prune()
    assert [Path(w.uri).exists() for w in written] == [False, False, True, True]
    assert [Path(s.uri).exists() for s in states] == [False, False, True, True]
    assert len(list(checkpoints.directory.glob("base-*"))) == 1


def test_what_a_killed_process_left_is_swept(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    before = Checkpoints(tmp_path / "store", "run", keep=2)
    base = before.adopt(model, "policy", 0)
    before.use(base)
    published = [base, *(before.write(tensors(model, i), "policy", i, None) for i in (1, 2, 3))]
    state = before.write_state(3, State({"x": torch.ones(1)}, {}))
    lost = before.write(tensors(model), "policy", 4, None)
    lost_state = before.write_state(4, State({"x": torch.ones(1)}, {}))
    half = before.directory / f"{checkpoint.TEMPORARY}v000005-x"
    half.mkdir()
    (before.directory / "notes").mkdir()
    (before.directory / "v1.csv").write_text("a user's")
    after = Checkpoints(tmp_path / "store", "run", keep=2)
    after.sweep([w.uri for w in published], [state.uri])
    assert not half.exists()
    assert (before.directory / "notes").is_dir()
    assert (before.directory / "v1.csv").exists()
    assert not Path(lost.uri).exists()
    assert not Path(lost_state.uri).exists()
    assert all(Path(w.uri).exists() for w in published)
    after.use(base)
    after.prune()
    assert [Path(w.uri).exists() for w in published] == [True, False, True, True]


def test_a_run_that_the_log_does_not_know_touches_no_versions(make_model: Make, tmp_path: Path) -> None:
    model = make_model()
    checkpoints = opened(tmp_path, model)
    checkpoints.refuse_foreign()  # base weights alone: it was killed before its manifest was published
    written = checkpoints.write(tensors(model), "policy", 1, None)
    with pytest.raises(CheckpointError, match="another cluster or prefix"):
        Checkpoints(checkpoints.directory.parent, "run", keep=2).refuse_foreign()
    assert Path(written.uri).exists()


def test_a_state_comes_back_as_it_was(make_model: Make, tmp_path: Path) -> None:
    checkpoints = opened(tmp_path, make_model())
    state = State({"first.a": torch.randn(3), "rng": torch.get_rng_state()}, {"recent": [1.0], "weights": {"x": 1}})
    recorded = checkpoints.write_state(7, state)
    again = read_state(recorded)
    assert again.facts == state.facts
    assert all(torch.equal(again.tensors[name], t) for name, t in state.tensors.items())
    Path(recorded.uri).write_bytes(b"x" + Path(recorded.uri).read_bytes()[1:])
    with pytest.raises(CheckpointError, match="sha256 differs"):
        read_state(recorded)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_state(msgspec.structs.replace(recorded, uri="/nowhere/state"))
    assert isinstance(recorded, TrainerState)


def test_a_full_store_says_so_and_leaves_nothing(
    make_model: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    checkpoints = opened(tmp_path, model)
    before = sorted(checkpoints.directory.iterdir())

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_write", full)
    for write in (
        lambda: checkpoints.write(tensors(model), "policy", 1, None),
        lambda: checkpoints.write_state(1, State({"x": torch.ones(1)}, {})),
    ):
        with pytest.raises(CheckpointError, match="No space left on device; free space, or set --checkpoints"):
            write()
    assert sorted(checkpoints.directory.iterdir()) == before


def test_a_store_that_takes_no_more_bytes_is_named_and_a_second_start_mends_it(
    make_model: Make, tmp_path: Path
) -> None:
    """The kernel's limit on the size of a file stops a write in the middle, as a full store does."""
    model = make_model()
    (model / "tokenizer.json").write_text("x" * 60_000)
    checkpoints = Checkpoints(tmp_path / "store", "run", keep=2)
    base = checkpoints.adopt(model, "policy", 0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(CheckpointError, match=r"cannot write .*tokenizer.json: File too large; free space"):
            checkpoints.use(base)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    checkpoints.use(base)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(CheckpointError, match="File too large"):
            checkpoints.write(tensors(model), "policy", 1, None)
        with pytest.raises(CheckpointError, match="File too large"):
            checkpoints.write_state(1, State({"x": torch.ones(10_000)}, {}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(checkpoints.directory.glob(f"{checkpoint.TEMPORARY}*"))
    written = checkpoints.write(tensors(model), "policy", 1, None)
    assert (Path(written.uri) / "tokenizer.json").read_bytes() == (model / "tokenizer.json").read_bytes()
