"""Flags of the local JVMs."""

import os
from pathlib import Path

from headrace.deploy.local.errors import LocalError

# Measured on two cores: the first compiler tier and the serial collector start a broker in half the CPU time,
# need 50 to 130 MB less, and cost less CPU for minutes of load than the defaults do, which keep recompiling.
SMALL_MACHINE = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = ("-Djava.awt.headless=true", "-XX:-UsePerfData", "-Xlog:disable", "-Xlog:all=error:stderr")


def heap() -> str:
    """`HEADRACE_BROKER_HEAP`, the largest heap of the broker, as `-Xmx` takes it.

    Raises:
        LocalError: it is no size.
    """
    given = os.environ.get("HEADRACE_BROKER_HEAP") or "512m"
    if not given[:-1].isdecimal() or given[-1].lower() not in "kmg0123456789":
        raise LocalError(f"HEADRACE_BROKER_HEAP={given!r} is no size: write it as 512m or 1g")
    return f"-Xmx{given}"


def broker_options() -> list[str]:
    """Flags of the broker; those in `HEADRACE_BROKER_JAVA_OPTS` come last and win."""
    own = os.environ.get("HEADRACE_BROKER_JAVA_OPTS", "").split()
    return [heap(), "-XX:+ExitOnOutOfMemoryError", *SMALL_MACHINE, *QUIET, *own]


def aot_options(cache: Path) -> list[str]:
    """Use an ahead-of-time cache where there is one; Java ignores one that does not fit."""
    return [f"-XX:AOTCache={cache}"] if cache.exists() else []
