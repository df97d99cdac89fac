# pyright: basic, reportMissingImports=false
"""What is asked of the operating system before anything heavy is imported."""

from __future__ import annotations

import ctypes
import fcntl
import os
import secrets
import signal
import socket
import struct
import sys
from typing import Any

CLONE_NEWUSER = 0x10000000  # <linux/sched.h>
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1  # <linux/sockios.h>, <linux/if.h>


def leave_network() -> None:
    """Goes into a network namespace with nothing but a loopback of its own.

    Ray listens on all interfaces whatever address it is given; here there are none that anybody else could reach.
    """
    if sys.platform != "linux":
        raise SystemExit("a private network for Ray needs Linux: give --ray-network host")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        uid, gid = os.getuid(), os.getgid()
        if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            raise SystemExit(
                f"no network namespace for Ray ({os.strerror(ctypes.get_errno())}): allow user namespaces, or give "
                "--ray-network host where its ports may be reached by others"
            )
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = b"lo".ljust(16, b"\0")
        flags = struct.unpack_from("<h", fcntl.ioctl(any_socket, SIOCGIFFLAGS, name + bytes(24)), 16)[0]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, name + struct.pack("<h", flags | IFF_UP) + bytes(22))


def die_with(parent: int) -> None:
    """The kernel kills this process when the trainer dies; again, because a new namespace has cancelled it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def prepare(given: dict[str, Any]) -> None:
    """Environment variables, which Ray hands on to its workers."""
    for number in (signal.SIGINT, signal.SIGTERM):  # the trainer ends it
        signal.signal(number, signal.SIG_IGN)
    os.environ.update(
        RAY_AUTH_MODE="token",
        RAY_AUTH_TOKEN=secrets.token_hex(32),  # given, Ray writes none into the home directory
        RAY_USAGE_STATS_ENABLED="0",
        # Else it starts an interpreter a CPU that nobody uses.
        RAY_prestart_worker_first_driver="0",
        RAY_DISABLE_DOCKER_CPU_WARNING="1",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        OMP_NUM_THREADS=str(given["threads"]),
        TOKENIZERS_PARALLELISM="false",
    )
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ.setdefault(name, "1")
    if given["network"] == "private":
        os.environ.update(GLOO_SOCKET_IFNAME="lo", NCCL_SOCKET_IFNAME="lo")
    if given["device"] == "cpu":
        # verl's FSDP engine is registered for cuda and npu alone.
        os.environ.update(
            VERL_USE_EXTERNAL_MODULES="headrace_verl_platform", VERL_PLATFORM="cpu", VERL_ENGINE_DEVICE="cuda"
        )
