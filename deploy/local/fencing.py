"""A node that was killed is declared dead before it starts again.

The metadata of a killed node still call it alive and the leader of all its partitions. Started as it is, it acts as
that for `broker.session.timeout.ms`: the transaction coordinator ends the transactions that were open, with its own
listener still closed. Then the controller fences the former life of the broker, and the coordinator takes partitions
without a leader for deleted ones, drops their markers and calls the transaction complete (Kafka 4.4,
`TransactionMarkerChannelManager`): readers with `read_committed` never get past it. A controller that runs alone for a
moment fences the former life first; what starts then loads its transactions when it can write their markers, and need
not wait for the session time-out.
"""

import time
from pathlib import Path

from headrace.deploy.local.process import ChildProcess
from headrace.deploy.local.properties import controller_properties, render
from headrace.deploy.local.stamps import write_whole
from headrace.deploy.local.watch import Watch

CLEAN = ".kafka_cleanshutdown"
"""Kafka's own mark, written when it stops in order and removed when it starts."""
METADATA = "__cluster_metadata-0"
FENCER = "org.apache.kafka.controller.ReplicationControlManager"
FENCED = "handleBrokerFenced"
ACTIVE = "Performing controller activation"
START_SECONDS = 60.0
FENCING_SECONDS = 3.0
"""Many session time-outs of that controller: what it has not fenced by then was fenced before, or never there."""


def was_killed(log_dirs: Path) -> bool:
    """Whether a node has run on the directory and did not stop in order."""
    return not (log_dirs / CLEAN).exists() and any((log_dirs / METADATA).glob("*.log"))


def fence(command: list[str], data: Path, log_dirs: Path, port: int, keep: list[int], watch: Watch) -> None:
    """Run the controller alone until the former life of the broker is fenced.

    Args:
        command: Java with its flags and the class path.
        data: where settings and log go.
        port: a free one, for the controller.

    Raises:
        ProcessDiedError: it ended, with the end of its log.
        LocalError: it did not start.
    """
    properties = data / "fencing.properties"
    write_whole(properties, render(controller_properties(log_dirs, port)))
    controller = ChildProcess(
        "Kafka's controller",
        [command[0], f"-Dorg.slf4j.simpleLogger.log.{FENCER}=info", *command[1:], "kafka.Kafka", str(properties)],
        log=data / "fencing.log",
        keep=keep,
    )
    try:
        controller.wait_until(_Fenced(controller.log), START_SECONDS, watch)
    finally:
        controller.stop()


class _Fenced:
    """Whether the log of a controller says that it has fenced, or that it long could have."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._active_since: float | None = None

    def __call__(self) -> bool:
        text = self._path.read_text(errors="replace")
        now = time.monotonic()
        if self._active_since is None and ACTIVE in text:
            self._active_since = now
        return FENCED in text or (self._active_since is not None and now - self._active_since > FENCING_SECONDS)
