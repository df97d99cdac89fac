"""Settings of the one local Kafka node, broker and controller in one."""

from pathlib import Path

from headrace.deploy.local.ports import HOST

MAX_MESSAGE_BYTES = 16 * 1024 * 1024 + 128 * 1024
"""The size limit of a value, 64 kB that a dead letter may be above it, and as much for key and headers."""
INTERNAL_PARTITIONS = 8
"""Of Kafka's own topics; the default of 50 each makes the first group and the first transaction wait for 2 s."""


def _quorum(log_dirs: Path, controller_port: int) -> dict[str, str]:
    return {
        "node.id": "1",
        # Static voters: a dynamic quorum would record the controller's port for good, and it changes at each start.
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": str(log_dirs),
    }


def controller_properties(log_dirs: Path, port: int) -> dict[str, str]:
    """A controller without a broker, which soon takes the broker for dead."""
    return {
        **_quorum(log_dirs, port),
        "process.roles": "controller",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        "broker.heartbeat.interval.ms": "50",
        "broker.session.timeout.ms": "200",
    }


def server_properties(log_dirs: Path, port: int, controller_port: int) -> dict[str, str]:
    """Everything that differs from Kafka's defaults."""
    return {
        **_quorum(log_dirs, controller_port),
        "process.roles": "broker,controller",
        "listeners": f"BROKER://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"BROKER://{HOST}:{port}",
        "inter.broker.listener.name": "BROKER",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        # Nobody takes over from a single node; one that was stopped for a moment must not be fenced (see `fencing`).
        "broker.session.timeout.ms": "30000",
        "auto.create.topics.enable": "false",
        "message.max.bytes": str(MAX_MESSAGE_BYTES),
        **ONE_NODE,
        **GROUPS,
        **SMALL,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    }


ONE_NODE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": str(INTERNAL_PARTITIONS),
    "transaction.state.log.num.partitions": str(INTERNAL_PARTITIONS),
    "share.coordinator.state.topic.num.partitions": str(INTERNAL_PARTITIONS),
}

# A killed member's partitions move after its session time-out; a joining one gets its own at a heartbeat.
GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
}

# Buffers and threads for a laptop; the log cleaner alone would take 128 MiB of heap.
SMALL = {
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    "num.network.threads": "2",
    "num.io.threads": "4",
}


def render(properties: dict[str, str]) -> str:
    """The text of a Java properties file."""
    return "".join(f"{key}={_escape(value)}\n" for key, value in properties.items())


def _escape(value: str) -> str:
    text = value.replace("\\", "\\\\")
    return "".join(c if c.isascii() else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in text)


def _utf16(character: str) -> list[int]:
    raw = character.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]
