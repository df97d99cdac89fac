"""What commands print for other programs."""

import json
import subprocess
import sys
import time

PROGRAM = """
import signal
from headrace.cli.options import print_json
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
print_json({"ids": ["x" * 20] * 50_000})
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_a_long_line_is_whole_though_signals_come_while_it_is_written() -> None:
    # Unbuffered, as containers often set it: there each write of Python's stdout is one write of the kernel's.
    child = subprocess.Popen([sys.executable, "-u", "-c", PROGRAM], stdout=subprocess.PIPE)
    assert child.stdout is not None
    parts: list[bytes] = []
    while part := child.stdout.read1(50_000):  # slower than it is written, so that the writer blocks
        parts.append(part)
        time.sleep(0.01)
    assert child.wait() == 0
    assert json.loads(b"".join(parts)) == {"ids": ["x" * 20] * 50_000}


STUBBORN = """
import asyncio, os, signal
from headrace.cli import options

options.LEFT_SECONDS = 0.2

async def never_ends():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

async def main():
    global left
    left = asyncio.create_task(never_ends())
    try:
        await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(60)
    finally:
        print("cleaned up")

options.run_until_signal(main())
"""


def test_a_task_that_swallows_its_cancellation_does_not_keep_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", STUBBORN], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout == "cleaned up\n"
    assert "1 tasks do not end" in done.stderr
