"""The interface of systemd: sockets in (sd_listen_fds), state out (sd_notify).

The protocol is two environment variables and datagrams (systemd.exec(5), sd_listen_fds(3), sd_notify(3)).
Without systemd everything here does nothing.
"""

from __future__ import annotations

import os
import socket
import time

from citius.errors import ConfigError

LISTEN_FDS_START = 3
"""The first passed descriptor (sd_listen_fds(3))."""


def named_sockets() -> list[tuple[int, str]]:
    """Descriptors and names of the sockets that systemd has passed to this process.

    Raises:
        ConfigError: The variables name sockets that are not open.
    """
    environ = os.environ
    if environ.get("LISTEN_PID") != str(os.getpid()):
        return []
    count = environ.get("LISTEN_FDS", "")
    if not (count.isascii() and count.isdigit()):
        raise ConfigError(
            f"LISTEN_FDS: expected the number of sockets that systemd has passed, got {count!r}; "
            "unset it, or start the server by a socket unit"
        )
    names = environ.get("LISTEN_FDNAMES", "").split(":")
    found: list[tuple[int, str]] = []
    for index in range(int(count)):
        fd = LISTEN_FDS_START + index
        try:
            os.set_inheritable(fd, False)
        except (OSError, OverflowError):
            raise ConfigError(
                f"LISTEN_FDS: {count} sockets are announced, but descriptor {fd} is not open; "
                "unset it, or start the server by a socket unit"
            ) from None
        found.append((fd, names[index] if index < len(names) else ""))
    return found


def forget() -> None:
    """Remove systemd's variables from the environment, so that child processes do not use them."""
    for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC",
                 "WATCHDOG_PID"):  # fmt: skip
        os.environ.pop(name, None)


class Notifier:
    """Reports the state of the server to the service manager, if there is one."""

    def __init__(self) -> None:
        environ = os.environ
        self.address = environ.get("NOTIFY_SOCKET", "")
        period_us = environ.get("WATCHDOG_USEC", "")
        is_for_us = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        # Half of what is expected, as sd_watchdog_enabled(3) recommends.
        self.watchdog_s = (
            int(period_us) / 2e6 if period_us.isdigit() and is_for_us and self.address else 0.0
        )

    def ready(self, status: str) -> None:
        """Report that clients are served."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Report that a reload has begun; ``ready`` ends it."""
        now_us = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=replacing the workers")

    def stopping(self) -> None:
        """Report that the server stops."""
        self._send("STOPPING=1\nSTATUS=draining")

    def alive(self) -> None:
        """Reset the watchdog."""
        self._send("WATCHDOG=1")

    def main_pid(self, pid: int) -> None:
        """Report that another process is the main process of the service."""
        self._send(f"MAINPID={pid}")

    def _send(self, text: str) -> None:
        if not self.address:
            return
        # A leading @ stands for the zero byte of the abstract namespace.
        address = "\0" + self.address[1:] if self.address[0] == "@" else self.address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            try:
                out.sendto(text.encode(), address)
            except OSError:
                return  # the manager has ended or is busy; the service continues
