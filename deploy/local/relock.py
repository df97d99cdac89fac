"""Write the locks anew: `python -m headrace.deploy.local.relock`. Needs the network; edit the versions here first."""

import hashlib
import logging
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from headrace.deploy.local.lockfile import LOCKS

log = logging.getLogger(__name__)

KAFKA = "4.4.0"
SLF4J = "1.7.36"  # the release that Kafka's own slf4j-api has; without a binding the broker is mute
REGISTRY = "3.3.3"


def resolve_kafka() -> list[dict[str, Any]]:
    """Kafka's server and tools with all that they need, resolved by jgo."""
    import jgo

    endpoint = "+".join(
        (
            f"org.apache.kafka:kafka_2.13:{KAFKA}",
            f"org.apache.kafka:kafka-tools:{KAFKA}",
            f"org.slf4j:slf4j-simple:{SLF4J}",
        )
    )
    with tempfile.TemporaryDirectory() as directory:
        environment = jgo.build(endpoint, cache_dir=Path(directory))
        return tomllib.loads(Path(str(environment.lock_path)).read_text())["dependencies"]


def fetch_registry() -> list[dict[str, Any]]:
    """Apicurio Registry is one archive that holds its own dependencies."""
    from jgo import MavenContext

    entry = {
        "groupId": "io.apicurio",
        "artifactId": "apicurio-registry-app",
        "version": REGISTRY,
        "packaging": "tar.gz",
        "classifier": "all",
    }
    with tempfile.TemporaryDirectory() as directory:
        project = MavenContext(repo_cache=Path(directory), local_repos=[], timeout=60).project(
            entry["groupId"], entry["artifactId"]
        )
        path = project.at_version(REGISTRY).artifact(classifier="all", packaging="tar.gz").resolve()
        return [entry | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}]


def write_lock(part: str, version: str, dependencies: list[dict[str, Any]]) -> None:
    """One `[[artifact]]` a file, in a stable order."""
    lines = ["# Written by `python -m headrace.deploy.local.relock`.", f'version = "{version}"']
    for entry in sorted(dependencies, key=lambda d: (d["groupId"], d["artifactId"], d.get("classifier", ""))):
        lines += ["", "[[artifact]]", f'group = "{entry["groupId"]}"', f'name = "{entry["artifactId"]}"']
        lines += [f'version = "{entry["version"]}"', f'sha256 = "{entry["sha256"]}"']
        if entry.get("packaging", "jar") != "jar":
            lines.append(f'packaging = "{entry["packaging"]}"')
        if entry.get("classifier"):
            lines.append(f'classifier = "{entry["classifier"]}"')
    (LOCKS / f"{part}.lock.toml").write_text("\n".join(lines) + "\n")
    log.info("%s.lock.toml: %d files", part, len(dependencies))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    write_lock("kafka", KAFKA, resolve_kafka())
    write_lock("registry", REGISTRY, fetch_registry())
