"""The codec: Avro single-object encoding by default, Confluent framing when a registry is configured.

Readers accept both, told apart by the first byte: 0xC3 0x01 and the CRC-64-AVRO fingerprint of the writer's schema
(Avro specification), or 0x00 and the registry's four-byte schema id (Confluent wire format). A record in the current
schema is read by code written out for it; one in another known schema is resolved to the current by fastavro. A claim
check is read as the record whose value it stands for.
"""

import io
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from headrace.schemas import catalogue, claim_check
from headrace.schemas.catalogue import RecordSchema
from headrace.schemas.records import RECORDS, Record
from headrace.schemas.varint import WireError
from headrace.schemas.wire import READERS, WRITERS
from headrace.streams.claims import ClaimError, ClaimStores
from headrace.streams.codec.errors import DecodeError, EncodeError
from headrace.streams.codec.registry import RegistrySchemas
from headrace.streams.errors import UnavailableError
from headrace.streams.settings import Settings

R = TypeVar("R", bound=Record)
Reader = Callable[[bytes], Record]
SINGLE_OBJECT_BYTES = 10
CONFLUENT_MAGIC = 0
CONFLUENT_BYTES = 5


def _compiled(schema: RecordSchema, start: int) -> Reader:
    read = READERS[schema.name]

    def reader(data: bytes) -> Record:
        record, end = read(data, start)
        if end != len(data):
            if end > len(data):
                raise WireError(f"the record ends at byte {end} of {len(data)}")
            raise DecodeError("trailing_bytes", f"{len(data) - end} bytes after a {schema.name}")
        return record

    return reader


def _tagged(value: Any) -> Any:
    """fastavro's (name, record) pairs as the tagged dicts that the records are built from."""
    if isinstance(value, tuple):
        name, record = cast(tuple[str, dict[str, Any]], value)
        return {"-type": name, **record}
    if isinstance(value, dict):
        return {k: _tagged(v) for k, v in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_tagged(v) for v in cast(list[Any], value)]
    return value


def _resolved(writer: RecordSchema, start: int) -> Reader:
    """A reader of a schema that is not the current one: an earlier, or a later that a registry knows."""
    import fastavro

    target = RECORDS[writer.name]
    read_as = catalogue.current()[writer.name].parsed()

    def reader(data: bytes) -> Record:
        stream = io.BytesIO(data)
        stream.seek(start)
        value: Any = fastavro.schemaless_reader(  # pyright: ignore[reportUnknownMemberType]
            stream, writer.parsed(), read_as, return_record_name=True, return_record_name_override=True
        )
        if stream.tell() != len(data):
            raise DecodeError("trailing_bytes", f"{len(data) - stream.tell()} bytes after a {writer.name}")
        return msgspec.convert(_tagged(value), target)

    return reader


class Codec:
    """Encodes and decodes every record of the catalogue; safe to share between threads."""

    def __init__(self, settings: Settings) -> None:
        self._claims = ClaimStores(settings)
        self._registry = RegistrySchemas(settings) if settings.registry else None
        self._headers: dict[str, bytes] = {}
        if self._registry is None:
            self._headers = {name: schema.header for name, schema in catalogue.current().items()}
        self._readers: dict[bytes, Reader] = {}

    def encode(self, record: Record) -> bytes:
        """The bytes of a record.

        Raises:
            EncodeError: a value does not fit the schema.
        """
        name = record.SCHEMA
        header = self._headers.get(name) or self._registered_header(name)
        parts = [header]
        try:
            WRITERS[name](record, parts.append)
            return b"".join(parts)
        except (AttributeError, TypeError, ValueError, IndexError, ArithmeticError) as error:
            raise EncodeError(f"a {name} has a value that its schema does not allow: {error}") from error
        except Exception as error:  # struct.error is no ValueError
            raise EncodeError(f"a {name} cannot be written: {error}") from error

    def decode(self, data: bytes | None) -> Record:
        """The record that bytes hold.

        Raises:
            DecodeError: they hold none; `reason` says why.
            UnavailableError: what else it needs (registry, claim-check store) does not answer now.
        """
        if not data:
            raise DecodeError("empty", "no value")
        key = data[:CONFLUENT_BYTES] if data[0] == CONFLUENT_MAGIC else data[:SINGLE_OBJECT_BYTES]
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = self._reader(key)
        try:
            return reader(data)
        except (DecodeError, UnavailableError):
            raise
        except Exception as error:  # a reader meets whatever a garbled byte leads to: all of it is one thing
            raise DecodeError("malformed", f"{type(error).__name__}: {error}") from error

    def decode_as(self, record_type: type[R], data: bytes | None) -> R:
        """The record that bytes hold, of the type that the topic carries.

        Raises:
            DecodeError: as `decode`; `wrong_record` for a record of another type.
        """
        record = self.decode(data)
        if not isinstance(record, record_type):
            raise DecodeError("wrong_record", f"a {record.SCHEMA} where a {record_type.__name__} belongs")
        return record

    def _claimed(self, data: bytes) -> Record:
        claim = claim_check.decode(data)
        try:
            content = self._claims.get(claim)
        except ClaimError as error:
            raise DecodeError(error.reason, str(error)) from error
        if claim_check.is_claim_check(content):
            raise DecodeError("malformed", "a claim check of a claim check")
        return self.decode(content)

    def _registered_header(self, name: str) -> bytes:
        assert self._registry is not None
        header = self._headers[name] = self._registry.header(name)
        return header

    def _reader(self, key: bytes) -> Reader:
        if key[0] == CONFLUENT_MAGIC:
            if len(key) < CONFLUENT_BYTES:
                raise DecodeError("malformed", f"{len(key)} bytes")
            if self._registry is None:
                raise DecodeError("unknown_schema", "Confluent framing, but no registry is set (HEADRACE_REGISTRY)")
            return self._make(self._registry.schema(int.from_bytes(key[1:], "big")), CONFLUENT_BYTES)
        if key[:2] != catalogue.SINGLE_OBJECT_MARKER:
            raise DecodeError("unknown_framing", f"begins with {key[:2].hex()}: neither single-object nor Confluent")
        if key == claim_check.HEADER:
            return self._claimed
        schema = catalogue.by_fingerprint().get(key[2:])
        if schema is None:
            raise DecodeError("unknown_schema", f"fingerprint {key[2:].hex()}: no version of Headrace wrote it")
        return self._make(schema, SINGLE_OBJECT_BYTES)

    @staticmethod
    def _make(schema: RecordSchema, start: int) -> Reader:
        if schema.fingerprint == catalogue.current()[schema.name].fingerprint:
            return _compiled(schema, start)
        return _resolved(schema, start)
