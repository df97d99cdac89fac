"""Schema ids of a Confluent-compatible registry, for the Confluent framing."""

import json
from typing import Any

from headrace.schemas import catalogue
from headrace.schemas.catalogue import RecordSchema
from headrace.streams.codec.errors import DecodeError
from headrace.streams.errors import HeadraceError
from headrace.streams.settings import Settings
from headrace.streams.topics import TOPIC_OF_RECORD

NOT_FOUND = (404, 40403)


class RegistryError(HeadraceError):
    """The registry refused or did not answer."""


def subject(settings: Settings, record: str) -> str:
    """The subject of a record: TopicNameStrategy, with the record's name where a topic carries several."""
    topic = settings.topic(TOPIC_OF_RECORD[record])
    return f"{topic}-{record}-value" if record in ("RunManifest",) else f"{topic}-value"


class RegistrySchemas:
    """Looks ids up once each."""

    def __init__(self, settings: Settings) -> None:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        self._settings = settings
        self._client: Any = SchemaRegistryClient({"url": settings.registry})

    def register(self, name: str) -> int:
        """Registers the current schema of a record, BACKWARD_TRANSITIVE; the id that it has.

        Raises:
            RegistryError: it is not compatible with an earlier one, or the registry is away.
        """
        from confluent_kafka.schema_registry import Schema
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        about = subject(self._settings, name)
        try:
            self._client.set_compatibility(about, "BACKWARD_TRANSITIVE")
            return self._client.register_schema(about, Schema(catalogue.current()[name].text, "AVRO"))
        except SchemaRegistryError as error:
            raise RegistryError(f"{about}: {error.error_message}") from error
        except OSError as error:
            raise RegistryError(f"registry {self._settings.registry}: {error}") from error

    def compatible(self, name: str) -> bool:
        """Whether the current schema of a record may be registered after the versions that are there."""
        from confluent_kafka.schema_registry import Schema
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return bool(
                self._client.test_compatibility_all_versions(
                    subject(self._settings, name), Schema(catalogue.current()[name].text, "AVRO")
                )
            )
        except SchemaRegistryError as error:
            if error.http_status_code == NOT_FOUND[0]:
                return True  # nothing is there to be incompatible with
            raise RegistryError(f"{subject(self._settings, name)}: {error.error_message}") from error

    def header(self, name: str) -> bytes:
        """The five bytes before each record of that name; the schema is registered where it is not yet."""
        return b"\x00" + self.register(name).to_bytes(4, "big")

    def schema(self, schema_id: int) -> RecordSchema:
        """The schema of an id.

        Raises:
            DecodeError: `unknown_schema`, or `registry_unavailable` when nobody could be asked.
        """
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            text: str = self._client.get_schema(schema_id).schema_str
        except SchemaRegistryError as error:
            reason = "unknown_schema" if error.http_status_code in NOT_FOUND else "registry_unavailable"
            raise DecodeError(reason, f"schema id {schema_id}: {error.error_message}") from error
        except OSError as error:
            raise DecodeError("registry_unavailable", f"schema id {schema_id}: {error}") from error
        name = json.loads(text).get("name")
        if name not in catalogue.current():
            raise DecodeError("unknown_schema", f"schema id {schema_id} is of {name!r}, no record of Headrace")
        return RecordSchema(name, text, catalogue.fingerprint(text), None)
