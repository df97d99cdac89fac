"""A pipeline file as processes, and what it says of a file that makes no sense."""

from pathlib import Path
from typing import Any

import pytest

from headrace.local import pipeline_file
from headrace.local.catalogue import FEEDER, KINDS
from headrace.local.errors import PipelineError
from headrace.local.options import GIVEN, CommandOptions
from headrace.local.pipeline import load_plan
from headrace.local.pipeline_file import FeederTable, PartTable, PipelineFile
from headrace.local.plan import PipelinePlan, plan

EXAMPLE = Path(pipeline_file.__file__).with_name("example.toml")


def planned(values: dict[str, Any], tmp_path: Path, machine: str | None = None) -> PipelinePlan:
    return plan(pipeline_file.parse(values, "pipeline.toml"), tmp_path, machine=machine)


def words(made: PipelinePlan, name: str) -> tuple[str, ...]:
    return next(p.part.argv for p in made.parts if p.part.name == name)


def test_the_example_is_a_whole_pipeline(tmp_path: Path) -> None:
    copy = tmp_path / "pipeline.toml"
    copy.write_text(EXAMPLE.read_text())
    made = load_plan(copy)
    names = [p.part.name for p in made.parts]
    assert names[:2] == ["broker", "topics"]
    assert {"engine", "gateway", "runner", "runner-2", "lifecycle", "assembler", "trainer", "sync", "feeder"} <= {
        *names
    }
    assert words(made, "runner")[:3] == ("runner", "headrace.demo.agents:pick_digit", "--concurrency")
    assert "--worker-id" in words(made, "runner-2")
    assert words(made, "runner-2")[words(made, "runner-2").index("--worker-id") + 1] == "runner-2"
    assert "--run" in words(made, "trainer")
    assert "--follow" in words(made, "feeder")
    made.write_files()
    assert len((tmp_path / "pipeline" / "feeder.jsonl").read_text().splitlines()) == 10
    (tmp_path / "pipeline" / "model").mkdir()
    assert "model" not in [p.part.name for p in load_plan(copy).parts]  # made before


def test_every_kind_has_a_table_and_no_key_of_a_table_is_an_option_too() -> None:
    for name, kind in KINDS.items():
        assert name in PipelineFile.model_fields
        choices: dict[str | None, tuple[str, ...]] = {"kind": ("builtin",), "algorithm": ("grpo",), None: ()}
        command = (*kind.command, *choices[kind.choice])
        options = CommandOptions(command, name)
        own = {*(FeederTable if name == "feeder" else PartTable).model_fields}
        assert not own & set(options.allowed)


def test_runners_end_before_what_they_need_and_kafka_ends_last() -> None:
    order = {name: kind.stop_order for name, kind in KINDS.items()}
    assert order["feeder"] < order["runner"] < min(order["lifecycle"], order["assembler"])
    assert max(order["lifecycle"], order["assembler"]) < order["gateway"]
    assert KINDS["feeder"].stage == FEEDER


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kafka": {"prot": 1}}, r"kafka.prot: there is no such key; did you mean port\? allowed: bootstrap, port"),
        ({"runer": {}}, r"runer: there is no such key; did you mean runner\?"),
        ({"kafka": {"port": 70000}}, "kafka.port: Input should be less than or equal to 65535"),
        ({"gateway": {"count": -1}}, "gateway.count: Input should be greater than or equal to 0"),
        ({"gateway": {"prot": 1}}, r"gateway.prot: `headrace gateway` has no such option; did you mean port\?"),
        ({"gateway": {"bootstrap": "x"}}, "gateway.bootstrap: .*the pipeline gives that itself"),
        ({"runner": {}}, "runner: `headrace runner` needs agent"),
        ({"runner": {"agent": "a.py:b", "concurrency": "many"}}, "Invalid value for .--concurrency.: .*valid integer"),
        ({"runner": {"agent": "a.py:b"}}, "runner.agent: there is no file a.py in "),
        ({"engine": {"kind": "tgi", "model": "m"}}, "engine.kind: 'tgi' is none of builtin, vllm"),
        ({"engine": {"model": "m", "announce": 1}}, "engine.announce: true or false, not 1"),
        ({"feeder": {"tasks": [], "file": "x"}}, "either `file` or `tasks`"),
        ({}, "no part runs here; name at least one of"),
        ({"engine": {"model": "m", "machine": "gpu"}}, "engine.machine: 'gpu' does not reach the local broker"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_what_is_allowed(
    values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=message):
        planned(values, tmp_path)


def test_parts_elsewhere_are_not_started_here_and_their_machine_starts_just_those(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "kafka": {"bootstrap": "kafka.example.com:9092"},
        "engine": [{"model": "m", "machine": "gpu-1"}, {"model": "m", "machine": "gpu-2", "announce": False}],
        "gateway": {"engine": ["http://10.0.0.9:8000", "http://10.0.0.8:8000"]},
    }
    here = planned(values, tmp_path)
    assert [p.part.name for p in here.parts] == ["topics", "gateway"]
    assert here.elsewhere == ("engine@gpu-1", "engine@gpu-2")
    assert words(here, "gateway").count("--engine") == 2
    there = planned(values, tmp_path, machine="gpu-2")
    assert [p.part.name for p in there.parts] == ["engine"]
    assert words(there, "engine")[words(there, "engine").index("--worker-id") + 1] == "gpu-2-engine"
    assert "--no-announce" in words(there, "engine")
    with pytest.raises(PipelineError, match="no part runs on machine 'gpu-3'; the file names gpu-1, gpu-2"):
        planned(values, tmp_path, machine="gpu-3")


def test_what_the_pipeline_gives_is_not_among_the_options() -> None:
    assert not GIVEN & set(CommandOptions(("gateway",), "gateway").allowed)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="headrace up --example"):
        load_plan(tmp_path / "none.toml")
