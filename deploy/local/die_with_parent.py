"""Become a program that the kernel kills when the process that started it dies. Run by `process.spawn`, not imported.

usage: python -I -S die_with_parent.py PARENT_PID COMMAND [ARGUMENT ...]

An exec wrapper, since a `preexec_fn` may deadlock in a parent with threads. Linux only; elsewhere it just execs.
"""

import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main() -> None:
    """Ask for the signal, then make sure that the parent had not died before."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
    os.execvp(sys.argv[2], sys.argv[2:])


main()
