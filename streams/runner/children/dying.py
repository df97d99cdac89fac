"""A child that outlives its parent would work on what is long started elsewhere."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with(parent: int) -> None:
    """Asks the kernel to kill this process when its parent dies (prctl(2)); elsewhere the closed socket has to do.

    Call it on the main thread of a process that `parent`'s main thread has started.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    if os.getppid() != parent:  # it died before it was asked for
        os._exit(1)
