"""Fixtures of the whole suite: one real broker a session, and settings with topics of their own for each test."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from headrace.streams.kafka.admin import create_topics
from headrace.streams.settings import Settings, load_settings

# Examples of a busy machine take as long as they take.
hypothesis.settings.register_profile("busy", deadline=None)
hypothesis.settings.load_profile("busy")

COMMAND = str(Path(sys.executable).parent / "headrace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", choices=["alone", "beside"], help="only tests marked `alone`, or only those that may run side by side"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    part = config.getoption("--part")
    if part is None:
        return
    chosen = [item for item in items if (item.get_closest_marker("alone") is not None) == (part == "alone")]
    config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
    items[:] = chosen


@dataclass(frozen=True)
class Kafka:
    """The broker of the session."""

    bootstrap: str
    pid: int


@pytest.fixture(scope="session", autouse=True)
def claims(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Large values go to a folder of the session, of commands that it starts too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADRACE_CLAIM_CHECK", str(tmp_path_factory.mktemp("claims")))
        yield


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A broker, started once; `HEADRACE_TEST_BOOTSTRAP` names one that runs already."""
    given = os.environ.get("HEADRACE_TEST_BOOTSTRAP")
    if given:
        yield Kafka(given, 0)
        return
    data = tmp_path_factory.mktemp("kafka") / "data"
    process = subprocess.Popen(
        [COMMAND, "broker", "--port", "0", "--data", str(data)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the broker did not start; its log is on stderr"
        ready = json.loads(line)
        yield Kafka(ready["bootstrap"], ready["pid"])
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def make_settings(kafka: Kafka) -> Callable[..., Settings]:
    """Settings with a prefix of their own and few partitions; the topics are made."""

    def make(**changes: Any) -> Settings:
        values: dict[str, Any] = {"prefix": f"t{uuid.uuid4().hex[:8]}", "partitions": 3, **changes}
        settings = load_settings(bootstrap=kafka.bootstrap, **values)
        create_topics(settings)
        return settings

    return make


@pytest.fixture
def settings(make_settings: Callable[..., Settings]) -> Settings:
    """Settings of one test."""
    return make_settings()
