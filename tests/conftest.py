"""Fixtures of the whole suite: one real broker a session, and settings with topics of their own for each test."""

import os
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from headrace.streams.kafka.admin import create_topics
from headrace.streams.settings import Settings, load_settings
from tests.processes import put_away, ready, start

# Examples of a busy machine take as long as they take. The suite tries the same examples each time; what looks for
# new ones is `pytest --hypothesis-profile search`.
hypothesis.settings.register_profile("suite", deadline=None, derandomize=True, database=None)
hypothesis.settings.register_profile("search", deadline=None, derandomize=False, max_examples=2000)
hypothesis.settings.load_profile("suite")

SECONDS = {"slow": 12.0, "kafka": 2.0}
"""What a test of a marker may take: the longest files start first, so that no worker ends long after the others."""


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
    if part == "beside":
        seconds = Counter[Path]()
        for item in chosen:
            seconds[item.path] += next((s for name, s in SECONDS.items() if item.get_closest_marker(name)), 0.1)
        chosen.sort(key=lambda item: -seconds[item.path])
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
    process = start("broker", "--port", "0", "--data", str(data))
    line = ready(process)
    try:
        yield Kafka(line["bootstrap"], line["pid"])
    finally:
        put_away(process)  # nobody reads its data again, and a clean end of a thousand topics takes time
        with suppress(ProcessLookupError):
            os.kill(line["pid"], signal.SIGKILL)


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
