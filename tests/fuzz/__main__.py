"""Coverage-guided fuzzing by hand: `python -m tests.fuzz TARGET -max_total_time=600 [-seed=1] [CORPUS]`.

Needs atheris, which is no part of the environment (`uv pip install atheris`). Whatever fails is a crash, and libFuzzer
writes the input down; `python -m tests.fuzz TARGET FILE` runs it again. The flags are libFuzzer's.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["headrace.schemas", "headrace.streams", "headrace.connectors.otlp"]):
    from tests.fuzz.targets import TARGETS

RSS_LIMIT_MB = 1024
LONGEST = 4096


def main() -> None:
    """Runs until libFuzzer's flags say stop."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(f"python -m tests.fuzz TARGET: one of {', '.join(TARGETS)}")
    target = TARGETS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(target.seeds):
            Path(folder, f"seed-{number}").write_bytes(seed)
        given = [*sys.argv[:1], *sys.argv[2:]]
        files = [argument for argument in given[1:] if Path(argument).is_file()]
        corpus = [] if files else [folder]
        atheris.Setup([*given, f"-rss_limit_mb={RSS_LIMIT_MB}", f"-max_len={LONGEST}", *corpus], target.run)
        atheris.Fuzz()


main()
