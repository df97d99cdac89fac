"""What an algorithm publishes, as records. Pure."""

import json
from collections.abc import Mapping
from typing import Any, cast

from headrace.schemas import records as r
from headrace.streams.agent.resources import ENGINES, LLM, PromptTemplate
from headrace.streams.errors import InvalidValueError, SettingsError

Resource = r.LLM | r.ProxyLLM | r.PromptTemplate | r.Weights
Publishable = LLM | PromptTemplate | Resource
_RECORDS = (r.LLM, r.ProxyLLM, r.PromptTemplate, r.Weights)


def resources_of(given: Publishable | Mapping[str, Publishable]) -> dict[str, Resource]:
    """Resources by name; one alone is named by its kind, `prompt_template` or `llm`.

    Raises:
        SettingsError: something that no agent can be given.
    """
    if isinstance(given, Mapping):
        named = cast(Mapping[Any, Any], given)
        if not named:
            raise SettingsError("there are no resources to publish")
        return {str(name): _record(resource) for name, resource in named.items()}
    record = _record(given)
    return {"prompt_template" if isinstance(record, r.PromptTemplate) else "llm": record}


def _record(resource: Any) -> Resource:
    if isinstance(resource, PromptTemplate):
        resource = r.PromptTemplate(template=resource.template, engine=resource.engine)
    elif isinstance(resource, LLM):
        resource = r.LLM(
            endpoint=resource.base_url,
            model=resource.model,
            api_key_env=resource.api_key_env,
            sampling_parameters=json.dumps(dict(resource.sampling_parameters), sort_keys=True),
        )
    if not isinstance(resource, _RECORDS):
        raise SettingsError(f"a {type(resource).__name__} cannot be published: give a PromptTemplate or an LLM")
    if isinstance(resource, r.PromptTemplate) and resource.engine not in ENGINES:
        raise InvalidValueError(f"prompt template engine {resource.engine!r}: choose one of {', '.join(ENGINES)}")
    return resource
