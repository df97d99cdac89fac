"""A trainer that is killed by SIGKILL at a point of its nth publication: `dying.py SETTINGS_JSON POINT N`."""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from headrace.streams.kafka.transactional.transactions import Transactions
from headrace.streams.settings import load_settings
from headrace.trainers.grpo.settings import settings_from
from headrace.trainers.publish import Publisher
from tests.trainers.pipeline import loop


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(arguments: str, point: str, nth: int) -> None:
    given: dict[str, Any] = json.loads(arguments)
    publications = 0
    publish, retrying = Publisher.publish, Transactions._retrying

    def counting(self: Publisher, records: Any, *rest: Any) -> None:
        nonlocal publications
        publications += len(records) > 1
        if point == "before" and publications == nth:
            die()
        publish(self, records, *rest)
        if point == "after" and publications == nth:
            die()

    def watching(self: Transactions, what: str, call: Any) -> None:
        if point == "in" and publications == nth and what == "commit":
            # All that belongs to the transaction is in the log, and nothing of it is committed.
            assert self._producer.flush(10) == 0
            die()
        retrying(self, what, call)

    Publisher.publish = counting  # type: ignore[method-assign]
    Transactions._retrying = watching  # type: ignore[method-assign]
    torch.set_num_threads(1)
    settings = load_settings(**given["settings"])
    arithmetic = settings_from(given["arithmetic"])
    loop(settings, Path(given["model"]), Path(given["tmp"]), arithmetic=arithmetic).run(threading.Event())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
