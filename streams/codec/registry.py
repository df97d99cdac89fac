"""Schema ids of a Confluent-compatible registry, for the Confluent framing."""

import json
import time
from typing import Any

from headrace.schemas import catalogue
from headrace.schemas.catalogue import RecordSchema
from headrace.streams.codec.errors import DecodeError
from headrace.streams.errors import HeadraceError, UnavailableError
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPIC_OF_RECORD, TOPICS

COMPATIBILITY = "BACKWARD_TRANSITIVE"
NOT_FOUND = 404
TIMEOUT_SECONDS = 10.0
FORGET_SECONDS = 60.0
"""How long an id that the registry does not know is not asked for again, so that garbage makes no flood of requests."""


class RegistryError(HeadraceError):
    """The registry refused."""


class RegistryUnavailableError(RegistryError, UnavailableError):
    """The registry did not answer."""

    retriable = True


def subject(settings: Settings, record: str) -> str:
    """The subject of a record: TopicNameStrategy, and TopicRecordNameStrategy where a topic carries several records."""
    topic = TOPICS[TOPIC_OF_RECORD[record]]
    full = settings.topic(topic.name)
    return f"{full}-value" if len(topic.records) == 1 else f"{full}-headrace.{record}"


class RegistrySchemas:
    """Looks ids up once each; the registry is asked only when a schema first comes by."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: Any = None
        self._unknown: dict[int, float] = {}

    def register(self, name: str) -> int:
        """Registers the current schema of a record, BACKWARD_TRANSITIVE; the id that it has.

        Raises:
            RegistryError: it is not compatible with an earlier one.
            RegistryUnavailableError: no answer.
        """
        about = subject(self._settings, name)
        self._ask(about, "set_compatibility", about, COMPATIBILITY)
        return self._ask(about, "register_schema", about, self._schema(name))

    def registered(self, name: str) -> int | None:
        """The id of the current schema of a record, if it is registered. Raises as `register`."""
        about = subject(self._settings, name)
        found: Any = self._ask(about, "lookup_schema", about, self._schema(name), missing=None)
        return None if found is None else found.schema_id

    def compatible(self, name: str) -> bool:
        """Whether the current schema of a record may be registered after the versions that are there.

        Raises as `register`.
        """
        about = subject(self._settings, name)
        if not self._ask(about, "get_versions", about, missing=[]):
            return True
        return bool(self._ask(about, "test_compatibility_all_versions", about, self._schema(name)))

    def header(self, name: str) -> bytes:
        """The five bytes before each record of that name; the schema is registered where it is not yet."""
        return b"\x00" + self.register(name).to_bytes(4, "big")

    def schema(self, schema_id: int) -> RecordSchema:
        """The schema of an id.

        Raises:
            DecodeError: `unknown_schema`.
            RegistryUnavailableError: no answer.
        """
        if self._unknown.get(schema_id, 0.0) < time.monotonic():
            found: Any = self._ask(f"schema id {schema_id}", "get_schema", schema_id, missing=None)
            if found is not None:
                return self._of_ours(schema_id, found.schema_str)
            self._unknown = {i: until for i, until in self._unknown.items() if until > time.monotonic()}
            self._unknown[schema_id] = time.monotonic() + FORGET_SECONDS
        raise DecodeError("unknown_schema", f"{self._settings.registry} knows no schema id {schema_id}")

    @staticmethod
    def _of_ours(schema_id: int, text: str) -> RecordSchema:
        name = json.loads(text).get("name")
        if name not in catalogue.current():
            raise DecodeError("unknown_schema", f"schema id {schema_id} is of {name!r}, no record of Headrace")
        return RecordSchema(name, text, catalogue.fingerprint(text), None)

    @staticmethod
    def _schema(name: str) -> Any:
        from confluent_kafka.schema_registry import Schema

        # Apicurio takes a string default of exactly "{}" for an object and refuses the schema (3.3.3).
        return Schema(catalogue.current()[name].text.replace('"default": "{}"', '"default": "{ }"'), "AVRO")

    def _ask(self, about: str, method: str, *arguments: Any, **missing: Any) -> Any:
        """What the client's method answers; `missing`, if given, where it knows nothing of it."""
        from confluent_kafka.schema_registry import SchemaRegistryClient
        from confluent_kafka.schema_registry.common._httpx_compat import httpx  # the one of two that it uses
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        where = self._settings.registry
        try:
            if self._client is None:
                self._client = SchemaRegistryClient({"url": where, "timeout": TIMEOUT_SECONDS})
            return getattr(self._client, method)(*arguments)
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND and "missing" in missing:
                return missing["missing"]
            if error.http_status_code >= 500:
                raise RegistryUnavailableError(f"registry {where}, {about}: {error.error_message}") from error
            raise RegistryError(f"registry {where}, {about}: {error.error_message}") from error
        except (OSError, httpx.HTTPError) as error:
            raise RegistryUnavailableError(
                f"registry {where} does not answer ({error}); start it, or unset HEADRACE_REGISTRY to write "
                "single-object encoding"
            ) from error
        except ValueError as error:
            raise RegistryError(f"registry {where}: {error}") from error
