"""`python -m tests.chaos --kills 20 --seed 1`: kills a pipeline's processes at random and checks that it cost nothing.

The last line is a JSON object, see docs/chaos.md. Exit code 1: something was lost, or is there twice.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.chaos.machine import Options, run
from tests.chaos.members import parts_but
from tests.chaos.plan import plan

SHOWN = 20


def main() -> None:
    """Runs it, or prints its plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gap", type=float, default=4.0, help="mean seconds between two events")
    parser.add_argument("--lease", type=float, default=30.0, help="seconds; stops last 1/3 and 4/3 of it")
    parser.add_argument("--groups", type=int, default=6, help="groups of four tasks in each period")
    parser.add_argument("--period", type=float, default=3.0, help="seconds between two batches of tasks")
    parser.add_argument("--drain", type=float, default=240.0, help="seconds that the drain may take")
    parser.add_argument("--out", type=Path, default=None, help="a folder that is not there yet")
    parser.add_argument("--without", action="append", default=[], metavar="PART", help="a part to leave out")
    parser.add_argument("--keep", action="store_true", help="keep the topics of a clean run too")
    parser.add_argument("--plan", action="store_true", help="print what would happen, and when")
    args = parser.parse_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="headrace-chaos-")) / "run"
    options = Options(
        out=out.absolute(),
        kills=args.kills,
        seed=args.seed,
        gap=args.gap,
        lease=args.lease,
        groups=args.groups,
        period=args.period,
        drain=args.drain,
        without=tuple(args.without),
        keep=args.keep,
    )
    if args.plan:
        for at, what, name in plan(options.plan_settings(parts_but(args.without))):
            print(f"{at:9.3f} {what} {name}")
        return
    line, report = run(options)
    for violation in report.violations[:SHOWN]:
        print(f"chaos: {violation.kind} {violation.id} {violation.detail}", file=sys.stderr)
    print(f"chaos: logs are in {out}", file=sys.stderr)
    print(json.dumps(line), flush=True)
    raise SystemExit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
