"""The file of keys.

Only the SHA-256 of a key stands there. A slow hash (scrypt, argon2) makes guessing a password dear; these keys are 32
random bytes, which no guessing finds, and 50 ms of CPU for a hash at every call would let anybody stop a gateway.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from headrace.streams.errors import HeadraceError

CALL, TRAIN, FEEDBACK = "call", "train", "feedback"
SCOPES = (CALL, TRAIN, FEEDBACK)
"""`call`: models may be called; `train`: the calls may be trained on; `feedback`: rollouts may be judged."""
MARK = "hr"
ID_BYTES, SECRET_BYTES = 5, 32
MAX_KEY = 256
OWNER_ONLY = 0o600


class KeyFileError(HeadraceError):
    """The file of keys cannot be used; nothing was changed."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key, without the key itself.

    Attributes:
        id: the part of the key that is no secret; it stands in spans and lists.
        sha256: hex, of the whole key.
        requests_per_minute, concurrent: limits in one gateway; None is none.
        created_at, revoked_at: seconds since the epoch.
    """

    id: str
    name: str
    sha256: str
    scopes: tuple[str, ...] = SCOPES
    requests_per_minute: int | None = None
    concurrent: int | None = None
    created_at: int
    revoked_at: int | None = None

    def fits(self, key: str) -> bool:
        """Whether it is this key; in a time that tells nothing."""
        return self.revoked_at is None and hmac.compare_digest(self.sha256, digest(key))


class _File(msgspec.Struct):
    keys: list[Key] = msgspec.field(default_factory=list[Key])


def digest(key: str) -> str:
    """What the file has of a key."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def id_of(key: str) -> str | None:
    """The id that a key names; None of what can be no key."""
    parts = key.split("_", 2)
    return parts[1] if len(parts) == 3 and parts[0] == MARK and len(key) <= MAX_KEY else None


def read_keys(path: Path) -> list[Key]:
    """The keys of a file, revoked ones too.

    Raises:
        KeyFileError: there is none, or it is no file of keys.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File).keys
    except FileNotFoundError as error:
        raise KeyFileError(f"there is no file of keys at {path}; `headrace keys create NAME` makes one") from error
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise KeyFileError(f"{path} is no file of keys: {error}") from error


def create_key(
    path: Path,
    name: str,
    *,
    scopes: Iterable[str] = SCOPES,
    requests_per_minute: int | None = None,
    concurrent: int | None = None,
) -> tuple[Key, str]:
    """Adds a key to the file, which is made where there is none. Returns it with the key itself, seen only here.

    Raises:
        KeyFileError: the file cannot be read or written.
    """
    secret = f"{MARK}_{secrets.token_hex(ID_BYTES)}_{secrets.token_urlsafe(SECRET_BYTES)}"
    key = Key(
        id=id_of(secret) or "",
        name=name,
        sha256=digest(secret),
        scopes=tuple(scope for scope in SCOPES if scope in set(scopes)),
        requests_per_minute=requests_per_minute,
        concurrent=concurrent,
        created_at=int(time.time()),
    )
    _change(path, lambda keys: [*keys, key], may_be_missing=True)
    return key, secret


def revoke_key(path: Path, key_id: str) -> Key:
    """Ends a key. Gateways notice within seconds.

    Raises:
        KeyFileError: the file has no such key, or cannot be written.
    """
    found: list[Key] = []

    def revoked(keys: Sequence[Key]) -> list[Key]:
        now = int(time.time())
        changed = [
            msgspec.structs.replace(key, revoked_at=now) if key.id == key_id and key.revoked_at is None else key
            for key in keys
        ]
        found.extend(key for key in changed if key.id == key_id)
        if not found:
            raise KeyFileError(f"{path} has no key {key_id!r}; `headrace keys list` shows them")
        return changed

    _change(path, revoked)
    return found[0]


def _change(path: Path, change: Callable[[Sequence[Key]], list[Key]], *, may_be_missing: bool = False) -> None:
    """Puts a changed file in the place of the old one, at once and for one writer at a time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_name(path.name + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            keys = [] if may_be_missing and not path.exists() else read_keys(path)
            content = msgspec.json.format(msgspec.json.encode(_File(change(keys))))
            handle, written = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # for its owner alone
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content + b"\n")
                    os.fsync(file.fileno())
                os.replace(written, path)
            except BaseException:  # the half-written file goes, whatever it was
                os.unlink(written)
                raise
    except OSError as error:
        raise KeyFileError(f"{path} cannot be written: {error.strerror}") from error
