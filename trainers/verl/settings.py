"""What of a step verl can take, and where its workers run."""

from dataclasses import dataclass

from headrace.streams.errors import InvalidValueError, SettingsError
from headrace.trainers.grpo.settings import GrpoSettings

AGGREGATIONS = ("token_mean", "row_mean", "token_sum")
ESTIMATORS = ("headrace", "verl")
VERL_ADVANTAGES = ("grpo", "dr_grpo", "rloo")
CORRECTIONS = ("token", "sequence")
DEVICES = ("cpu", "cuda")
NETWORKS = ("private", "host")


@dataclass(frozen=True, kw_only=True)
class VerlSettings:
    """What a step of verl depends on beside the objective.

    Attributes:
        workers: ranks of FSDP2 that share each step.
        device: cpu (gloo) or cuda (NCCL).
        advantages: whether Headrace's estimators compute them, or verl's.
        correction: of ratio `decoupled`: importance weights of a token, or of a whole sequence.
        network: Ray in a `private` network namespace that nobody else can reach, or on the `host`'s interfaces.
        threads: of torch in each worker.
    """

    workers: int = 1
    device: str = "cpu"
    advantages: str = "headrace"
    correction: str = "token"
    network: str = "private"
    threads: int = 1

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("device", self.device, DEVICES),
            ("advantages", self.advantages, ESTIMATORS),
            ("correction", self.correction, CORRECTIONS),
            ("network", self.network, NETWORKS),
        ):
            if value not in allowed:
                raise InvalidValueError(f"{name} {value!r}: choose one of {', '.join(allowed)}")
        if self.workers < 1 or self.threads < 1:
            raise SettingsError("workers and threads must be at least 1")


def check_objective(objective: GrpoSettings, verl: VerlSettings) -> None:
    """Raises SettingsError where verl's step has no such thing."""
    if objective.aggregation not in AGGREGATIONS:
        raise InvalidValueError(
            f"aggregation {objective.aggregation!r}: verl adds up over rows and tokens, not over rollouts; "
            f"choose one of {', '.join(AGGREGATIONS)}"
        )
    if objective.aggregation == "token_sum" and objective.token_divisor is None:
        raise SettingsError("aggregation token_sum needs a token_divisor with verl, whose sums are means over rows")
    if objective.loss not in ("clip", "gspo"):
        raise SettingsError(f"loss {objective.loss!r}: verl's step takes clip or gspo")
    if objective.loss == "gspo" and objective.aggregation != "row_mean":
        raise SettingsError("loss gspo goes with aggregation row_mean in verl")
    if objective.needs_reference or objective.advantage == "gae":
        raise SettingsError("trainer verl has no reference model and no critic: choose kl none, and no advantage gae")
    if verl.advantages == "verl" and (objective.advantage not in VERL_ADVANTAGES or objective.credit != "final"):
        raise SettingsError(f"advantages by verl: choose advantage {', '.join(VERL_ADVANTAGES)} and credit final")
