"""A client under `citius serve`, carried by the reactor, and under other servers and loops."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading

import pytest
from redis_rig import Server
from rig import application, free_port, get, wait_for

APP = application("redis_client_app")


def ask_side_by_side(port: int, path: str) -> list[object]:
    """Ask by eight clients, each with texts of its own; what went wrong."""
    failures: list[object] = []

    def ask(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for number in range(first, first + 100):
            connection.request("GET", f"{path}/{number}")
            body = connection.getresponse().read()
            if str(number).encode() not in body:
                failures.append((number, body))
        connection.close()

    threads = [threading.Thread(target=ask, args=(1000 * n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_requests_side_by_side(serve, server: Server) -> None:
    serving = serve(APP, "--workers", "1", env={"REDIS": server.url})
    assert get(serving.port, "/record/5") == (204, b"")
    assert get(serving.port, "/record/5?name=x", "POST") == (200, b"true")
    assert get(serving.port, "/record/5") == (200, b'{"id":5,"name":"x"}')
    assert get(serving.port, "/several") == (200, b"[0,1,2,3,4,true]")
    assert get(serving.port, "/big") == (200, b"true")
    assert json.loads(get(serving.port, "/carried")[1]) == [True]
    assert ask_side_by_side(serving.port, "/echo") == []
    assert ask_side_by_side(serving.port, "/thread") == []
    assert get(serving.port, "/goroutines/x") == (200, b'["x0","x1","x2","x3","x4"]')
    # A plain function runs on the loop's own thread, where nothing may wait.
    assert get(serving.port, "/serial/x")[0] == 500
    serving.wait_for_log("use `await`")
    assert serving.stop() == 0
    assert "shutdown" in serving.err


def test_each_reactor_has_connections(serve, server: Server) -> None:
    serving = serve(
        APP, "--workers", "1", "--reactor-threads", "3", "--management", "127.0.0.1:0",
        env={"REDIS": server.url},
    )  # fmt: skip
    assert get(serving.port, "/clients") == (200, b"3")
    assert ask_side_by_side(serving.port, "/echo") == []
    assert ask_side_by_side(serving.port, "/thread") == []
    assert ask_side_by_side(serving.port, "/heard") == []
    assert get(serving.port, "/several")[0] == 200
    assert get(serving.port, "/big") == (200, b"true")
    # What the reactors count is one client's.
    done = [
        line.split()[-1]
        for line in get(serving.management(), "/metrics")[1].decode().splitlines()
        if line.startswith("citius_redis_commands_total") and 'outcome="ok"' in line
    ]
    assert len(done) == 1
    assert 2400 <= int(done[0]) < 2450
    assert serving.stop() == 0
    assert "Traceback" not in serving.err


def test_a_client_that_leaves_ends_its_wait(serve, server: Server) -> None:
    serving = serve(APP, "--workers", "1", env={"REDIS": server.url})
    blocked = lambda: b"blocked_clients:1\r" in server.say("INFO", "clients")  # noqa: E731
    with socket.create_connection(("127.0.0.1", serving.port)) as client:
        client.sendall(b"GET /wait/queue HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_for(blocked, "the wait")
    wait_for(lambda: not blocked(), "its end")
    server.say("RPUSH", "queue", "a")
    assert server.say("LPOP", "queue") == b"$1\r\na\r\n"
    assert get(serving.port, "/echo/x") == (200, b"x")


def test_redis_is_restarted_under_the_server(serve, own_server: Server) -> None:
    serving = serve(APP, "--workers", "1", env={"REDIS": own_server.url, "TIMEOUT_S": "2"})
    assert get(serving.port, "/echo/1") == (200, b"1")
    own_server.stop()
    own_server.start()
    assert get(serving.port, "/echo/2") == (200, b"2")
    own_server.pause()
    status, body = get(serving.port, "/echo/3")
    assert (status, b"no reply from Redis" in body) == (503, True)
    own_server.resume()
    assert get(serving.port, "/echo/4") == (200, b"4")


def test_a_large_amount_of_output_meets_a_full_socket(serve, own_server: Server) -> None:
    serving = serve(APP, "--workers", "1", env={"REDIS": own_server.url})
    assert get(serving.port, "/echo/1") == (200, b"1")
    own_server.pause()
    threads = [threading.Thread(target=get, args=(serving.port, "/big")) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: all(thread.is_alive() for thread in threads), "the requests")
    own_server.resume()
    for thread in threads:
        thread.join()
    assert get(serving.port, "/echo/2") == (200, b"2")


def test_greenlets(serve, server: Server) -> None:
    """Under gevent the calls of plain functions wait in their greenlets, and others are served meanwhile."""
    pytest.importorskip("gevent")
    source = SERIAL
    serving = serve(source, "--workers", "1", "--loop", "gevent", env={"REDIS": server.url})
    assert ask_side_by_side(serving.port, "/echo") == []
    assert json.loads(get(serving.port, "/carried")[1]) == [True]
    results = []
    waiting = threading.Thread(target=lambda: results.append(get(serving.port, "/wait/greens")))
    waiting.start()
    wait_for(lambda: b"blocked_clients:1\r" in server.say("INFO", "clients"), "the wait")
    assert get(serving.port, "/echo/x") == (200, b"x")
    server.say("RPUSH", "greens", "v")
    waiting.join()
    assert results == [(200, b"(b'greens', b'v')")]
    assert serving.stop() == 0


def test_no_event_loop_at_all(serve, server: Server) -> None:
    """With --loop none threads wait, and the server's own thread says what to do."""
    serving = serve(SERIAL, "--workers", "1", "--loop", "none", env={"REDIS": server.url})
    assert ask_side_by_side(serving.port, "/thread") == []
    assert get(serving.port, "/echo/x")[0] == 500
    serving.wait_for_log("add blocking=True to the route")
    assert serving.stop() == 0


SERIAL = """
from citius.redis import Redis
redis = Redis(os.environ["REDIS"])
app = App()
app.get("/echo/{text}")(lambda text: redis.sync.echo(text).decode())
app.get("/thread/{text}", blocking=True)(lambda text: redis.sync.echo(text).decode())
app.get("/wait/{key}")(lambda key: str(redis.sync.blpop(key, timeout=30)))
app.get("/carried")(lambda: [link._reactor is not None for link in redis._connections.links])
"""


def test_uvicorn(server: Server, tmp_path) -> None:
    """Under another server it works on plain asyncio."""
    pytest.importorskip("uvicorn")
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "redis_client_app:asgi", "--port", str(port), "--lifespan", "on"],
        cwd=APP.parent, env={"REDIS": server.url, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    try:
        wait_for(lambda: process.poll() is not None or is_listening(port), "uvicorn")
        assert json.loads(get(port, "/carried")[1]) == [False]
        assert ask_side_by_side(port, "/echo") == []
        assert get(port, "/several") == (200, b"[0,1,2,3,4,true]")
    finally:
        process.terminate()
        process.wait(10)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
