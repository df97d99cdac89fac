"""Flags that several trainers have, in sets that belong together; see `flags.spread`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.options import Bootstrap, Prefix, Registry, settings_of

if TYPE_CHECKING:
    from headrace.streams.settings import Settings
    from headrace.trainers.groups import Curriculum
    from headrace.trainers.settings import RunSettings
    from headrace.trainers.window_settings import WindowSettings

Threads = Annotated[int, typer.Option(min=1, help="Threads of torch.")]
LearningRate = Annotated[float, typer.Option(help="Learning rate of AdamW.")]
Level = Annotated[str, typer.Option(help="Rows a call (transition) or a conversation (trajectory).")]


@dataclass(frozen=True, kw_only=True)
class PipelineFlags:
    """Which pipeline a trainer joins."""

    bootstrap: Bootstrap = None
    prefix: Prefix = None
    registry_url: Registry = None

    def settings(self) -> Settings:
        """With what the environment and headrace.toml say."""
        return settings_of(self.bootstrap, self.prefix, self.registry_url)


@dataclass(frozen=True, kw_only=True)
class RunFlags:
    """Which run, of which weights, and what is kept of it."""

    model: Annotated[Path, typer.Option(help="Hugging Face directory of the base weights.")]
    run: Annotated[str, typer.Option(help="Name of the run; the same again goes on where it stopped.")]
    policy: Annotated[str, typer.Option(help="Name under which weights are published.")] = "policy"
    checkpoints: Annotated[Path, typer.Option(help="Where versions are written; engines must see it too.")] = Path(
        "checkpoints"
    )
    wait_model: Annotated[float, typer.Option(min=0, help="Seconds to wait for --model to appear.")] = 0.0
    max_steps: Annotated[
        int | None,
        typer.Option(
            min=1, help="Steps after which the run is finished: the process stays and decides what still arrives."
        ),
    ] = None
    keep: Annotated[int, typer.Option(min=2, help="Newest versions that stay on disk.")] = 6
    seed: Annotated[int, typer.Option(help="Seed of the run.")] = 0

    def settings(self, *, threads: int, **more: Any) -> RunSettings:
        """See `RunSettings`; `more` are fields of it that only some trainers have."""
        from headrace.trainers.settings import RunSettings

        return RunSettings(
            run_id=self.run,
            policy=self.policy,
            model=self.model.absolute(),
            checkpoints=self.checkpoints,
            seed=self.seed,
            keep=self.keep,
            max_steps=self.max_steps,
            threads=threads,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class GoalFlags:
    """When a run has learned enough."""

    goal: Annotated[float | None, typer.Option(help="Mean reward at which the run ends.")] = None
    goal_samples: Annotated[int, typer.Option(min=1, help="Over so many last samples.")] = 200

    def values(self) -> dict[str, Any]:
        """By the names of `RunSettings`."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class WaitFlags:
    """What the windows of every trainer wait for."""

    window_seconds: Annotated[
        float | None, typer.Option(min=0.001, help="Or fewer, when one has waited for so long (never).")
    ] = None
    group_timeout: Annotated[float, typer.Option(min=0.001, help="Seconds until an incomplete group closes.")] = 300.0
    require_reward: Annotated[
        list[str] | None,
        typer.Option(help="A reward that members wait for, such as a grader's (may be given again)."),
    ] = None
    accept_external: Annotated[bool, typer.Option(help="Learn from traffic that nobody enqueued.")] = False

    def waits(self) -> dict[str, Any]:
        """As fields of `WindowSettings`."""
        return {
            "seconds": self.window_seconds,
            "group_timeout_seconds": self.group_timeout,
            "require_rewards": tuple(self.require_reward or ()),
            "accept_external": self.accept_external,
        }


@dataclass(frozen=True, kw_only=True)
class WindowFlags(WaitFlags):
    """Windows of groups whose members are compared with each other."""

    window_groups: Annotated[int, typer.Option(min=1, help="Complete groups a window.")] = 10
    window_samples: Annotated[int | None, typer.Option(min=1, help="Or so many samples of complete groups.")] = None
    group_size: Annotated[int | None, typer.Option(min=1, help="Samples a group (what its tasks say).")] = None
    incomplete: Annotated[str, typer.Option(help="An incomplete group that times out: train or drop.")] = "train"
    thin_below: Annotated[int, typer.Option(min=1, help="Fewer members with a reward make a group thin.")] = 2
    thin: Annotated[str, typer.Option(help="What becomes of a thin group: train or drop.")] = "train"
    zero_variance: Annotated[
        str | None, typer.Option(help="And of one whose rewards are equal: train or drop (train; dapo: drop).")
    ] = None
    ungrouped: Annotated[
        str, typer.Option(help="Samples without a group: drop, or a window, running or value baseline.")
    ] = "drop"
    skip_solved: Annotated[float | None, typer.Option(help="Drop groups with so high a mean reward (none).")] = None
    curriculum: Annotated[
        str | None,
        typer.Option(metavar="MODULE_OR_FILE:FUNCTION", help="Gets a complete group; its text is a reason to drop it."),
    ] = None
    max_staleness: Annotated[int, typer.Option(min=0, help="Most versions a sample may be behind.")] = 3

    def settings(self, run: RunFlags, *, zero_variance: str = "train") -> WindowSettings:
        """See `WindowSettings`; `zero_variance` is the policy where no flag gives one."""
        from headrace.trainers.window_settings import WindowSettings

        return WindowSettings(
            run_id=run.run,
            policy=run.policy,
            groups=self.window_groups,
            samples=self.window_samples,
            group_size=self.group_size,
            incomplete=self.incomplete,
            thin_below=self.thin_below,
            thin=self.thin,
            zero_variance=self.zero_variance or zero_variance,
            ungrouped=self.ungrouped,
            skip_solved=self.skip_solved,
            curriculum=self.curriculum,
            max_staleness=self.max_staleness,
            **self.waits(),
        )

    def looks(self) -> Curriculum | None:
        """The function that --curriculum names.

        Raises:
            AgentLoadError: there is none.
        """
        from headrace.streams.runner.loading import load_object

        return None if self.curriculum is None else load_object(self.curriculum, "my_curriculum.py:skip_solved")


@dataclass(frozen=True, kw_only=True)
class OptimizerFlags:
    """Of AdamW."""

    lr: LearningRate = 1e-3
    weight_decay: Annotated[float, typer.Option(min=0, help="Weight decay of AdamW.")] = 0.0
    max_grad_norm: Annotated[float, typer.Option(help="Gradients are scaled down to this norm.")] = 1.0


@dataclass(frozen=True, kw_only=True)
class StepFlags(OptimizerFlags):
    """What the steps of policy-gradient trainers have in common."""

    entropy: Annotated[float, typer.Option(min=0, help="Coefficient of the entropy bonus.")] = 0.02
    level: Level = "trajectory"
    dtype: Annotated[str, typer.Option(help="Of the forward pass: float32 or bfloat16.")] = "float32"
    micro_batch_tokens: Annotated[int, typer.Option(min=1, help="Most tokens in the model at once.")] = 16384
    max_row_tokens: Annotated[int, typer.Option(min=2, help="Longer rows are over-long.")] = 32768
    over_long: Annotated[str, typer.Option(help="And they: drop, or cut behind a whole response.")] = "drop"

    def values(self) -> dict[str, Any]:
        """By the names of `GrpoSettings`."""
        return asdict(self)
