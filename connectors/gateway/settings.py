"""Settings of the gateway."""

from datetime import timedelta

from pydantic import Field

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
