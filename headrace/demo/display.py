"""The live display: a reward curve, rates, staleness and the policy version."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headrace.demo.progress import Curve

BLOCKS = " ▁▂▃▄▅▆▇█"
HEIGHT = 8
WIDTH = 60
REFRESH_PER_SECOND = 4


def chart(rewards: list[float], width: int = WIDTH, height: int = HEIGHT) -> str:
    """Rewards of 0 to 1 as columns of block characters, oldest left, averaged down to the width."""
    if not rewards:
        return "\n" * (height - 1)
    size = max(1, -(-len(rewards) // width))
    columns = [sum(rewards[i : i + size]) / len(rewards[i : i + size]) for i in range(0, len(rewards), size)]
    lines: list[str] = []
    for row in range(height - 1, -1, -1):
        cells = [max(0.0, min(1.0, c * height - row)) for c in columns]
        label = "1.0 " if row == height - 1 else "0.0 " if row == 0 else "    "
        lines.append(label + "".join(BLOCKS[round(cell * (len(BLOCKS) - 1))] for cell in cells))
    return "\n".join(lines)


def _staleness(curve: Curve) -> str:
    total = sum(curve.staleness.values())
    if not total:
        return "-"
    parts = sorted(curve.staleness.items(), key=lambda item: int(item[0]))
    return "  ".join(f"{value}: {100 * count / total:.0f} %" for value, count in parts)


class Display:
    """Draws on a terminal; elsewhere it prints a plain line now and then."""

    def __init__(self, title: str, goal: float, *, quiet: bool = False) -> None:
        self._console = Console(stderr=True)
        self._title = title
        self._goal = goal
        self._live: Live | None = None
        self._quiet = quiet
        self._said = -1
        self.phase = "starting"

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._quiet:
            self._live = Live(console=self._console, refresh_per_second=REFRESH_PER_SECOND, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, phase: str, seconds: float) -> None:
        """Names what happens now."""
        self.phase = phase
        if self._live is None and not self._quiet:
            print(f"{seconds:6.1f} s  {phase}", file=sys.stderr, flush=True)

    def update(self, curve: Curve, rates: dict[str, int], seconds: float) -> None:
        """Draws the state of now."""
        if self._live is not None:
            self._live.update(self._panel(curve, rates, seconds))
            return
        if not self._quiet and curve.points and curve.steps // 10 > self._said:
            self._said = curve.steps // 10
            point = curve.points[-1]
            print(
                f"{seconds:6.1f} s  step {curve.steps}  reward {point.reward:.2f}  version {curve.policy_version}",
                file=sys.stderr,
                flush=True,
            )

    def _panel(self, curve: Curve, rates: dict[str, int], seconds: float) -> Panel:
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim")
        facts.add_column()
        reward = f"{curve.points[-1].reward:.2f}" if curve.points else "-"
        facts.add_row("reward", f"{reward} of {self._goal} wanted")
        facts.add_row("steps / samples", f"{curve.steps} / {curve.samples}")
        facts.add_row("policy version", str(curve.policy_version))
        facts.add_row("staleness", _staleness(curve))
        facts.add_row("dropped", ", ".join(f"{r}: {n}" for r, n in sorted(curve.dropped.items())) or "none")
        for name in sorted(rates):
            if name.endswith("_per_second"):
                facts.add_row(name.removesuffix("_per_second").replace("_", " ") + " / s", str(rates[name]))
        body = Group(Text(chart([p.reward for p in curve.points]), style="green"), Text(), facts)
        return Panel(
            body, title=self._title, subtitle=f"{self.phase}, {seconds:.0f} s", width=min(100, self._console.width)
        )
