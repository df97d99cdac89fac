"""Instrumentation of agents' libraries by the packages of others, each by a short name.

OpenInference's come first: they record whole requests and answers, token ids among them, and are kept up by Arize;
else those of OpenTelemetry's own repository and of OpenLLMetry (Traceloop) where they are installed.
"""

import importlib
import logging
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from headrace.streams.errors import HeadraceError

log = logging.getLogger(__name__)

GROUP = "opentelemetry_instrumentor"
ALL = "all"


class Instrumentor(NamedTuple):
    """A class of a package."""

    package: str
    module: str
    name: str


def _openinference(library: str, name: str) -> Instrumentor:
    return Instrumentor(
        f"openinference-instrumentation-{library}",
        f"openinference.instrumentation.{library.replace('-', '_')}",
        name,
    )


def _traceloop(library: str, name: str) -> Instrumentor:
    return Instrumentor(
        f"opentelemetry-instrumentation-{library}",
        f"opentelemetry.instrumentation.{library.replace('-', '_')}",
        name,
    )


KNOWN: dict[str, tuple[Instrumentor, ...]] = {
    "openai": (
        _openinference("openai", "OpenAIInstrumentor"),
        Instrumentor(
            "opentelemetry-instrumentation-openai-v2",
            "opentelemetry.instrumentation.openai_v2",
            "OpenAIInstrumentor",
        ),
        _traceloop("openai", "OpenAIInstrumentor"),
    ),
    "anthropic": (
        _openinference("anthropic", "AnthropicInstrumentor"),
        _traceloop("anthropic", "AnthropicInstrumentor"),
    ),
    "litellm": (_openinference("litellm", "LiteLLMInstrumentor"),),
    "langchain": (
        _openinference("langchain", "LangChainInstrumentor"),
        _traceloop("langchain", "LangchainInstrumentor"),
    ),
    "openai-agents": (
        _openinference("openai-agents", "OpenAIAgentsInstrumentor"),
        _traceloop("openai-agents", "OpenAIAgentsInstrumentor"),
    ),
    "crewai": (_openinference("crewai", "CrewAIInstrumentor"), _traceloop("crewai", "CrewAIInstrumentor")),
    "autogen": (_openinference("autogen-agentchat", "AutogenAgentChatInstrumentor"),),
    "llama-index": (_openinference("llama-index", "LlamaIndexInstrumentor"),),
    "dspy": (_openinference("dspy", "DSPyInstrumentor"),),
    "smolagents": (_openinference("smolagents", "SmolagentsInstrumentor"),),
    "agno": (_openinference("agno", "AgnoInstrumentor"),),
    "mcp": (_openinference("mcp", "MCPInstrumentor"),),
    "httpx": (_traceloop("httpx", "HTTPXClientInstrumentor"),),
    "threading": (_traceloop("threading", "ThreadingInstrumentor"),),
}
NOTHING_TO_DO = {
    "vllm": "the gateway asks vLLM for token ids and log-probabilities in each call",
    "pydantic-ai": "call pydantic_ai.Agent.instrument_all() in the agent's module; it writes OpenTelemetry by itself",
}


class InstrumentationError(HeadraceError):
    """A library cannot be instrumented; the message names what to install."""


def instrument(names: Iterable[str]) -> list[str]:
    """Instruments libraries of this process; gives the packages that do it.

    Args:
        names: those of `KNOWN`, `all` for whatever of them is installed, or of any package that has an entry point in
            the group `opentelemetry_instrumentor`.

    Raises:
        InstrumentationError: one is not known, not installed, or does not go with the library that is installed.
    """
    used: list[str] = []
    for name in names:
        if name == ALL:
            used += _all_installed()
        elif name in NOTHING_TO_DO:
            log.info("%s needs no instrumentation: %s", name, NOTHING_TO_DO[name])
        elif name in KNOWN:
            used.append(_first_installed(name, KNOWN[name]))
        else:
            used.append(_by_entry_point(name))
    return used


def _all_installed() -> Iterator[str]:
    for name, choices in KNOWN.items():
        found = _load(choices)
        if found is not None:
            try:
                yield _switch_on(name, *found)
            except InstrumentationError as error:  # its library is not there, which was not asked for by name
                log.info("%s", error)


def _first_installed(name: str, choices: tuple[Instrumentor, ...]) -> str:
    found = _load(choices)
    if found is None:
        others = "".join(f", or {choice.package}" for choice in choices[1:])
        raise InstrumentationError(f"--instrument {name}: pip install {choices[0].package}{others}")
    return _switch_on(name, *found)


def _load(choices: tuple[Instrumentor, ...]) -> tuple[str, Any] | None:
    for choice in choices:
        try:
            return choice.package, getattr(importlib.import_module(choice.module), choice.name)
        except ModuleNotFoundError as error:
            if error.name is None or not (choice.module + ".").startswith(error.name + "."):
                # It is installed, but the library that it instruments, or what it needs itself, is not.
                log.info("%s cannot be imported: %s", choice.package, error)
    return None


def _by_entry_point(name: str) -> str:
    found: EntryPoint | None = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        known = ", ".join([*KNOWN, *NOTHING_TO_DO, ALL])
        raise InstrumentationError(
            f"--instrument {name}: none of {known}, and no installed package has an entry point {name!r} in {GROUP}"
        )
    package = found.dist.name if found.dist is not None else found.module
    return _switch_on(name, package, found.load())


def _switch_on(name: str, package: str, kind: Any) -> str:
    instrumentor = kind()
    instrumentor.instrument()
    # It only logs that its library is missing, or of a version that it does not know.
    if not getattr(instrumentor, "is_instrumented_by_opentelemetry", True):
        raise InstrumentationError(
            f"--instrument {name}: {package} finds no library that it can instrument; "
            f"install {name}, in a version that `pip show {package}` goes with"
        )
    log.info("%s is instrumented by %s", name, package)
    return package
