"""The demo over many seeds: seconds, rewards, cost. `python tests/bench/demo.py [--seeds 20] [--task pick-digit] ...`

Prints a Markdown table, a row a seed and the summary at the end, as docs/benchmarks.md has it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.executable).parent / "headrace")


def run(seed: int, options: list[str], out: Path) -> dict[str, Any]:
    """The summary of one demo, with its exit code."""
    demo = subprocess.run(
        [COMMAND, "demo", "--seed", str(seed), "--json", "--out", str(out), *options], capture_output=True, text=True
    )
    if not (out / "summary.json").exists():
        print(demo.stderr[-2000:], file=sys.stderr)
        return {"seed": seed, "exit_code": demo.returncode}
    return {**json.loads((out / "summary.json").read_text()), "exit_code": demo.returncode}


def main() -> None:
    """Runs the seeds one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--task", default="pick-digit")
    parser.add_argument("--engine", default="builtin")
    args = parser.parse_args()
    options = ["--task", args.task, "--engine", args.engine]
    print(
        "| seed | seconds | steps | samples | reward first → last | CPU ms a rollout | PSS MiB | lost | trained twice |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    done: list[dict[str, Any]] = []
    for seed in range(args.first, args.first + args.seeds):
        with tempfile.TemporaryDirectory() as folder:
            s = run(seed, options, Path(folder))
        if "seconds" not in s:
            print(f"| {seed} | failed with exit code {s['exit_code']} |", flush=True)
            continue
        done.append(s)
        print(
            f"| {seed} | {s['seconds']} | {s['steps']} | {s['samples']} "
            f"| {s['reward_first']:.2f} → {s['reward_last']:.2f} | {s['cpu_ms_per_rollout']:.1f} "
            f"| {s['pss_mib_all']} | {s['lost']} | {s['trained_twice']} |",
            flush=True,
        )
    reached = sum(s["exit_code"] == 0 for s in done)
    if not done:
        raise SystemExit("no run ended")
    seconds = [s["seconds"] for s in done]
    cpu_ms = statistics.median(s["cpu_ms_per_rollout"] for s in done)
    print(
        f"\n{reached} of {args.seeds} reached the goal. Seconds: median {statistics.median(seconds)}, "
        f"longest {max(seconds)}. CPU: median {cpu_ms:.1f} ms a rollout."
    )
    parts = sorted({name for s in done for name in s["cpu_seconds"]})
    print("\n| part | CPU ms a rollout (median) | ready after (median, s) | PSS MiB (median) |\n|---|---|---|---|")
    for part in parts:
        cpu = [1000 * s["cpu_seconds"].get(part, 0) / s["produced"] for s in done]
        ready = [s["ready_seconds"][part] for s in done if part in s["ready_seconds"]]
        pss = [s["pss_mib"][part] for s in done if part in s["pss_mib"]]
        print(
            f"| {part} | {statistics.median(cpu):.2f} | {statistics.median(ready):.1f} | {statistics.median(pss):.0f} |"
            if ready and pss
            else f"| {part} | {statistics.median(cpu):.2f} | | |"
        )


if __name__ == "__main__":
    main()
