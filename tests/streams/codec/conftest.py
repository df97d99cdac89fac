"""A real registry, started once where a test asks for it."""

import os
from collections.abc import Iterator

import pytest

from tests.processes import put_away, ready, start


@pytest.fixture(scope="session")
def registry() -> Iterator[str]:
    """The URL of its Confluent API; `HEADRACE_TEST_REGISTRY` names one that runs already."""
    given = os.environ.get("HEADRACE_TEST_REGISTRY")
    if given:
        yield given
        return
    process = start("broker", "--registry")
    try:
        yield ready(process)["registry"]
        process.terminate()
        process.wait(90)
    finally:
        put_away(process)
