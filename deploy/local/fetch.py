"""Fetch artifacts from the Maven registry by jgo, in parallel, each verified before it gets its name."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from headrace.deploy.local.errors import FetchError
from headrace.deploy.local.lockfile import Artifact
from headrace.deploy.local.watch import UNWATCHED, Watch

PARALLEL = 16
TRIES = 3
TIMEOUT_SECONDS = 60

log = logging.getLogger(__name__)


class _StoppedError(Exception):
    """Another download failed, or Ctrl-C came: the rest is not wanted any more."""


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fetch(artifacts: Sequence[Artifact], directory: Path, watch: Watch = UNWATCHED) -> None:
    """Put `artifacts` into `directory`.

    Raises:
        FetchError: names the first file that was not to be had, or whose content is not what the lock says.
    """
    directory.mkdir(parents=True, exist_ok=True)
    stop = Event()
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as scratch, ThreadPoolExecutor(PARALLEL) as pool:
        jobs = [pool.submit(_fetch_one, artifact, Path(scratch), directory, stop) for artifact in artifacts]
        try:
            waiting, done = set(jobs), 0
            while waiting:
                finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for job in finished:
                    job.result()
                    done += 1
                    watch.progress(done, len(jobs))
                watch.checkpoint()
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(artifact: Artifact, scratch: Path, directory: Path, stop: Event) -> None:
    from tenacity import RetryError, retry, retry_if_not_exception_type, stop_after_attempt, wait_exponential

    @retry(
        stop=stop_after_attempt(TRIES),
        wait=wait_exponential(multiplier=0.5, max=5),
        retry=retry_if_not_exception_type(_StoppedError),
    )
    def attempt() -> Path:
        # A folder of its own a try: jgo takes a file that is there for whole.
        path = _download(artifact, Path(tempfile.mkdtemp(dir=scratch)), stop)
        found = sha256(path)
        if found != artifact.sha256:
            raise FetchError(f"{artifact.filename}: SHA-256 is {found}, the lock says {artifact.sha256}")
        return path

    try:
        path = attempt()
    except RetryError as error:
        cause = error.last_attempt.exception()
        raise FetchError(
            f"cannot fetch {artifact.group}:{artifact.name}:{artifact.version}: {cause}. "
            "Check the network and try again"
        ) from cause
    os.replace(path, directory / artifact.filename)


def _download(artifact: Artifact, repository: Path, stop: Event) -> Path:
    from jgo import MavenContext
    from jgo.maven import PythonResolver

    @contextmanager
    def chunks(name: str, size: int) -> Generator[Callable[[int], None]]:
        def received(count: int) -> None:
            if stop.is_set():
                raise _StoppedError(name)

        yield received

    resolver = PythonResolver(progress_callback=chunks)
    context = MavenContext(resolver, repo_cache=repository, local_repos=[], timeout=TIMEOUT_SECONDS)
    component = context.project(artifact.group, artifact.name).at_version(artifact.version)
    return component.artifact(classifier=artifact.classifier, packaging=artifact.packaging).resolve()
