"""Which names of models go to which provider."""

from collections.abc import Mapping
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

WILDCARD = "*"


class Provider(BaseModel):
    """One entry of `gateway_providers`; its name there is the name that agents call, or a prefix that ends with `*`.

    Keys stand in the environment, never here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field(min_length=1)
    """LiteLLM's name, such as `anthropic/claude-sonnet-5`; a `*` at its end is what the `*` of the name stood for."""
    api_base: str | None = None
    """URL of the provider, where it is not LiteLLM's own for it."""
    api_key_env: str | None = None
    """Variable that holds the key; without it LiteLLM looks for the one that it knows, such as OPENAI_API_KEY."""
    retries: int = Field(default=2, ge=0, le=20)
    """LiteLLM's `num_retries`."""
    timeout_seconds: float | None = Field(default=None, gt=0)
    """LiteLLM's `timeout`; `gateway_engine_timeout` where it is not given."""
    parameters: dict[str, Any] = Field(default_factory=dict[str, Any])
    """More arguments of LiteLLM's `acompletion`, such as `drop_params`; they win over the agent's."""

    @model_validator(mode="after")
    def _wildcard_at_the_end(self) -> "Provider":
        if WILDCARD in self.model[:-1]:
            raise ValueError(f"model {self.model!r}: {WILDCARD} may stand at the end only")
        return self


def check_names(providers: Mapping[str, Provider]) -> None:
    """Raises ValueError where a name and its model do not fit each other."""
    for name, provider in providers.items():
        if not name or WILDCARD in name[:-1]:
            raise ValueError(f"{name!r} is no name of a model: {WILDCARD} may stand at the end only")
        if provider.model.endswith(WILDCARD) and not name.endswith(WILDCARD):
            raise ValueError(f"{name!r} stands for one model, so {provider.model!r} cannot end with {WILDCARD}")


class Target(msgspec.Struct, frozen=True):
    """Where the calls of one model go; `model` is LiteLLM's name for it."""

    provider: Provider
    model: str

    @property
    def provider_name(self) -> str:
        """LiteLLM's name of the provider."""
        name, slash, _ = self.model.partition("/")
        return name if slash else "litellm"


def find_provider(providers: Mapping[str, Provider], model: str | None) -> Target | None:
    """The provider of a model: the entry of that name, else of the longest prefix."""
    if model is None or not providers:
        return None
    if (exact := providers.get(model)) is not None and not model.endswith(WILDCARD):
        return Target(exact, exact.model)
    prefixes = [name for name in providers if name.endswith(WILDCARD) and model.startswith(name[:-1])]
    if not prefixes:
        return None
    name = max(prefixes, key=len)
    provider = providers[name]
    rest = model[len(name) - 1 :]
    return Target(provider, provider.model[:-1] + rest if provider.model.endswith(WILDCARD) else provider.model)
