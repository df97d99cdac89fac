"""Fetch artifacts from the Maven registry by jgo, in parallel, each verified before it gets its name."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from headrace.deploy.local.errors import FetchError
from headrace.deploy.local.lockfile import Artifact

Report = Callable[[int, int], None]
"""Called with (files done, files in all)."""

PARALLEL = 16
TRIES = 3
TIMEOUT_SECONDS = 60

log = logging.getLogger(__name__)


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def fetch(artifacts: Sequence[Artifact], directory: Path, report: Report | None = None) -> None:
    """Put `artifacts` into `directory`.

    Raises:
        FetchError: names the first file that was not to be had, or whose content is not what the lock says.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as scratch, ThreadPoolExecutor(PARALLEL) as pool:
        jobs = [pool.submit(_fetch_one, artifact, Path(scratch), directory) for artifact in artifacts]
        try:
            for done, job in enumerate(as_completed(jobs), start=1):
                job.result()
                if report:
                    report(done, len(jobs))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_one(artifact: Artifact, scratch: Path, directory: Path) -> None:
    from tenacity import RetryError, retry, stop_after_attempt, wait_exponential

    @retry(stop=stop_after_attempt(TRIES), wait=wait_exponential(multiplier=0.5, max=5))
    def attempt() -> Path:
        # A folder of its own a try: jgo takes a file that is there for whole.
        path = _download(artifact, Path(tempfile.mkdtemp(dir=scratch)))
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


def _download(artifact: Artifact, repository: Path) -> Path:
    from jgo import MavenContext

    context = MavenContext(repo_cache=repository, local_repos=[], timeout=TIMEOUT_SECONDS)
    component = context.project(artifact.group, artifact.name).at_version(artifact.version)
    return component.artifact(classifier=artifact.classifier, packaging=artifact.packaging).resolve()
