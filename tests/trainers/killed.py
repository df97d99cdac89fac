"""Lives of a trainer that are ended by SIGKILL at random moments: `killed.py GIVEN_JSON`; prints what each had done.

One process imports torch, and forks a trainer for each life, which then begins at once.
"""

import json
import os
import random
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch

from headrace.streams.settings import load_settings
from tests.trainers.pipeline import loop

WHILE_JOINING = 0.25  # so many of the kills do not wait for the trainer to have joined
JOINING_SECONDS = 0.3
WORKING_SECONDS = 0.5
WAIT_SECONDS = 60.0


def live(given: dict[str, Any], joined: int) -> None:
    """A trainer until it is killed; writes a byte to `joined` when it works."""

    def tell(facts: dict[str, Any]) -> None:
        os.write(joined, b"j")

    settings = load_settings(**given["settings"])
    loop(settings, Path(given["model"]), Path(given["tmp"])).run(threading.Event(), tell)


def life(given: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Starts a trainer, kills it some time later."""
    joining, heard = rng.random() < WHILE_JOINING, False
    seconds = rng.uniform(0.0, JOINING_SECONDS if joining else WORKING_SECONDS)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            live(given, theirs)
        finally:
            os._exit(1)  # it ends by the kill alone
    os.close(theirs)
    try:
        if not joining:
            heard = bool(select.select([ours], [], [], WAIT_SECONDS)[0]) and os.read(ours, 1) == b"j"
        time.sleep(seconds)
    finally:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(ours)
    return {"joined": heard, "killed": os.WIFSIGNALED(status), "after": round(seconds, 3)}


def main(arguments: str) -> None:
    given: dict[str, Any] = json.loads(arguments)
    torch.set_num_threads(1)
    rng = random.Random(given["seed"])
    for _ in range(given["kills"]):
        sys.stdout.write(json.dumps(life(given, rng)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
