"""Settings of the OTLP receiver."""

from datetime import timedelta

from pydantic import Field

from headrace.streams.settings import Settings


class OtlpSettings(Settings):
    """The pipeline's settings and the receiver's own, `HEADRACE_OTLP_*` in the environment."""

    otlp_max_body_bytes: int = Field(default=32 * 1024 * 1024, ge=1024)
    """Largest request that is read, as it comes and decompressed; then 413."""
    otlp_max_span_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """Largest record of a span that is taken; a larger span is refused and the rest of its request taken."""
    otlp_max_in_hand_bytes: int = Field(default=256 * 1024 * 1024, ge=1024)
    """Requests that wait for the brokers, decompressed and all together, and those that are being read; then 429."""
    otlp_body_wait: timedelta = timedelta(seconds=30)
    """How long a request may take to come; then 408."""
    otlp_broker_wait: timedelta = timedelta(seconds=8)
    """How long an answer waits for the brokers to acknowledge its spans; then 503. Exporters wait 10 s by default."""
