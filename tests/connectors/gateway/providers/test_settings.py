"""Which models go to a provider, and what LiteLLM is asked."""

from pathlib import Path
from typing import Any

import pytest

from headrace.connectors.gateway.errors import CallError
from headrace.connectors.gateway.providers.calls import arguments, call_error, check_provider
from headrace.connectors.gateway.providers.settings import Provider, Target, find_provider
from headrace.connectors.gateway.settings import GatewaySettings
from headrace.streams.errors import SettingsError
from headrace.streams.settings import load_settings_as

PROVIDERS = {
    "judge": Provider(model="openai/gpt-5"),
    "anthropic/*": Provider(model="anthropic/*"),
    "anthropic/old-*": Provider(model="bedrock/old-*"),
    "any-*": Provider(model="openai/one"),
}


@pytest.mark.parametrize(
    ("asked", "called"),
    [
        ("judge", "openai/gpt-5"),
        ("anthropic/claude-5", "anthropic/claude-5"),
        ("anthropic/old-3", "bedrock/old-3"),
        ("any-thing", "openai/one"),
        ("policy", None),
        ("judge2", None),
        ("any-*", "openai/one"),
        (None, None),
    ],
)
def test_a_name_or_the_longest_prefix(asked: str | None, called: str | None) -> None:
    found = find_provider(PROVIDERS, asked)
    assert (found.model if found else None) == called


def test_an_agent_chooses_no_url_no_key_and_no_callback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    provider = Provider(model="openai/gpt-5", api_base="http://here", api_key_env="MY_KEY", parameters={"seed": 1})
    body = {
        "model": "judge",
        "messages": [],
        "temperature": 0.5,
        "seed": 7,
        "api_base": "http://elsewhere",
        "base_url": "http://elsewhere",
        "api_key": "theirs",
        "extra_headers": {"a": "b"},
        "mock_response": "x",
        "fallbacks": ["x"],
        "timeout": 1,
        "metadata": {},
    }
    assert arguments(Target(provider, "openai/gpt-5"), body, 60) == {
        "model": "openai/gpt-5",
        "messages": [],
        "temperature": 0.5,
        "seed": 1,
        "api_base": "http://here",
        "api_key": "secret",
        "timeout": 60,
        "num_retries": 2,
    }


def test_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("headrace.toml").write_text(
        '[gateway_providers.judge]\nmodel = "openai/gpt-5"\napi_key_env = "KEY"\nparameters = { drop_params = true }\n'
    )
    (name, provider), *others = load_settings_as(GatewaySettings).gateway_providers.items()
    assert (name, provider.model, provider.parameters, others) == ("judge", "openai/gpt-5", {"drop_params": True}, [])


@pytest.mark.parametrize(
    "providers",
    [
        {"a*b": {"model": "m"}},
        {"a": {"model": "m*"}},
        {"a*": {"model": "m*n"}},
        {"a": {"model": "m", "api_key": "secret"}},
        {"a": {"model": ""}},
    ],
)
def test_what_makes_no_sense_is_refused(providers: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="gateway_providers"):
        load_settings_as(GatewaySettings, gateway_providers=providers)


def test_a_key_that_is_missing_is_said_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(SettingsError, match="NO_SUCH_KEY"):
        check_provider("judge", Provider(model="openai/gpt-5", api_key_env="NO_SUCH_KEY"))


class Failure(Exception):
    def __init__(self, message: str, status: Any) -> None:
        super().__init__(message)
        self.status_code = status


@pytest.mark.parametrize(
    ("status", "answered", "code"),
    [
        (429, 429, "provider_error"),
        (401, 401, "provider_error"),
        (408, 504, "engine_timeout"),
        (None, 502, "provider_error"),
        (200, 502, "provider_error"),
        ("x", 502, "provider_error"),
    ],
)
def test_errors_keep_their_status_and_no_key(status: Any, answered: int, code: str) -> None:
    error = call_error(Failure("wrong key secret", status), "secret")
    assert isinstance(error, CallError)
    assert (error.status, error.code, str(error)) == (answered, code, "wrong key ***")
