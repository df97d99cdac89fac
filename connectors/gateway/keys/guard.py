"""Lets calls in by their key."""

import logging
import math
import os
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from headrace.connectors.gateway.errors import TOO_MANY, CallError
from headrace.connectors.gateway.keys.limits import Bucket
from headrace.connectors.gateway.keys.store import TRAIN, Key, KeyFileError, id_of, read_keys

log = logging.getLogger(__name__)

UNAUTHORIZED, FORBIDDEN = 401, 403
LOOK_SECONDS = 1.0  # at most so often the file is looked at
BUSY_RETRY_SECONDS = 1
BEARER = "bearer "


class Grant(msgspec.Struct, frozen=True):
    """What a call may do.

    Attributes:
        key_id: None where the gateway asks for no key.
    """

    key_id: str | None = None
    train: bool = True


ANYBODY = Grant()


class Guard:
    """The keys of a file, which is read again when it changes; a broken one changes nothing.

    Args:
        path: None where no key is asked for.
        clock: seconds, going forward.

    Raises:
        KeyFileError: the file cannot be read.
    """

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked_at = -math.inf
        self._buckets: dict[str, Bucket] = {}
        self._running: dict[str, int] = {}
        if path is not None:
            self._stamp = _stamp(path)
            self._keys = {key.id: key for key in read_keys(path)}

    @contextmanager
    def admit(self, headers: Mapping[str, str], scope: str) -> Generator[Grant]:
        """For as long as a call takes.

        Raises:
            CallError: 401 without a key that is known, 403 without the scope, 429 above a limit of the key.
        """
        if self._path is None:
            yield ANYBODY
            return
        self._look()
        key = self._known(headers)
        if scope not in key.scopes:
            raise CallError(FORBIDDEN, "insufficient_scope", f"the key {key.id} ({key.name}) is not good for {scope}")
        self._check_limits(key)
        self._running[key.id] = self._running.get(key.id, 0) + 1
        try:
            yield Grant(key.id, TRAIN in key.scopes)
        finally:
            self._running[key.id] -= 1

    def _known(self, headers: Mapping[str, str]) -> Key:
        given = _given(headers)
        if given is None:
            message = "a key is needed: Authorization: Bearer KEY, or x-api-key: KEY"
            raise CallError(UNAUTHORIZED, "missing_api_key", message)
        key = self._keys.get(id_of(given) or "")
        if key is None or not key.fits(given):
            raise CallError(UNAUTHORIZED, "invalid_api_key", "the key is unknown or revoked")
        return key

    def _check_limits(self, key: Key) -> None:
        if key.concurrent is not None and self._running.get(key.id, 0) >= key.concurrent:
            message = f"the key {key.id} has {key.concurrent} calls under way, and may have no more"
            raise CallError(TOO_MANY, "rate_limit_exceeded", message, retry_after=str(BUSY_RETRY_SECONDS))
        if key.requests_per_minute is None:
            return
        now = self._clock()
        bucket = self._buckets.get(key.id)
        if bucket is None or bucket.size != key.requests_per_minute:
            bucket = self._buckets[key.id] = Bucket.of(key.requests_per_minute, now)
        if wait := bucket.take(now):
            message = f"the key {key.id} may make {key.requests_per_minute} requests a minute"
            raise CallError(TOO_MANY, "rate_limit_exceeded", message, retry_after=str(math.ceil(wait)))

    def _look(self) -> None:
        now = self._clock()
        if self._path is None or now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        if (stamp := _stamp(self._path)) == self._stamp:
            return
        self._stamp = stamp
        try:
            self._keys = {key.id: key for key in read_keys(self._path)}
        except KeyFileError as error:
            log.error("the keys stay as they were: %s", error)
        else:
            log.info("%d keys read from %s", len(self._keys), self._path)


def _given(headers: Mapping[str, str]) -> str | None:
    authorization = headers.get("authorization", "")
    if authorization[: len(BEARER)].lower() == BEARER:
        return authorization[len(BEARER) :].strip()
    return headers.get("x-api-key")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
