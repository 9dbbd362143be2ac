"""``--reactor-threads``: several reactors in one process, with a GIL or without."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trustme
from citius.process.processors import has_gil, processors
from citius.rpc import Client
from pki import Pki, connect
from rig import Peer, Server, application, wait_for
from rpc_rig import rpc_address
from wspeer import RawSocket

APP = application("reactor_threads_app")
THREADS = ("--reactor-threads", "3", "--no-access-log")


@pytest.fixture
def server(serve: Callable[..., Server]) -> Server:
    return serve(APP, *THREADS, "--loop", "asyncio")


def by_thread(server: Server, stack: ExitStack) -> dict[str, Peer]:
    """A connection to each of the three."""
    found: dict[str, Peer] = {}

    def one_more() -> bool:
        peer = stack.enter_context(server.connect())
        found.setdefault(peer.request("GET", "/thread").body.decode(), peer)
        return len(found) == 3

    wait_for(one_more, "a connection to each reactor")
    return found


def test_each_serves_and_connections_stay(server: Server) -> None:
    # The server runs under the interpreter of the tests.
    assert server.err.count("take turns on this interpreter") == has_gil()
    with ExitStack() as stack:
        found = by_thread(server, stack)
        assert set(found) == {"MainThread", "citius-reactor-1", "citius-reactor-2"}
        for name, peer in found.items():
            assert peer.request("GET", "/thread").body.decode() == name
            assert peer.request("GET", "/sleep/10").body.decode() == name
            assert peer.request("GET", "/block").body.startswith(b"citius-blocking-")
            assert len(peer.request("GET", "/pieces").body) == 50_000
            for _ in range(2):
                assert peer.request("GET", "/tenant").body == b"from the start"
            assert peer.request("GET", "/nowhere").status == 404


def test_connections_are_shared_equally(server: Server) -> None:
    served: Counter[bytes] = Counter()
    with ExitStack() as stack:

        def a_dozen_more() -> bool:
            peers = [stack.enter_context(server.connect()) for _ in range(12)]
            served.update(peer.request("GET", "/thread").body for peer in peers)
            # A thread that a busy machine lets wait gets fewer at first, and more of the next dozen.
            return len(served) == 3 and len(set(served.values())) == 1

        wait_for(a_dozen_more, "as many connections for each")
        assert served.total() <= 120


def test_none_waits_for_a_reactor_that_hangs(server: Server) -> None:
    with ExitStack() as stack:
        stack.enter_context(server.connect()).send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        peers = [stack.enter_context(server.connect()) for _ in range(12)]
        assert all(peer.request("GET", "/thread").status == 200 for peer in peers)
        server.kill()


def test_many_at_once(server: Server) -> None:
    wrong: list[object] = []

    def ask() -> None:
        with server.connect() as peer:
            for _ in range(60):
                peer.send(b"GET /tenant HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
                replies = [peer.reply() for _ in range(5)]
                wrong.extend(one for one in replies if one.body != b"from the start")

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert "Traceback" not in server.err


def test_a_stop_drains_all_of_them(server: Server) -> None:
    with ExitStack() as stack:
        found = by_thread(server, stack)
        for peer in found.values():
            peer.send(b"GET /sleep/700 HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: server.err.count("sleeps") == 3, "the handlers")
        server.signal(signal.SIGTERM)
        for name, peer in found.items():
            reply = peer.reply()
            assert (reply.body.decode(), reply.headers["connection"]) == (name, "close")
    assert server.wait() == 0
    assert "hooks ['MainThread'] after 3" in server.err


def test_who_does_not_end_is_cut(serve: Callable[..., Server]) -> None:
    server = serve(APP, *THREADS, "--drain-s", "0.3", "--loop", "asyncio")
    with ExitStack() as stack:
        for peer in by_thread(server, stack).values():
            peer.send(b"GET /sleep/60000 HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: server.err.count("sleeps") == 3, "the handlers")
        begun = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - begun < 8
    assert "3 open requests were cut off" in server.err


def test_rooms_reach_all_of_them(server: Server) -> None:
    sockets: list[RawSocket] = []
    names: set[str] = set()

    def one_more() -> bool:
        sockets.append(RawSocket(server, "/room").accepted())
        sockets[-1].text("hello")
        names.add(str(sockets[-1].message()).partition(":")[0])
        return len(names) == 3

    wait_for(one_more, "a socket at each reactor")
    sockets[0].text("bye")
    for socket in sockets:
        wait_for(lambda socket=socket: str(socket.message()).endswith(": bye"), "the last message")


def test_all_of_them_speak_tls(serve: Callable[..., Server], tmp_path: Path) -> None:
    pki = Pki(trustme.CA(), tmp_path)
    certificate, key = pki.issue("localhost", "127.0.0.1")
    server = serve(APP, *THREADS, "--ssl-certfile", certificate, "--ssl-keyfile", key)
    names: set[bytes] = set()

    def one_more() -> bool:
        with connect(server, pki.client()) as peer:
            names.add(peer.request("GET", "/thread").body)
        return len(names) == 3

    wait_for(one_more, "an answer of each reactor")


def test_calls_logs_and_workers(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(
        APP, "--reactor-threads", "2", "--workers", "2", "--rpc", f"unix:{tmp_path}/rpc",
        "--access-log-format", "json",
    )  # fmt: skip
    clients = [Client(rpc_address(server), timeout_s=20) for _ in range(8)]
    for client in clients:
        assert list(client.map("add", [(n, 1) for n in range(100)])) == list(range(1, 101))
        client.close()
    for _ in range(20):
        assert server.get("/thread").status == 200
    server.signal(signal.SIGHUP)
    wait_for(lambda: "all workers are new" in server.err, "new workers")
    assert server.get("/thread").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    lines = [json.loads(line) for line in server.out.splitlines() if line.startswith("{")]
    assert sum(line.get("path", line.get("target")) == "/thread" for line in lines) == 21


WSGI = """
import sys, threading
def app(environ, start_response):
    if environ["PATH_INFO"] == "/sleep":
        print("sleeps", file=sys.stderr, flush=True)
        threading.Event().wait(float(environ["QUERY_STRING"]))
    body = b"".join([threading.current_thread().name.encode(), environ["wsgi.input"].read()])
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body] if environ["wsgi.multithread"] else []
"""


def test_wsgi_without_a_loop(serve: Callable[..., Server]) -> None:
    server = serve(WSGI, *THREADS, "--drain-s", "20")
    with ExitStack() as stack:
        found = by_thread(server, stack)
        assert set(found) == {"MainThread", "citius-reactor-1", "citius-reactor-2"}
        for name, peer in found.items():
            for _ in range(3):
                assert peer.request("POST", "/", body=b"!" * 100_000).body.startswith(name.encode())
            peer.send(b"GET /sleep?0.5 HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("sleeps", 3)
        server.signal(signal.SIGTERM)
        assert {peer.reply().body.decode() for peer in found.values()} == set(found)
    assert server.wait() == 0
    assert "cut off" not in server.err


def test_wsgi_in_threads(serve: Callable[..., Server]) -> None:
    server = serve(WSGI, *THREADS, "--threads", "4")
    names: set[str] = set()

    def ask() -> None:
        with server.connect() as peer:
            for _ in range(50):
                names.add(peer.request("POST", "/", body=b"!" * 10).body.decode())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert names == {f"citius-wsgi-{n}!!!!!!!!!!" for n in range(4)}


def test_a_hanging_call_without_a_loop_is_left_behind(serve: Callable[..., Server]) -> None:
    server = serve(WSGI, *THREADS, "--drain-s", "0.3")
    with ExitStack() as stack:
        peer = by_thread(server, stack)["citius-reactor-1"]
        peer.send(b"GET /sleep?600 HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_for_log("sleeps")
        begun = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - begun < 8
    assert "left behind" in server.err


def test_native_handlers_without_a_loop(serve: Callable[..., Server]) -> None:
    source = """
    import threading
    @app.get("/thread")
    def which(): return threading.current_thread().name
    @app.get("/block", blocking=True)
    def block(): return threading.current_thread().name
    """
    server = serve(source, *THREADS, "--loop", "none")
    with ExitStack() as stack:
        for peer in by_thread(server, stack).values():
            assert peer.request("GET", "/block").body.startswith(b"citius-blocking-")


ASGI = application("lifespan_per_loop_app")


def test_each_loop_has_its_lifespan(serve: Callable[..., Server]) -> None:
    """ASGI: lifespans "should be executed once per event loop that will be processing requests"."""
    server = serve(ASGI, *THREADS)
    with ExitStack() as stack:
        found = by_thread(server, stack)
        assert set(found) == {"MainThread", "citius-reactor-1", "citius-reactor-2"}
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    for name in found:
        assert server.err.count(f"stops in {name}.") == 1


def test_a_lifespan_that_fails_in_another_thread_ends_the_start(
    serve: Callable[..., Server],
) -> None:
    source = """
    import threading
    async def app(scope, receive, send):
        await receive()
        if threading.current_thread() is not threading.main_thread():
            return await send({"type": "lifespan.startup.failed", "message": "as the test wants it"})
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
    """
    server = serve(source, *THREADS, ready=False)
    assert server.wait() == 4
    assert "as the test wants it" in server.err


def scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
        return reply.read().decode()


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_add_up_all_reactors(serve: Callable[..., Server], workers: int) -> None:
    server = serve(APP, *THREADS, "--management", "127.0.0.1:0", "--workers", str(workers))
    port = server.management()
    with ExitStack() as stack:
        found = by_thread(server, stack)
        for peer in found.values():
            for _ in range(5):
                assert peer.request("GET", "/tenant").status == 200
            assert peer.request("GET", "/fails").status == 500
        text = scrape(port)
        assert 'citius_http_requests_total{route="/tenant",method="GET",status="2xx"} 15\n' in text
        assert 'citius_http_request_duration_seconds_count{route="/tenant"} 15\n' in text
        assert "citius_handler_exceptions_total 3\n" in text
        opened = [line for line in text.splitlines() if line.startswith("citius_connections_open{")]
        assert len(opened) == workers
        assert sum(int(line.split()[1]) for line in opened) >= 3
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready") as reply:
            assert json.load(reply)["ready"] == workers
    if workers == 2:
        # What a worker has counted stays when it goes, with that of its threads.
        server.signal(signal.SIGHUP)
        server.wait_for_log("all workers are new")
        wait_for(lambda: 'route="/tenant",method="GET",status="2xx"} 15\n' in scrape(port), "15")


def test_spans_of_all_reactors_are_exported(serve: Callable[..., Server], collector: Any) -> None:
    url, got = collector
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "PYTHONWARNINGS": "default"}
    server = serve(APP, *THREADS, "--otel", env=env)
    with ExitStack() as stack:
        for peer in by_thread(server, stack).values():
            peer.request("GET", "/tenant")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert sum(body.count(b"GET /tenant") for path, body in got if path == "/v1/traces") == 3
    assert any(path == "/v1/metrics" for path, _ in got)


def test_a_thread_that_hangs_is_the_worker_s_end(serve: Callable[..., Server]) -> None:
    server = serve(APP, *THREADS, "--supervisor", "--worker-timeout-s", "1", "--drain-s", "0.2")
    with ExitStack() as stack:
        peer = by_thread(server, stack)["citius-reactor-2"]
        peer.send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        stack = server.wait_for_log(
            r"citius-reactor-2 has not turned its loop for .*; it is in\n(?s:.*)"
        )
        assert "time.sleep(600)" in stack[0]
        server.wait_for_log(r"worker .* has not turned its loop")
    wait_for(lambda: server.get("/thread").status == 200, "its successor")


def test_a_worker_is_recycled_by_the_requests_of_all_threads(serve: Callable[..., Server]) -> None:
    server = serve(APP, *THREADS, "--max-requests", "60")
    with ExitStack() as stack:
        for peer in by_thread(server, stack).values():
            for _ in range(20):
                peer.request("GET", "/thread")
        server.wait_for_log(r"has taken \d+ requests")


def test_deferred_work_of_other_loops_is_waited_for(serve: Callable[..., Server]) -> None:
    server = serve(APP, *THREADS, "--drain-s", "0.2", "--loop", "asyncio")
    with ExitStack() as stack:
        for peer in by_thread(server, stack).values():
            assert peer.request("GET", "/defer").status == 200
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert server.err.count("deferred work is done") == 3


def test_without_a_gil_there_are_as_many_as_processors(serve: Callable[..., Server]) -> None:
    server = serve(APP, "--no-access-log", env={"CITIUS_REACTOR_THREADS": ""})
    expected = 1 if has_gil() else processors()
    with ExitStack() as stack:
        names = {
            stack.enter_context(server.connect()).request("GET", "/threads").body for _ in range(3)
        }
        assert names == {str(expected - 1).encode()}
    assert "GIL" not in server.err


def test_gevent_has_one_thread(serve: Callable[..., Server]) -> None:
    server = serve("", "--reactor-threads", "2", "--loop", "gevent", ready=False)
    assert server.wait() == 2
    assert "gevent switches greenlets in one thread; use workers" in server.err


def test_what_waits_for_a_new_worker_is_served(serve: Callable[..., Server]) -> None:
    """The first turn of a loop is no step of the task that starts it, in which no other can be entered."""
    server = serve(ASGI, *THREADS, "--supervisor")
    statuses: set[int] = set()
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            statuses.add(server.get("/").status)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for count in range(1, 5):
        server.signal(signal.SIGHUP)
        server.wait_for_log("all workers are new", count)
    is_over.set()
    for thread in threads:
        thread.join(30)
    assert statuses == {200}
