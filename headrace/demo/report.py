"""What the demo leaves behind: the summary on the terminal, `curve.json`, `curve.png`, `summary.json`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from headrace.demo.checker import Verdict
from headrace.demo.plan import Plan
from headrace.demo.progress import Curve

MIB = 1024 * 1024


@dataclass(frozen=True)
class Costs:
    """What each part took.

    Attributes:
        cpu: CPU seconds from the ready line to the drain.
        ready: seconds from the start of the first process to the ready line.
        pss: bytes, each part with its children, while training.
    """

    cpu: dict[str, float]
    ready: dict[str, float]
    pss: dict[str, int]

    def cpu_ms_per_rollout(self, rollouts: int) -> float:
        """CPU milliseconds of all parts a rollout."""
        return 1000 * sum(self.cpu.values()) / max(1, rollouts)


@dataclass(frozen=True)
class Outcome:
    """A finished demo."""

    plan: Plan
    kafka_version: str
    seconds: float
    verdict: Verdict
    curve: Curve
    costs: Costs
    budget: float
    """Seconds of learning after which it gives up."""

    @property
    def reached(self) -> bool:
        """The goal was reached, and nothing was lost or doubled."""
        last = self.verdict.reward_last
        return last is not None and last >= self.plan.task.goal and self.verdict.clean

    def shortfall(self) -> str | None:
        """Why the goal was not reached, for a person; None where it was."""
        if not self.verdict.clean:
            return "the topics show lost or doubled rollouts"
        if not self.reached:
            return (
                f"the goal of {self.plan.task.goal} was not reached in {self.budget:.0f} s of learning; "
                "a busy machine needs more: --budget"
            )
        return None

    def line(self) -> dict[str, Any]:
        """The last line of `headrace demo --json`."""
        verdict = self.verdict
        return {
            "run_id": self.plan.run_id,
            "bootstrap": self.plan.bootstrap,
            "kafka_version": self.kafka_version,
            "task": self.plan.task.name,
            "engine": self.plan.engine,
            "seed": self.plan.seed,
            "seconds": round(self.seconds, 1),
            "steps": verdict.steps,
            "samples": verdict.samples,
            "reward_first": verdict.reward_first,
            "reward_last": verdict.reward_last,
            "policy_version": verdict.policy_version,
            "lost": verdict.lost,
            "trained_twice": len(verdict.trained_twice),
        }


def write(outcome: Outcome) -> None:
    """Writes curve.json, curve.png and summary.json into the demo's folder."""
    out = outcome.plan.out
    points = [asdict(p) for p in outcome.curve.points]
    (out / "curve.json").write_text(json.dumps({"goal": outcome.plan.task.goal, "points": points}, indent=1))
    costs = outcome.costs
    produced = outcome.verdict.produced
    summary = {
        **outcome.line(),
        "reached": outcome.reached,
        "produced": produced,
        "failed": outcome.verdict.failed,
        "dropped": outcome.verdict.dropped,
        "staleness": outcome.curve.staleness,
        "cpu_ms_per_rollout": costs.cpu_ms_per_rollout(produced),
        "cpu_seconds": costs.cpu,
        "ready_seconds": costs.ready,
        "pss_mib": {name: value // MIB for name, value in costs.pss.items()},
        "pss_mib_all": sum(costs.pss.values()) // MIB,
    }
    (out / "summary.json").write_text(json.dumps(summary, indent=1))
    draw(outcome, out / "curve.png")


def draw(outcome: Outcome, path: Path) -> None:
    """The reward curve as a picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    points = outcome.curve.points
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    axes.plot([p.seconds for p in points], [p.reward for p in points], color="tab:blue", linewidth=1.5)
    axes.axhline(outcome.plan.task.goal, color="tab:green", linestyle="--", linewidth=1, label="goal")
    axes.axhline(outcome.plan.task.chance, color="tab:gray", linestyle=":", linewidth=1, label="chance")
    axes.set(
        xlabel="seconds since the first process was started",
        ylabel="mean reward of a window",
        ylim=(0, 1.02),
        title=f"{outcome.plan.task.name}: {outcome.verdict.samples} samples, {outcome.verdict.steps} steps",
    )
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def show(outcome: Outcome, console: Console) -> None:
    """The summary for a person."""
    verdict, costs = outcome.verdict, outcome.costs
    table = Table(title=f"headrace demo: {outcome.plan.task.name}, seed {outcome.plan.seed}", show_header=False)
    reward = [f"{r:.2f}" if r is not None else "-" for r in (verdict.reward_first, verdict.reward_last)]
    table.add_row(
        "mean reward, first and last 200 samples", f"{reward[0]} → {reward[1]} (goal {outcome.plan.task.goal})"
    )
    what = "seconds to the goal" if outcome.reached else "seconds (goal not reached)"
    table.add_row(what, f"{outcome.seconds:.1f}")
    table.add_row("samples / steps / policy version", f"{verdict.samples} / {verdict.steps} / {verdict.policy_version}")
    table.add_row("tasks produced, failed", f"{verdict.produced}, {verdict.failed}")
    table.add_row("lost, trained twice", f"{verdict.lost}, {len(verdict.trained_twice)}")
    table.add_row("dropped", ", ".join(f"{r} {n}" for r, n in sorted(verdict.dropped.items())) or "none")
    table.add_row("CPU of all parts", f"{costs.cpu_ms_per_rollout(verdict.produced):.1f} ms a rollout")
    table.add_row("memory of all parts", f"{sum(costs.pss.values()) // MIB} MiB PSS")
    console.print(table)
    console.print(
        f"The curve is in [bold]{outcome.plan.out / 'curve.png'}[/bold], the logs in {outcome.plan.out / 'logs'}"
    )
    for what, ids in (
        ("without a terminal state", verdict.not_ended),
        ("without a trajectory", verdict.no_trajectory),
        ("in no training step", verdict.undecided),
        ("assembled twice", verdict.trajectory_twice),
        ("trained twice", verdict.trained_twice),
    ):
        if ids:
            console.print(f"[red]{len(ids)} rollouts {what}[/red]: {', '.join(ids[:5])} ...")
