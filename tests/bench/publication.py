"""How long a publication takes until every engine serves it, and whether a paused or dead engine holds up the others.

    .venv/bin/python tests/bench/publication.py MODEL_DIR [--versions 20]

Three built-in engines and one sync. Versions of the model with changed weights are written and published in a
transaction, as trainers do; a version is served when GET /headrace/weights says so. First all three live, then one of
them is paused (SIGSTOP), then another one is killed as well (SIGKILL); the paused one goes on at the end and has to
come to the newest version. Prints one JSON object; times in milliseconds, from before the transaction to the answer.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp
from synthetic import add_bootstrap, begin, broker, fresh_settings

from headrace.streams.settings import Settings
from headrace.trainers.checkpoint import Checkpoints
from headrace.trainers.models.loading import read_tensors
from headrace.trainers.publish import Publisher, resources_update

ENGINES = 3
LOOK_SECONDS = 0.005
PATIENCE_SECONDS = 30.0
GAP_SECONDS = 0.3  # between two publications; a trainer of the demo publishes about once a second


class Engine:
    """A process, and where it serves."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "an engine did not start; its log is on stderr"
        self.url = json.loads(line)["endpoint"]

    async def serves(self, session: aiohttp.ClientSession, version: int) -> float:
        """When it serves the version, or a newer one."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            async with session.get(f"{self.url}/headrace/weights") as answer:
                if (await answer.json())["version"] >= version:
                    return time.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
        raise TimeoutError(f"{self.url} does not serve version {version}")


class Publications:
    """The trainer's part: versions on disk, each published with its transaction."""

    def __init__(self, settings: Settings, model: Path, folder: Path) -> None:
        self._tensors = read_tensors(model)
        self._checkpoints = Checkpoints(folder, "run", keep=6)
        self._checkpoints.use(self._checkpoints.adopt(model, "policy", 0))
        self._publisher = Publisher(settings, "run", lambda: False)
        self.version = 0

    def next(self) -> float:
        """Publishes a version; when it began to."""
        self.version += 1
        for tensor in self._tensors.values():
            tensor.add_(1e-6)
        weights = self._checkpoints.write(self._tensors, "policy", self.version, None)
        began = time.monotonic()
        self._publisher.publish([resources_update(weights, "run", self.version)])
        self._checkpoints.prune()
        return began

    def close(self) -> None:
        """Lets the producer go."""
        self._publisher.close()


def figures(waits: Sequence[float]) -> dict[str, Any]:
    """Of seconds."""
    ordered = sorted(waits)
    return {
        "publications": len(ordered),
        "p50": round(1e3 * statistics.median(ordered), 1),
        "p90": round(1e3 * ordered[int(0.9 * (len(ordered) - 1))], 1),
        "longest": round(1e3 * ordered[-1], 1),
    }


async def measure(engines: Sequence[Engine], publications: Publications, versions: int) -> dict[str, Any]:
    """The three parts, one after the other."""
    async with aiohttp.ClientSession() as session:

        async def part(alive: Sequence[Engine], count: int) -> dict[str, Any]:
            waits: list[float] = []
            for _ in range(count):
                began = await asyncio.to_thread(publications.next)
                served = await asyncio.gather(*(e.serves(session, publications.version) for e in alive))
                waits.append(max(served) - began)
                await asyncio.sleep(GAP_SECONDS)
            return figures(waits)

        one, paused, killed = engines
        await part(engines, 2)  # warm
        found = {"all_live": await part(engines, versions)}
        paused.process.send_signal(signal.SIGSTOP)
        found["one_paused"] = await part((one, killed), versions)
        killed.process.kill()
        found["one_paused_one_dead"] = await part((one,), versions)
        paused.process.send_signal(signal.SIGCONT)
        began = time.monotonic()
        found["paused_one_catches_up"] = round(1e3 * (await paused.serves(session, publications.version) - began), 1)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--versions", type=int, default=20)
    add_bootstrap(parser)
    args = parser.parse_args()
    with broker(args.bootstrap) as (bootstrap, _), tempfile.TemporaryDirectory() as folder:
        settings = fresh_settings(bootstrap, 1)
        started = [begin(settings, "engine", "builtin", str(args.model)) for _ in range(ENGINES)]
        started.append(begin(settings, "sync"))
        try:
            engines = [Engine(process) for process in started[:ENGINES]]
            assert started[-1].stdout is not None
            assert started[-1].stdout.readline(), "sync did not start; its log is on stderr"
            publications = Publications(settings, args.model.absolute(), Path(folder))
            try:
                print(json.dumps(asyncio.run(measure(engines, publications, args.versions))))
            finally:
                publications.close()
        finally:
            for process in started:
                if process.poll() is None:
                    os.kill(process.pid, signal.SIGCONT)
                    process.terminate()
            for process in started:
                process.wait(30)


if __name__ == "__main__":
    main()
