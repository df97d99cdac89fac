"""Random records of every type."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st

from headrace.schemas.records import Record
from tests.schemas.strategies import records_of


@pytest.fixture(scope="session")
def records() -> Callable[[str], st.SearchStrategy[Record]]:
    """Records of a name."""
    return records_of
