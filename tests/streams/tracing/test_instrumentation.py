"""Which package instruments what, and what is said where it is not there."""

import logging

import pytest

from headrace.streams.tracing.instrumentation import InstrumentationError, instrument
from headrace.streams.tracing.names import names_of


def test_names() -> None:
    assert names_of(None) == ()
    assert names_of(" openai, langchain,,openai") == ("openai", "langchain")


def test_what_is_not_installed_is_named() -> None:
    with pytest.raises(InstrumentationError, match="pip install openinference-instrumentation-smolagents"):
        instrument(["smolagents"])


def test_what_is_not_known_names_what_is() -> None:
    with pytest.raises(InstrumentationError, match=r"none of openai, anthropic, litellm.*entry point 'opnai'"):
        instrument(["opnai"])


def test_what_needs_none_says_why(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert instrument(["vllm"]) == []
    assert "vllm needs no instrumentation: the gateway asks" in caplog.text
