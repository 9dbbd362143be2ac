"""No connection is starved by another, and nothing is kept for one without bound."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import PLAIN, Peer, Server, application, processor_share, request, text, wait_for

STARVED_S = 10.0
PARKED_KB_MAX = 100 * 1024


def pss_kb(server: Server) -> int:
    """Proportional set size of the process."""
    found = re.search(
        r"^Pss:\s+(\d+) kB", Path(f"/proc/{server.process.pid}/smaps_rollup").read_text(), re.M
    )
    assert found is not None
    return int(found[1])


def stands_still(server: Server, path: str) -> int:
    """The number at ``path`` once it has stopped growing."""
    seen: list[int] = []

    def is_still() -> bool:
        seen.append(int(server.get(path).body))
        return len(seen) > 20 and seen[-1] == seen[-20]

    wait_for(is_still, f"{path} to stand still")
    return seen[-1]


HEAVY = application("fairness_app")


@contextmanager
def flood(server: Server, path: str) -> Iterator[Peer]:
    """A connection that always has a request more on its way, and reads what it gets."""
    is_over = threading.Event()
    with server.connect() as peer:

        def ask() -> None:
            # Cut anywhere: what is sent goes on where the last piece ended.
            block = request(path) * 500
            sent = 0
            peer.socket.settimeout(0.05)
            while not is_over.is_set():
                try:
                    sent += peer.socket.send(block[sent % len(block) :])
                except TimeoutError:
                    continue

        def drain() -> None:
            while not is_over.is_set():
                try:
                    if not peer.socket.recv(1 << 20):
                        return
                except TimeoutError:
                    continue

        threads = [threading.Thread(target=work) for work in (ask, drain)]
        for thread in threads:
            thread.start()
        try:
            yield peer
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
            peer.reset()


def test_one_flooding_connection_does_not_starve_the_others(serve) -> None:
    server: Server = serve(HEAVY, "--no-access-log", env=PLAIN)
    with flood(server, "/busy"):
        wait_for(lambda: processor_share(server) > 0.05, "the flood to arrive")
        for _ in range(3):
            with server.connect() as peer:
                peer.socket.settimeout(STARVED_S)
                assert text(peer, "/") == "Hello"


def test_large_answers_behind_a_slow_one_stop_reading(serve) -> None:
    server: Server = serve(HEAVY, "--no-access-log", env=PLAIN)
    server.get("/")
    before_kb = pss_kb(server)
    peers = [server.connect() for _ in range(2)]
    for peer in peers:
        peer.send(request("/slow") + request("/large/4000000") * 127)
    made = stands_still(server, "/made")
    assert pss_kb(server) - before_kb < PARKED_KB_MAX
    assert 1 <= made < 127
    server.get("/open")
    for peer in peers:
        assert peer.reply().body == b"slow"
        for _ in range(5):
            assert len(peer.reply().body) == 4_000_000
        peer.reset()


def test_a_half_closed_pipeline_gets_all_its_answers(serve) -> None:
    server: Server = serve(HEAVY, "--no-access-log")
    for path, count, size in (
        ("/", 400, 5),
        ("/large/1000000", 5, 10**6),
        ("/large/1000000", 40, 10**6),
    ):
        with server.connect() as peer:
            peer.send(request(path) * count)
            peer.socket.shutdown(socket.SHUT_WR)
            assert [len(peer.reply().body) for _ in range(count)] == [size] * count
            assert peer.is_closed()
