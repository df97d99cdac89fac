"""Which names of models go to which provider."""

from collections.abc import Mapping
from typing import Any

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


def find_provider(providers: Mapping[str, Provider], model: str | None) -> tuple[Provider, str] | None:
    """The provider of a model and LiteLLM's name for it: the entry of that name, else the longest prefix."""
    if model is None or not providers:
        return None
    if (exact := providers.get(model)) is not None and not model.endswith(WILDCARD):
        return exact, exact.model
    prefixes = [name for name in providers if name.endswith(WILDCARD) and model.startswith(name[:-1])]
    if not prefixes:
        return None
    name = max(prefixes, key=len)
    provider = providers[name]
    rest = model[len(name) - 1 :]
    return provider, provider.model[:-1] + rest if provider.model.endswith(WILDCARD) else provider.model
