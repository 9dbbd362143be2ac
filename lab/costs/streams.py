"""Server-sent events on many open streams: `streams.py [--streams N] [--rounds N]`.

Opens streams on one server after the other, on one core, and prints what each stream takes of memory, and
each event of the server's CPU time: events of their own for all streams, and one event for all of 500. The
servers are the lab's contestants `events-citius` and `events-axum` (`citius lab build events-axum` builds
it); they take turns, so that the load of the machine meets both. Each side needs a descriptor per stream.
"""

from __future__ import annotations

import argparse
import os
import resource
import select
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "lab"))

from citius_lab import paths  # noqa: E402
from citius_lab.definitions import contestants  # noqa: E402
from citius_lab.processes import launch  # noqa: E402

BROADCAST = 500
# Ends each event of the contestants.
END = b"again\n\n"
SERVER_CPU, OWN_CPU = 0, 1


class Streams:
    """Open streams of one kind, whose events are counted."""

    def __init__(self, port: int, path: str, number: int) -> None:
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._count = 0
        for _ in range(number):
            one = socket.create_connection(("127.0.0.1", port))
            one.sendall(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode())
            head = one.recv(4096)
            if not head.startswith(b"HTTP/1.1 200"):
                sys.exit(f"streams: {head!r}")
            one.setblocking(False)
            self._poll.register(one.fileno(), select.EPOLLIN)
            self._sockets[one.fileno()] = one

    def wait_for(self, events: int) -> None:
        """Wait until so many events have come to all streams together."""
        deadline = time.monotonic() + 60
        while self._count < events:
            if time.monotonic() > deadline:
                sys.exit(f"streams: {self._count} of {events} events came")
            for descriptor, _ in self._poll.poll(1.0):
                self._count += self._sockets[descriptor].recv(65536).count(END)
        if self._count != events:
            sys.exit(f"streams: {self._count} events came, expected {events}")
        self._count = 0

    def close(self) -> None:
        """Leave."""
        for one in self._sockets.values():
            one.close()


def post(port: int, path: str) -> int:
    """Have events sent; return to how many streams."""
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(
            b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            % path.encode()
        )
        response = b""
        while piece := one.recv(4096):
            response += piece
    return int(response.partition(b"\r\n\r\n")[2])


def cpu_us(pid: int) -> float:
    """Return the CPU time of a process and its children."""
    return sum(launch.cpu_clocks_s(launch.tree(pid)).values()) * 1e6


def measure(name: str, number: int) -> dict[str, float]:
    """Return the figures of one server."""
    found = contestants.load([paths.lab_root() / "contestants"])[name]
    with (
        tempfile.TemporaryDirectory() as folder,
        launch.Server(found, workers=1, cpus=(SERVER_CPU,), log_path=Path(folder, "log")) as server,
    ):
        figures: dict[str, float] = {}
        for path, n_streams, times in (("/own", number, 3), ("/all", BROADCAST, 40)):
            idle = launch.pss_kib(launch.tree(server.pid))
            began = cpu_us(server.pid)
            streams = Streams(server.port, path, n_streams)
            opened = cpu_us(server.pid) - began
            grown = launch.pss_kib(launch.tree(server.pid)) - idle
            if path == "/own":
                figures["KiB per open stream"] = grown / n_streams
                figures["CPU us per stream opened"] = opened / n_streams
            post(server.port, path)
            streams.wait_for(n_streams)
            began = cpu_us(server.pid)
            for _ in range(times):
                reached = post(server.port, path)
                if reached != n_streams:
                    sys.exit(f"streams: {reached} of {n_streams} streams are open")
                streams.wait_for(n_streams)
            spent = (cpu_us(server.pid) - began) / times / n_streams
            figures[f"CPU us per event, {'each its own' if path == '/own' else 'one for all'}"] = (
                spent
            )
            streams.close()
        return figures


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=10_000, help="streams that are open at once")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each server")
    given = parser.parse_args()
    limit = given.streams + 1000
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (limit, max(limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    )
    os.sched_setaffinity(0, {OWN_CPU})
    names = ("events-citius", "events-axum")
    rounds = [{name: measure(name, given.streams) for name in names} for _ in range(given.rounds)]
    print(f"{given.streams} streams; medians of {given.rounds} starts; the ratio within rounds")
    print(f"{'':36}{'Citius':>10}{'axum':>10}{'ratio':>8}")
    for figure in rounds[0][names[0]]:
        citius, axum = ([one[name][figure] for one in rounds] for name in names)
        ratios = [a / b for a, b in zip(citius, axum, strict=True)]
        medians = [statistics.median(one) for one in (citius, axum, ratios)]
        print(f"{figure:36}{medians[0]:>10.1f}{medians[1]:>10.1f}{medians[2]:>8.2f}")


if __name__ == "__main__":
    main()
