"""When a window closes, and what is taken into it."""

from dataclasses import dataclass

from headrace.streams.errors import InvalidValueError, SettingsError

INCOMPLETE = THIN = ZERO_VARIANCE = ("train", "drop")
UNGROUPED = ("drop", "window", "running", "value")


@dataclass(frozen=True, kw_only=True)
class WindowSettings:
    """When a window closes, and what is taken into it.

    Attributes:
        groups: closes on so many complete groups.
        group_size: distinct samples of a complete group; None is what its tasks say.
        samples: closes on so many samples of complete groups; None is no such rule.
        seconds: closes when a complete group has waited so long; None is no such rule.
        group_timeout_seconds: a group older than this, by log time, closes with what it has.
        incomplete: whether such a group is a `train` group of the members it has, or is a `drop`.
        thin_below: a group with fewer members that have a reward is thin.
        thin: whether a thin group is a `train` group, or is a `drop`.
        zero_variance: whether a group whose rewards are all equal is a `train` group, or is a `drop`, so that a window
            has its number of groups that teach something. Dynamic sampling, DAPO, arXiv:2503.14476.
        require_rewards: names of the rewards that a member waits for, by revisions, until its group times out.
        ungrouped: what becomes of a sample without a group: `drop` (no_group), or a baseline: the mean of the `window`,
            a `running` mean over windows, or that of a `value` head. Each counts as a complete group.
        skip_solved: complete groups with so high a mean reward are dropped (`solved`): their prompt has nothing left to
            teach; None is no such rule.
        curriculum: name of the `Curriculum` that looks at complete groups, for the run's manifest; None is none.
        max_staleness: most versions between the oldest that generated a token and the one that is trained.
        accept_external: takes traffic that nobody enqueued.
        accept_other_runs: takes trajectories of this policy that another run asked for.
    """

    run_id: str
    policy: str
    groups: int = 10
    group_size: int | None = None
    samples: int | None = None
    seconds: float | None = None
    group_timeout_seconds: float = 300.0
    incomplete: str = "train"
    thin_below: int = 2
    thin: str = "train"
    zero_variance: str = "train"
    require_rewards: tuple[str, ...] = ()
    ungrouped: str = "drop"
    skip_solved: float | None = None
    curriculum: str | None = None
    max_staleness: int = 3
    accept_external: bool = False
    accept_other_runs: bool = False

    def __post_init__(self) -> None:
        if self.groups < 1 or self.max_staleness < 0 or not self.group_timeout_seconds > 0:
            raise SettingsError("a window needs at least one group, max_staleness >= 0 and a positive group timeout")
        if self.thin_below < 1 or (self.samples is not None and self.samples < 1):
            raise SettingsError("thin_below and samples must be at least 1")
        for name, policies in (
            ("incomplete", INCOMPLETE),
            ("thin", THIN),
            ("zero_variance", ZERO_VARIANCE),
            ("ungrouped", UNGROUPED),
        ):
            if getattr(self, name) not in policies:
                raise InvalidValueError(f"{name} {getattr(self, name)!r}: choose one of {', '.join(policies)}")
