"""A system without what only Unix or only Linux has, as far as Python's own library does without it here.

Run as a program it is the command line of Citius on such a system; imported, it makes the interpreter one.
"""

# pyright: basic

import asyncio  # noqa: F401 - what is imported before keeps what it has found
import ctypes  # noqa: F401
import importlib.abc
import logging.handlers  # noqa: F401
import os
import signal
import socket
import ssl  # noqa: F401
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401

MODULES = {"fcntl", "grp", "pwd", "resource", "syslog", "termios", "uvloop"}
NAMES = {
    os: """fork forkpty register_at_fork geteuid getuid getgid getegid initgroups sysconf sched_getaffinity
        pipe2 sendfile memfd_create eventfd timerfd_create waitid chroot fchown
        getgrouplist setgroups setuid setgid O_PATH O_NOFOLLOW O_NOCTTY O_ASYNC O_DIRECTORY""",
    socket: "SO_REUSEPORT SOCK_NONBLOCK SOCK_CLOEXEC",
    signal: "setitimer pthread_sigmask sigtimedwait sigwaitinfo",
}
SIGNALS = ("SIGUSR1", "SIGUSR2", "SIGTTIN", "SIGTTOU", "SIGHUP", "SIGALRM")


class Missing(importlib.abc.MetaPathFinder):
    """Finds none of the modules."""

    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


for name in MODULES:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Missing())
for module, names in NAMES.items():
    for name in names.split():
        module.__dict__.pop(name, None)
for name in SIGNALS:
    signal.__dict__.pop(name)
    signal.Signals._member_map_.pop(name)
sys.platform = "elsewhere"

if __name__ == "__main__":
    from citius.__main__ import main

    main()
