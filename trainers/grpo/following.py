"""Further ranks of a trainer: processes of its own that take part in each step and do nothing else.

Rank 0 is the trainer: it reads, decides, publishes, and tells the others what to do. They end with it.
"""

import json
import logging
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headrace.trainers.grpo.settings import GrpoSettings, settings_from
from headrace.trainers.ranks import GlooRanks, RankLostError, Ranks

log = logging.getLogger(__name__)
END_SECONDS = 10.0


@contextmanager
def ranks_of(settings: GrpoSettings, size: int, threads: int) -> Generator[Ranks]:
    """Starts size - 1 processes and joins them; one process alone needs none.

    Raises:
        RankLostError: one of them could not join.
    """
    if size == 1:
        yield Ranks()
        return
    with tempfile.TemporaryDirectory(prefix="headrace-ranks-") as folder:
        store = f"{folder}/store"
        given = json.dumps({"size": size, "store": store, "threads": threads, "settings": asdict(settings)})
        command = [sys.executable, "-m", "headrace.trainers.grpo.following", given]
        others = [subprocess.Popen([*command, str(rank)]) for rank in range(1, size)]
        ranks: GlooRanks | None = None
        try:
            ranks = GlooRanks(0, size, store)
            yield ranks
            ranks.share(("end",))
        finally:
            if ranks is not None:
                ranks.close()
            for process in others:
                _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def follow(given: dict[str, Any], rank: int) -> None:
    """Does what rank 0 says until it says `end`."""
    import torch

    from headrace.trainers.grpo.algorithm import Grpo

    torch.set_num_threads(int(given["threads"]))
    settings = settings_from(given["settings"])
    ranks = GlooRanks(rank, int(given["size"]), given["store"])
    algorithm = Grpo(settings, "", ranks)
    while True:
        what, *values = ranks.share(None)
        if what == "end":
            break
        if what == "load":
            algorithm.load(Path(values[0]))
        elif what == "restore":
            algorithm.restore(Path(values[0]), values[1])
        else:
            algorithm.learner.step(values[0])
    ranks.close()


def main() -> None:
    """The process of one rank: `following.py JSON RANK`."""
    for number in (signal.SIGINT, signal.SIGTERM):  # rank 0 ends it
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(level="INFO", stream=sys.stderr)
    try:
        follow(json.loads(sys.argv[1]), int(sys.argv[2]))
    except RankLostError as error:
        log.error("%s", error)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
