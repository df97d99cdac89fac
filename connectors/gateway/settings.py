"""Settings of the gateway."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from headrace.connectors.gateway.providers.settings import Provider, check_names
from headrace.streams.settings import Settings


class GatewaySettings(Settings):
    """The pipeline's settings and the gateway's own, `HEADRACE_GATEWAY_*` in the environment."""

    gateway_engine_wait: timedelta = timedelta(seconds=60)
    """How long a call waits for an engine that is starting or away; then 503."""
    gateway_engine_timeout: timedelta = timedelta(seconds=600)
    """How long an engine may take for an answer; then 504."""
    gateway_broker_wait: timedelta = timedelta(seconds=60)
    """How long an answer waits for the brokers to acknowledge its span; then 503."""
    gateway_max_body_bytes: int = Field(default=8 * 1024 * 1024, ge=1024)
    """Largest request that is read; then 413."""
    gateway_keys: Path | None = None
    """File of the keys that let calls in; without one nobody is asked for a key, and only 127.0.0.1 is served."""
    gateway_external_key: Literal["trace", "session"] = "trace"
    """What makes a rollout of outside traffic that names none: its trace, or the session of its header."""
    gateway_session_header: str | None = None
    """Header that names the session, beside `x-session-id` and `x-headrace-session`."""
    gateway_external_sample: float = Field(default=1.0, ge=0, le=1)
    """The part of outside rollouts that is recorded, by a hash of their id; the others are answered and forgotten."""
    gateway_redact: str | None = None
    """MODULE:FUNCTION that takes each span before it is written, and returns what may be written of it."""
    gateway_spool: Path | None = None
    """File for spans of outside traffic while brokers are away; their calls are answered then, instead of waiting."""
    gateway_spool_bytes: int = Field(default=1024 * 1024 * 1024, ge=1024)
    """Limit of that file; above it 503."""
    gateway_spool_after: timedelta = timedelta(seconds=1)
    """How long such a span waits for the brokers before it is spooled."""
    gateway_feedback_wait: timedelta = timedelta(seconds=3)
    """How long feedback waits for the view to know what it is about; then 404."""
    gateway_feedback_arrival: timedelta = timedelta(seconds=60)
    """For so long after it was asked for first, an unknown target may still be arriving: 404 with Retry-After."""
    gateway_history_bytes: int = Field(default=64 * 1024 * 1024, ge=0)
    """Conversations that are kept in memory for `previous_response_id` of the Responses API; 0 keeps none."""
    gateway_token_in: bool = False
    """Whether a turn goes on from the ids of the turn before, exactly, instead of a new rendering of all messages."""
    gateway_token_in_bytes: int = Field(default=64 * 1024 * 1024, ge=0)
    """Turns that are kept in memory for that."""
    gateway_providers: dict[str, Provider] = Field(default_factory=dict[str, Provider])
    """Names of models, or prefixes that end with `*`, and the provider that LiteLLM calls for them."""

    @field_validator("gateway_providers", mode="after")
    @classmethod
    def _names_fit(cls, value: Mapping[str, Provider]) -> Mapping[str, Provider]:
        check_names(value)
        return value
