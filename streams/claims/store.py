"""A store of values: files named by the SHA-256 of their content, at any fsspec URL.

A value is `<store>/<cluster id>/<full topic name>/<first two digits>/<sha256>`: several clusters may share a store, and
a topic's values can go when the topic goes. It is written before the record that refers to it, and never changed. A
file `headrace-claims` at the root tells a store that has lost a value from one that is not there (a volume that is not
mounted): the first is a dead letter, the second is waited for.
"""

import errno
import hashlib
import logging
import re
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tenacity import RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from headrace.schemas.claim_check import ClaimCheck
from headrace.streams.claims.errors import ClaimError, ClaimsUnavailableError
from headrace.streams.errors import RecordTooLargeError
from headrace.streams.settings import Settings

log = logging.getLogger(__name__)

T = TypeVar("T")
OFF = "off"
MARKER = "headrace-claims"
MARKER_TEXT = b"Large records of Headrace. `headrace topics sweep-claims` deletes what no record refers to.\n"
PLACE = re.compile(r"[A-Za-z0-9_-]+/(?!\.\.?/)[A-Za-z0-9._-]+/[0-9a-f]{2}/[0-9a-f]{64}")
PATIENCE_SECONDS = 3.0  # of one call; whoever reads then lets other partitions go on, and comes again
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
FRESH = timedelta(hours=1)
"""A copy of this age is used again as it is: far below the age at which one without a record is deleted."""


class ClaimStore:
    """One store; safe to share between threads. Nothing is done before the first call.

    Args:
        url: as fsspec takes it, or a folder.
        patience: seconds for which a store that fails is tried again.
    """

    def __init__(self, url: str, patience: float = PATIENCE_SECONDS) -> None:
        self.url = (url if "://" in url else Path(url).expanduser().absolute().as_uri()).rstrip("/")
        self._patience = patience
        self._marked = False

    def put(self, folder: str, content: bytes) -> ClaimCheck:
        """Writes a value; returns when the store has it.

        Args:
            folder: cluster id and full name of the topic whose record it is, with a slash between.

        Raises:
            RecordTooLargeError: nothing can be written there.
            ClaimsUnavailableError: the store does not answer now.
        """
        digest = hashlib.sha256(content).hexdigest()
        place = f"{folder}/{digest[:2]}/{digest}"
        try:
            self._patiently(lambda: self._write(place, content))
        except (PermissionError, NotADirectoryError, FileExistsError, ImportError, ValueError) as error:
            raise RecordTooLargeError(
                f"{len(content)} bytes are above max_message_bytes, and the claim-check store {self.url} cannot be "
                f"written ({error}); mend it, or name another one with HEADRACE_CLAIM_CHECK"
            ) from error
        return ClaimCheck(len(content), digest, f"{self.url}/{place}")

    def place_of(self, uri: str) -> str | None:
        """The place of a value within this store; None if it is none of this store."""
        place = uri.removeprefix(f"{self.url}/")
        return place if place != uri and PLACE.fullmatch(place) else None

    def get(self, place: str, claim: ClaimCheck) -> bytes:
        """A value, as its claim check describes it.

        Raises:
            ClaimError: `claim_missing` or `claim_corrupt`.
            ClaimsUnavailableError: the store does not answer now, or is not there.
        """
        try:
            content = self._patiently(lambda: self._read(place))
        except FileNotFoundError as error:
            if not self._patiently(self._is_there):
                raise self._not_there() from error
            raise ClaimError("claim_missing", f"{claim.uri} is not there") from error
        except (PermissionError, ImportError, ValueError) as error:
            raise self._away(error) from error
        if len(content) != claim.bytes or hashlib.sha256(content).hexdigest() != claim.sha256:
            raise ClaimError("claim_corrupt", f"{claim.uri} has other content than what was written")
        return content

    def found(self, folder: str) -> dict[str, datetime]:
        """When each file of a folder was last written, by its place.

        Raises:
            ClaimsUnavailableError: the store does not answer now.
        """

        def look() -> dict[str, datetime]:
            self._fs.invalidate_cache()
            try:
                files: list[str] = self._fs.find(self._path(folder))
            except FileNotFoundError:
                return {}
            return {f[f.rindex(f"/{folder}/") + 1 :]: _utc(self._fs.modified(f)) for f in files}

        return self._patiently(look)

    def now(self) -> datetime:
        """The store's own time: that of a file written now. Raises as `put`."""

        def look() -> datetime:
            self._fs.makedirs(self._root, exist_ok=True)
            self._fs.pipe_file(self._path(MARKER), MARKER_TEXT)
            self._fs.invalidate_cache()
            return _utc(self._fs.modified(self._path(MARKER)))

        return self._patiently(look)

    def written(self, place: str) -> datetime | None:
        """When a file was last written; None where it is gone."""

        def look() -> datetime | None:
            self._fs.invalidate_cache()
            try:
                return _utc(self._fs.modified(self._path(place)))
            except FileNotFoundError:
                return None

        return self._patiently(look)

    def delete(self, place: str) -> None:
        """Deletes a file, if it is there."""

        def remove() -> None:
            try:
                self._fs.rm_file(self._path(place))
            except FileNotFoundError:
                return

        self._patiently(remove)

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        from fsspec import core

        untyped: Any = core
        return untyped.url_to_fs(self.url)

    @property
    def _fs(self) -> Any:
        return self._opened[0]

    @property
    def _root(self) -> str:
        return self._opened[1].rstrip("/")

    def _path(self, place: str) -> str:
        return f"{self._root}/{place}"

    def _write(self, place: str, content: bytes) -> None:
        fs, path = self._fs, self._path(place)
        if not self._is_there():
            if self._marked:  # what is written beside a volume that is not mounted is lost once it is
                raise self._not_there()
            fs.makedirs(self._root, exist_ok=True)
            fs.pipe_file(self._path(MARKER), MARKER_TEXT)
        self._marked = True
        if self._is_fresh(path, len(content)):
            return
        fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        if self.url.startswith("file:"):  # a process that dies in the middle leaves no half value behind
            part = f"{path}.{uuid.uuid4().hex}.part"
            try:
                fs.pipe_file(part, content)
                fs.mv(part, path)
            except BaseException:  # on a full disk each try would take what was freed meanwhile
                with suppress(OSError):
                    fs.rm_file(part)
                raise
        else:  # an object is there as a whole or not at all
            fs.pipe_file(path, content)

    def _is_there(self) -> bool:
        self._fs.invalidate_cache()
        return bool(self._fs.exists(self._path(MARKER)))

    def _is_fresh(self, path: str, size: int) -> bool:
        try:
            age = datetime.now(UTC) - _utc(self._fs.modified(path))
            return timedelta(0) <= age < FRESH and self._fs.size(path) == size
        except FileNotFoundError:
            return False

    def _read(self, place: str) -> bytes:
        try:
            return self._fs.cat_file(self._path(place))
        except FileNotFoundError:
            self._fs.invalidate_cache()  # listings are remembered; the second look is a look
            return self._fs.cat_file(self._path(place))

    def _patiently(self, call: Callable[[], T]) -> T:
        """The answer of a store that may fail for a moment; what will not pass is raised as it is."""
        lasting = (FileNotFoundError, PermissionError, NotADirectoryError, FileExistsError, ImportError, ValueError)

        def once() -> T:
            try:
                return call()
            except (*lasting, ClaimsUnavailableError):
                raise
            except Exception as error:  # each file system fails in its library's own ways
                if isinstance(error, OSError) and error.errno == errno.EROFS:
                    raise PermissionError(str(error)) from error
                raise self._away(error) from error

        retrying = Retrying(
            retry=retry_if_exception_type(ClaimsUnavailableError),
            wait=wait_exponential(FIRST_PAUSE_SECONDS, max=LONGEST_PAUSE_SECONDS),
            stop=stop_after_delay(self._patience),
        )
        try:
            return retrying(once)
        except RetryError as error:
            failure = error.last_attempt.exception()
            assert failure is not None
            raise failure from failure.__cause__

    def _not_there(self) -> ClaimsUnavailableError:
        return ClaimsUnavailableError(
            f"there is no claim-check store at {self.url}, which is waited for: mount it, or set HEADRACE_CLAIM_CHECK "
            f"to the store that the writers use; if it is gone for good, a file {MARKER} there says so"
        )

    def _away(self, error: Exception) -> ClaimsUnavailableError:
        return ClaimsUnavailableError(
            f"the claim-check store {self.url} fails ({type(error).__name__}: {error}); it is waited for. "
            "HEADRACE_CLAIM_CHECK names it"
        )


class ClaimStores:
    """Where this process writes large values, and where it accepts to read them.

    A reference to anywhere else is refused: a record must not make its readers fetch what it likes.
    """

    def __init__(self, settings: Settings, patience: float = PATIENCE_SECONDS) -> None:
        self._limit = settings.max_claim_bytes
        self.own = None if settings.claim_check == OFF else ClaimStore(settings.claim_check, patience)
        others: Sequence[ClaimStore] = [ClaimStore(url, patience) for url in settings.claim_check_former]
        self._readable = [*([self.own] if self.own else []), *others]

    def refusal(self, size: int) -> str | None:
        """Why a value of so many bytes cannot be written, and what to do about it; None where it can."""
        if self.own is None:
            return "make it smaller, raise the limit for the topics too, or name a store with HEADRACE_CLAIM_CHECK"
        if size > self._limit:
            return f"and above max_claim_bytes ({self._limit}); make it smaller"
        return None

    def put(self, folder: str, content: bytes) -> ClaimCheck:
        """As `ClaimStore.put`, of what `refusal` does not refuse."""
        assert self.own is not None
        return self.own.put(folder, content)

    def place_of(self, claim: ClaimCheck) -> tuple[ClaimStore, str] | None:
        """The store that a claim check names, and the place in it; None where it is none of this process."""
        for store in self._readable:
            place = store.place_of(claim.uri)
            if place is not None and place.endswith(f"/{claim.sha256[:2]}/{claim.sha256}"):
                return store, place
        return None

    def get(self, claim: ClaimCheck) -> bytes:
        """The value of a claim check.

        Raises:
            ClaimError: it cannot be had; `claim_foreign` for one that is in no store of this process.
            ClaimsUnavailableError: wait.
        """
        if claim.bytes > self._limit:
            raise ClaimError("claim_too_large", f"{claim.bytes} bytes are above max_claim_bytes ({self._limit})")
        found = self.place_of(claim)
        if found is not None:
            return found[0].get(found[1], claim)
        raise ClaimError(
            "claim_foreign",
            f"{claim.uri} is in no store of this process; set HEADRACE_CLAIM_CHECK to the store of the writers, or "
            "name it in claim_check_former",
        )


def _utc(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
