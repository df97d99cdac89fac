"""One settings object: defaults < `headrace.toml` < environment `HEADRACE_*` < flags."""

from datetime import timedelta
from difflib import get_close_matches
from os import environ
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any, TypeVar

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from pydantic_settings import SettingsError as SourceError

from headrace.streams.errors import SettingsError

FILE = "headrace.toml"
ENVIRONMENT = "HEADRACE_"
NEARLY = 0.85  # of difflib's ratio: a letter or two of a name
PART_PREFIXES = ("gateway_", "otlp_")  # of settings that one part alone knows


def _default_claims() -> str:
    from platformdirs import user_data_path

    return str(user_data_path("headrace") / "claims")


class Settings(BaseSettings):
    """What a process needs to join a pipeline, and the contracts of its topics."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT, env_nested_delimiter="__", toml_file=FILE, extra="ignore", frozen=True
    )

    bootstrap: str = "127.0.0.1:9092"
    """Kafka's bootstrap servers, `host:port[,host:port]`."""
    registry: str | None = None
    """URL of a Confluent-compatible schema registry; records are then written in Confluent framing."""
    prefix: str = "headrace"
    """First part of every topic and group name."""
    gateway: str | None = None
    """URL of the gateway; found through the workers topic where it is not given."""
    view: str | None = None
    """SQL database of the view, as a URL; where it is given, `rollouts` and `traces` ask it instead of the topics."""
    kafka: dict[str, Any] = Field(default_factory=dict)
    """Any librdkafka property, for every client (SASL, TLS, ...)."""

    partitions: int = Field(default=12, ge=1, le=10_000)
    """Of each co-partitioned topic; fixed for a version of the topics."""
    replication_factor: int = Field(default=1, ge=1)
    max_message_bytes: int = Field(default=16 * 1024 * 1024, ge=1024)
    """Limit of a value: of topic, producer and consumer. Larger ones go by claim-check."""
    claim_check: str = Field(default_factory=_default_claims)
    """Where values above the limit are written: an fsspec URL or a folder that all processes reach; `off` for none."""
    claim_check_former: list[str] = Field(default_factory=list[str])
    """Stores that are read, but not written any more."""
    max_claim_bytes: int = Field(default=1024 * 1024 * 1024, ge=1024)
    """Limit of a value in a store."""
    feedback_window: timedelta = timedelta(days=7)
    """How long after a rollout's end a reward may come."""
    max_open: timedelta = timedelta(hours=24)
    """How long a rollout may be open."""
    replay_window: timedelta = timedelta(days=30)
    """How long triplets are kept for replay."""
    view_retention: timedelta | None = None
    """Rollouts that ended so long ago leave the view, with all of their rows; none do where it is not set."""

    group_protocol: str = Field(default="consumer", pattern="^(consumer|classic)$")
    """`consumer` is KIP-848, `classic` the protocol before."""
    session_timeout: timedelta = timedelta(seconds=6)
    """A consumer that is silent for so long has left its group."""
    transaction_timeout: timedelta = timedelta(seconds=5)
    """A killed transactional producer stalls readers for so long."""
    heartbeat: timedelta = timedelta(seconds=10)
    """Between two signs of life of a worker or an attempt: a third of the lease."""
    lease: timedelta = timedelta(seconds=30)
    """An attempt whose worker gives no sign of life for so long is lost."""
    max_deliveries: int = Field(default=5, ge=1)
    """A task whose deliveries were lost so often, by lease or with their process, fails and is a dead letter."""
    settle: timedelta = timedelta(seconds=5)
    """How long an attempt without a `complete` end is waited for."""
    session_idle: timedelta = timedelta(seconds=600)
    """An external rollout without a root span ends when nothing came of it for so long."""

    @property
    def retention(self) -> timedelta:
        """R: how long records of rollouts are kept."""
        return self.feedback_window + self.max_open + timedelta(days=1)

    def topic(self, name: str) -> str:
        """The full name of a topic of the catalogue."""
        return f"{self.prefix}.{name}.v1"

    def group(self, name: str) -> str:
        """The full name of a consumer group."""
        return f"{self.prefix}.{name}"

    @field_validator("*", mode="before")
    @classmethod
    def _number_of_seconds(cls, value: Any, info: ValidationInfo) -> Any:
        annotation: Any = cls.model_fields[info.field_name or ""].annotation
        if annotation not in (timedelta, timedelta | None) or not isinstance(value, str):
            return value
        try:
            return float(value)
        except ValueError:
            return value  # ISO 8601 or HH:MM:SS

    @field_validator("*", mode="after")
    @classmethod
    def _positive(cls, value: Any) -> Any:
        if isinstance(value, timedelta) and value <= timedelta():
            raise ValueError("must be positive: a number of seconds, or HH:MM:SS")
        return value

    @model_validator(mode="after")
    def _prefix_is_a_topic_name(self) -> "Settings":
        if not self.prefix or not all(c.isascii() and (c.isalnum() or c in "._-") for c in self.prefix):
            raise ValueError(f"prefix {self.prefix!r}: use letters, digits, '.', '_' and '-' as Kafka's topic names do")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags, then environment, then the file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, Path(FILE))


S = TypeVar("S", bound=Settings)


def _refuse_unknown(settings_type: type[Settings]) -> None:
    """A misspelt name would be ignored, and the command work on the wrong cluster.

    In the environment others may have names of their own that begin with `HEADRACE_`, so only what is nearly the name
    of a setting is refused there.
    """
    known = {*settings_type.model_fields, *Settings.model_fields}
    for name in TomlConfigSettingsSource(settings_type, Path(FILE))():
        if name in known or name.startswith(PART_PREFIXES):
            continue
        near = get_close_matches(name, known, 1)
        raise SettingsError(f"{FILE} has no setting {name!r}" + (f"; did you mean {near[0]}?" if near else ""))
    for variable in environ:
        name = variable.lower().removeprefix(ENVIRONMENT.lower()).partition("__")[0]
        if not variable.upper().startswith(ENVIRONMENT) or name in known or name.startswith(PART_PREFIXES):
            continue
        if near := get_close_matches(name, known, 1, NEARLY):
            raise SettingsError(f"{variable} is no setting; did you mean {ENVIRONMENT}{near[0].upper()}?")


def load_settings(**flags: Any) -> Settings:
    """The settings of this process; a flag that is `None` was not given.

    Raises:
        SettingsError: names each setting that makes no sense, and where it may be set.
    """
    return load_settings_as(Settings, **flags)


def load_settings_as(settings_type: type[S], **flags: Any) -> S:
    """As `load_settings`, for a part that has settings of its own beside the pipeline's.

    Raises:
        SettingsError: as `load_settings`.
    """
    try:
        _refuse_unknown(settings_type)
        return settings_type(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors()]
        raise SettingsError(f"settings ({FILE}, HEADRACE_*, flags): " + "; ".join(lines)) from error
    except SourceError as error:
        raise SettingsError(f"HEADRACE_*: {error}: what is not text must be JSON") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{Path(FILE).resolve()} is no UTF-8: {error}") from error
    except TOMLDecodeError as error:
        raise SettingsError(f"{Path(FILE).resolve()} is no TOML: {error}") from error
