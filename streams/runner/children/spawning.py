"""A process of Python with a socket to it, for code of users that may not be let near this process."""

import asyncio
import os
import socket
import sys


async def spawn(module: str, *arguments: str) -> tuple[asyncio.subprocess.Process, socket.socket]:
    """Runs a module; it is given the descriptor of its socket, this process's id, and the arguments.

    It lives in a session of its own: a Ctrl-C at the terminal does not reach it, and a kill of its group reaches what
    it has started. Call it on the main thread: a child that asks for it (`dying.die_with`) dies with that.

    Returns:
        The process, and this side's socket, which does not block.

    Raises:
        OSError: no process could be started.
    """
    ours, theirs = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", module, str(theirs.fileno()), str(os.getpid()), *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return process, ours
