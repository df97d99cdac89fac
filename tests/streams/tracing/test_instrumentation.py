"""Which package instruments what, and what is said where it is not there."""

import logging
from importlib.util import find_spec

import pytest

from headrace.streams.counts import Counts
from headrace.streams.tracing.agentops import AgentOpsTracing, TracerError
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


def test_agentops_is_named_where_it_is_not_installed() -> None:
    if find_spec("agentops") is not None:
        pytest.skip("it is installed")
    with pytest.raises(TracerError, match=r"pip install 'headrace\[agentops\]'"):
        AgentOpsTracing(Counts()).install()
