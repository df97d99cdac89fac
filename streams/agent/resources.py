"""Resources as an agent gets them: the model with its URL for this rollout, prompt templates, and all by name."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from headrace.streams.agent.errors import ResourceError

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

ENGINES = ("f-string", "jinja", "poml")


@dataclass(frozen=True, slots=True)
class LLM:
    """A model behind an OpenAI-compatible URL.

    Attributes:
        base_url: for this rollout and attempt where the model stands behind the gateway.
        model: what to send as `model`; the policy's name where it is trained.
        sampling_parameters: what the publisher wants calls to be made with.
        api_key_env: the environment variable that holds the key.
    """

    base_url: str
    model: str
    sampling_parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    api_key_env: str | None = None

    @property
    def endpoint(self) -> str:
        """`base_url`, under Agent Lightning's name."""
        return self.base_url

    @property
    def api_key(self) -> str | None:
        """The key.

        Raises:
            ResourceError: the environment variable is not set.
        """
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env)
        if key is None:
            raise ResourceError(f"the key of {self.base_url} stands in {self.api_key_env}, which is not set here")
        return key

    @overload
    def client(self, *, sync: Literal[False]) -> "AsyncOpenAI": ...
    @overload
    def client(self, *, sync: Literal[True]) -> "OpenAI": ...
    @overload
    def client(self) -> "Any": ...
    def client(self, *, sync: bool | None = None) -> "AsyncOpenAI | OpenAI":
        """A client of the `openai` package at this URL, on connections that all rollouts of the process share.

        On an event loop (an async agent) it is an AsyncOpenAI, in a thread (a sync agent) an OpenAI; `sync` chooses.
        """
        from headrace.streams.agent.clients import async_client, sync_client

        if sync is None:
            sync = not _on_a_loop()
        return sync_client(self.base_url, self.api_key) if sync else async_client(self.base_url, self.api_key)


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt that is tuned.

    Attributes:
        engine: `f-string` (Python's str.format), `jinja` or `poml`.
    """

    template: str
    engine: str = "f-string"

    def format(self, **values: Any) -> str:
        """The prompt with its variables filled in.

        Raises:
            ResourceError: the engine is unknown or not installed, a variable is missing, or one cannot be used so.
        """
        if self.engine == "f-string":
            try:
                return self.template.format(**values)
            except (KeyError, IndexError) as error:
                raise ResourceError(f"the prompt template needs {error}; format(...) got {sorted(values)}") from error
            except (AttributeError, TypeError, ValueError) as error:
                raise ResourceError(f"the prompt template cannot be filled in: {error}") from error
        if self.engine == "jinja":
            return _jinja(self.template, values)
        if self.engine == "poml":
            return _poml(self.template, values)
        raise ResourceError(f"prompt template engine {self.engine!r} is none of {', '.join(ENGINES)}")


def _jinja(template: str, values: dict[str, Any]) -> str:
    import jinja2
    import jinja2.sandbox

    try:
        # A template comes from the log, written by whatever tunes it: it fills in text and runs nothing.
        environment = jinja2.sandbox.SandboxedEnvironment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        return environment.from_string(template).render(**values)
    except jinja2.TemplateError as error:
        raise ResourceError(f"the jinja template cannot be filled in: {error}") from error


def _poml(template: str, values: dict[str, Any]) -> str:
    try:
        import poml
    except ImportError as error:
        raise ResourceError("this prompt template is POML: pip install poml") from error
    try:
        rendered = cast(Any, poml).poml(template, context=values, chat=False)
    except RuntimeError as error:  # its renderer has written to stderr why
        raise ResourceError(f"the POML template cannot be filled in: {error}") from error
    return _text(rendered)


def _text(rendered: Any) -> str:
    """POML gives text, or messages whose contents are texts or parts."""
    if isinstance(rendered, str):
        return rendered
    if isinstance(rendered, dict):
        return _text(cast(dict[str, Any], rendered).get("content", ""))
    return "\n\n".join(map(_text, cast(list[Any], rendered)))


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


Resource = LLM | PromptTemplate


class Resources(Mapping[str, Resource]):
    """The resources of a rollout by name. Models behind the gateway carry this rollout's URL."""

    def __init__(self, named: Mapping[str, Resource], resources_id: str | None = None) -> None:
        self._named = dict(named)
        self.resources_id = resources_id

    def __getitem__(self, name: str) -> Resource:
        try:
            return self._named[name]
        except KeyError:
            raise ResourceError(f"no resource {name!r}; there are {sorted(self._named) or 'none'}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __contains__(self, name: object) -> bool:
        return name in self._named

    def get(self, name: str, default: Any = None) -> Any:
        """The resource of a name, or the default."""
        return self._named.get(name, default)

    @property
    def llm(self) -> LLM:
        """The first model.

        Raises:
            ResourceError: there is none.
        """
        return self._first(LLM)

    @property
    def prompt_template(self) -> PromptTemplate:
        """The first prompt template.

        Raises:
            ResourceError: there is none.
        """
        return self._first(PromptTemplate)

    def _first(self, kind: Any) -> Any:
        for resource in self._named.values():
            if isinstance(resource, kind):
                return resource
        where = f"publication {self.resources_id}" if self.resources_id else "the resources topic, which is empty"
        raise ResourceError(f"the agent asks for a {kind.__name__}, but there is none in {where}")
