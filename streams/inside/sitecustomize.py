"""Runs first in every Python process of another environment: each dies with the process that started it."""

import os
import signal
import sys

if sys.platform == "linux" and os.environ.get("HEADRACE_DIE_WITH_PARENT"):
    import ctypes

    PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the request was made; then init, or a subreaper, has taken this process over.
    if os.environ["HEADRACE_DIE_WITH_PARENT"] != str(os.getppid()) and os.getppid() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    os.environ["HEADRACE_DIE_WITH_PARENT"] = str(os.getpid())
