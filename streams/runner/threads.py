"""Threads for sync agents. One that hangs is left behind; its slot goes to a new thread.

`ThreadPoolExecutor` has a fixed number of threads, which hanging agents would use up, and waits for them at exit.
"""

import contextvars
import queue
import threading
from collections.abc import Callable

Work = tuple[contextvars.Context, Callable[[], None]]
IDLE_SECONDS = 30.0


class AgentThreads:
    """Runs each function on an idle thread, or on a new one."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._count = 0

    def submit(self, context: contextvars.Context, function: Callable[[], None]) -> None:
        """Runs a function, which must not raise, in a context."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                new = False
            else:
                self._count += 1
                new = True
        self._work.put((context, function))
        if new:
            threading.Thread(target=self._run, name=f"agent-{self._count}", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                context, function = self._work.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._idle:  # nothing was promised to this thread meanwhile
                        self._idle -= 1
                        return
                continue
            context.run(function)
            del context, function  # a thread that waits keeps no rollout alive
            with self._lock:
                self._idle += 1
