"""The commands of the pipeline: all of them public ones, with ids, ports and folders that a restart finds again."""

import random
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from headrace.local.processes import Part
from tests.chaos.plan import WEIGHTS, all_members, part_of
from tests.chaos.tasks import GROUP_SIZE

AGENT = Path(__file__).with_name("agents.py")
PREFIX = "chaos"
POLICY = "policy"
RUN = "chaos"
PARTITIONS = 4
CONCURRENCY = 32
WINDOW_GROUPS = 4
WINDOW_SECONDS = 5  # so that the last groups are trained too
DRAIN_SECONDS = 8
PORTS = range(20_000, 30_000)  # below those that the kernel gives to clients, which would take a killed server's


@dataclass(frozen=True)
class Pipeline:
    """Where a pipeline lives.

    Attributes:
        ports: of the members that listen.
        lease: seconds.
    """

    out: Path
    seed: int
    lease: float
    parts: tuple[str, ...]
    ports: dict[str, int]

    @property
    def bootstrap(self) -> str:
        """Where the broker listens."""
        return f"127.0.0.1:{self.ports['broker-1']}"

    @property
    def model(self) -> Path:
        """The small model."""
        return self.out / "model"

    @property
    def view(self) -> Path:
        """The view's database."""
        return self.out / "view.sqlite"

    @property
    def environment(self) -> dict[str, str]:
        """What all processes are told."""
        return {
            "HEADRACE_BOOTSTRAP": self.bootstrap,
            "HEADRACE_PREFIX": PREFIX,
            "HEADRACE_LEASE": f"PT{self.lease:g}S",
            "HEADRACE_HEARTBEAT": f"PT{self.lease / 3:g}S",
        }

    def topics(self) -> Part:
        """Makes the topics."""
        return Part("topics", ("topics", "create", "--partitions", str(PARTITIONS)), stays=False)

    def make_model(self) -> Part:
        """Makes the model."""
        return Part("model", ("model", "create", str(self.model), "--seed", str(self.seed)), stays=False)

    def member(self, name: str) -> Part:
        """A member that stays."""
        port = ("--port", str(self.ports[name])) if name in self.ports else ()
        worker = ("--worker-id", name)
        argv: dict[str, tuple[str, ...]] = {
            "broker": ("broker", *port, "--data", str(self.out / "kafka")),
            "engine": ("engine", "builtin", str(self.model), *port, "--policy", POLICY, "--wait-model", "60", *worker),
            "gateway": ("gateway", *port, "--policy", POLICY, *worker),
            "sync": ("sync", "--policy", POLICY, *worker),
            "lifecycle": ("processor", "lifecycle", *worker),
            "assembler": ("processor", "assembler", *worker),
            "view": ("processor", "view", "--database", f"sqlite:///{self.view}", *worker),
            "runner": (
                *("runner", f"{AGENT}:agent", "--concurrency", str(CONCURRENCY), "--drain", str(DRAIN_SECONDS)),
                *worker,
            ),
            "trainer": (
                *("trainer", "grpo", "--model", str(self.model), "--wait-model", "60", "--run", RUN),
                *("--policy", POLICY, "--checkpoints", str(self.out / "checkpoints"), "--seed", str(self.seed)),
                *("--group-size", str(GROUP_SIZE), "--window-groups", str(WINDOW_GROUPS)),
                *("--window-seconds", str(WINDOW_SECONDS), "--max-staleness", "1000", "--group-timeout", "3600"),
            ),
        }
        return Part(name, argv[part_of(name)])


def parts_but(left_out: Iterable[str]) -> tuple[str, ...]:
    """All parts but some."""
    return tuple(p for p in WEIGHTS if p not in set(left_out))


def choose_ports(parts: tuple[str, ...]) -> dict[str, int]:
    """A free port of its own for each member that listens."""
    names = [n for n in all_members(parts) if part_of(n) in ("broker", "engine", "gateway")]
    ports: dict[str, int] = {}
    for port in random.sample(PORTS, 200):
        if len(ports) < len(names) and _is_free(port):
            ports[names[len(ports)]] = port
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
