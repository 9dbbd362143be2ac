"""What goes wrong in a goroutine costs its request at most, and never the worker."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Server, wait_for

Serve = Callable[..., Server]


@pytest.fixture(params=[False, True], ids=["reactor", "pool"])
def pool(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.mark.parametrize("name", ["overflows", "overflows_in_malloc"])
def test_a_stack_overflow_is_a_500_that_says_what_to_do(
    serve_library: Serve, pool: bool, name: str
) -> None:
    server = serve_library(pool=pool, more=f"add({name!r}); add('fan_out')")
    for count in range(1, 11):
        assert server.get(f"/{name}").status == 500
        server.wait_for_log(rf"{name}: its goroutine has overflowed its stack of 262144 bytes; raise "
                            r"--goroutine-stack-bytes.*\[route /", count)  # fmt: skip
        assert server.get("/fan_out").body == b"450"
    assert server.stop() == 0


def test_an_overflow_of_a_goroutine_that_no_request_waits_for_is_logged(
    serve_library: Serve, pool: bool
) -> None:
    server = serve_library(pool=pool, more="add('child_overflows')")
    assert server.get("/child_overflows").body == b"the parent lives"
    server.wait_for_log("a goroutine has overflowed its stack; raise --goroutine-stack-bytes")
    assert server.get("/alive").body == b"yes"


def test_the_size_of_a_stack_is_an_option(serve_library: Serve) -> None:
    server = serve_library("--goroutine-stack-bytes", "32768", more="add('overflows')")
    assert server.get("/overflows").status == 500
    server.wait_for_log("its stack of 32768 bytes")


def test_mistakes_are_in_the_log(serve_library: Serve, pool: bool) -> None:
    names = ("returns_closed", "wrong_size", "closes_nothing")
    server = serve_library(pool=pool, more=f"for name in {names}: add(name)")
    assert server.get("/returns_closed").status == 500
    server.wait_for_log("returns_closed: it returned CITIUS_CLOSED: a channel is closed")
    assert server.get("/wrong_size").status == 500
    server.wait_for_log("wrong_size: it passes a value of another size than the channel's")
    assert server.get("/closes_nothing").status == 500
    server.wait_for_log("closes_nothing: it closes a channel that is NULL")


def test_whoever_keeps_the_reactor_is_named_once(serve_library: Serve) -> None:
    server = serve_library(more="add('computes'); add('returns_closed')")
    for _ in range(3):
        assert server.get("/computes?ms=60").body == b"computed"
        assert server.get("/computes?ms=60&after=1").body == b"computed"
    server.get("/returns_closed")  # what is logged before it is there when its line is
    server.wait_for_log("returned CITIUS_CLOSED")
    assert (
        len(re.findall(r"handler computes: it kept the reactor's thread for \d+ ms", server.err))
        == 1
    )
    assert len(re.findall(r"goroutines kept the reactor's thread for \d+ ms", server.err)) == 1


def test_threads_may_be_kept(serve_library: Serve) -> None:
    server = serve_library(pool=True, more="add('computes'); add('fan_out')")
    assert server.get("/computes?ms=60").body == b"computed"
    assert server.get("/fan_out").body == b"450"
    server.stop()
    assert "kept" not in server.err


def test_a_client_that_leaves_ends_the_wait(serve_library: Serve, pool: bool) -> None:
    server = serve_library(pool=pool, more="for name in ('waits', 'opens', 'tells_how'): add(name)")
    for _ in range(5):
        peer = server.connect()
        peer.send(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_for(lambda: server.get("/tells_how").body == b"-1 1", "the wait")
        peer.reset()
        wait_for(lambda: server.get("/tells_how").body == b"499 0", "its end")
    with server.connect() as peer:
        peer.send(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_for(lambda: server.get("/tells_how").body == b"-1 1", "the wait")
        assert server.get("/opens").body == b"sent"
        assert peer.reply().body == b"received"


def test_a_channel_that_is_closed_wakes_all_that_wait(serve_library: Serve, pool: bool) -> None:
    server = serve_library(pool=pool, more="add('closes_under_waiting')")
    for _ in range(5):
        assert server.get("/closes_under_waiting?each=300").body == b"900"
    assert server.stop() == 0


def test_what_goes_wrong_gives_its_place_back(serve_library: Serve, pool: bool) -> None:
    """More of each fault than there may be goroutines: a place that was lost would become a 503."""
    names = ("overflows", "child_overflows", "returns_closed", "wrong_size", "waits", "fan_out")
    server = serve_library(
        "--goroutines-max", "25", pool=pool, more=f"for name in {names}: add(name)"
    )
    for _ in range(30):
        for name in names[:4]:
            assert server.get(f"/{name}").status == (200 if name == "child_overflows" else 500)
        with server.connect() as peer:
            peer.send(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n")
            server.get("/alive")
            peer.reset()
    wait_for(lambda: server.get("/fan_out").body == b"450", "eleven places")
    assert "goroutines are running or waiting" not in server.err
    assert server.stop() == 0


def test_more_goroutines_than_the_limit_are_refused(serve_library: Serve, pool: bool) -> None:
    server = serve_library(
        "--goroutines-max", "20", pool=pool, more="for name in ('parks_many', 'sleeps'): add(name)"
    )
    assert server.get("/parks_many?count=50").status == 503

    def takes_the_last_place() -> bool:
        with server.connect() as peer:
            peer.send(b"GET /sleeps?ms=500 HTTP/1.1\r\nhost: x\r\n\r\n")
            server.get("/alive")
            refused = server.get("/sleeps")
            reply = peer.reply()
        if reply.status == 503:
            return False
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert int(reply.body) >= 500_000
        return True

    # Those that it has started wait for ever. A goroutine of a thread ends a moment after its response.
    wait_for(takes_the_last_place, "the last place")
    server.wait_for_log("requests are answered with 503: 20 goroutines are running or waiting")
    wait_for(lambda: server.get("/sleeps").status == 200, "a place")


def resident_bytes(server: Server) -> int:
    text = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
    found = re.search(r"^Rss:\s+(\d+) kB", text, re.M)
    assert found is not None
    return int(found[1]) * 1024


def test_thousands_of_parked_goroutines_are_small_and_end_with_their_channel(
    serve_library: Serve,
) -> None:
    server = serve_library(more="for name in ('parks_many', 'fan_out'): add(name)")
    assert server.get("/fan_out").body == b"450"
    before = resident_bytes(server)
    assert server.get("/parks_many?count=20000&close=0").body == b"20000"
    each = (resident_bytes(server) - before) / 20000
    # An optimized build has 4 500 bytes (lab/costs/goroutines.py); frames are larger without.
    assert each < 10_000, f"{each} bytes"
    assert server.get("/fan_out").body == b"450"
    assert server.get("/parks_many?count=20000&close=1").body == b"20000"
    assert server.get("/fan_out").body == b"450"


def test_a_stop_with_thousands_parked(serve_library: Serve, pool: bool) -> None:
    server = serve_library(pool=pool, more="for name in ('parks_many', 'waits'): add(name)")
    assert server.get("/parks_many?count=5000").body == b"5000"
    assert server.stop() == 0


def test_a_stop_ends_waiting_requests_after_the_drain(serve_library: Serve, pool: bool) -> None:
    server = serve_library(
        "--drain-s", "0.3", pool=pool, more="for name in ('waits', 'sleeps'): add(name)"
    )
    peers = [server.connect() for _ in range(50)]
    for peer in peers:
        peer.send(b"GET /sleeps?ms=100000 HTTP/1.1\r\nhost: x\r\n\r\n")
    assert server.get("/alive").body == b"yes"
    assert server.stop() == 0


def test_a_stop_waits_for_a_goroutine_that_ends_in_time(serve_library: Serve, pool: bool) -> None:
    server = serve_library(pool=pool, more="add('sleeps')")
    with server.connect() as peer:
        peer.send(b"GET /sleeps?ms=400 HTTP/1.1\r\nhost: x\r\n\r\n")
        assert server.get("/alive").body == b"yes"
        server.signal(signal.SIGTERM)
        assert int(peer.reply().body) >= 400_000
    assert server.wait() == 0


def test_a_restart_leaves_goroutines_to_the_old_worker(serve_library: Serve, pool: bool) -> None:
    server = serve_library("--workers", "2", pool=pool, more="add('sleeps')")
    with server.connect() as peer:
        peer.send(b"GET /sleeps?ms=1000 HTTP/1.1\r\nhost: x\r\n\r\n")
        server.get("/alive")
        server.signal(signal.SIGHUP)
        assert int(peer.reply().body) >= 1_000_000
    assert server.stop() == 0


def test_a_fork_in_the_middle_keeps_the_parent_serving(serve_library: Serve, pool: bool) -> None:
    server = serve_library(
        pool=pool,
        more=(
            "import os\n"
            "for name in ('parks_many', 'fan_out'): add(name)\n"
            "@app.get('/forks')\n"
            "def forks() -> str:\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        os._exit(7)\n"
            "    return str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        ),
    )
    assert server.get("/parks_many?count=100").body == b"100"
    assert server.get("/forks").body == b"7"
    assert server.get("/fan_out").body == b"450"
    assert server.stop() == 0


def test_pipelined_responses_keep_their_order(serve_library: Serve, pool: bool) -> None:
    server = serve_library(pool=pool, more="add('sleeps')")
    with server.connect() as peer:
        waits = [60, 5, 30, 1, 20]
        peer.send(
            b"".join(b"GET /sleeps?ms=%d HTTP/1.1\r\nhost: x\r\n\r\n" % wait for wait in waits)
        )
        for wait in waits:
            assert int(peer.reply().body) >= wait * 1000
