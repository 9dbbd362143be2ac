"""descriptors_spare: without a free descriptor idle connections are closed, then new ones get 503."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest
from rig import Peer, Server, application, wait_for

APP = application("descriptors_app")

ROOM = 24

pytestmark = pytest.mark.epoll("asyncio accepts, and pauses for a second when it has no descriptor")


def descriptors(pid: int) -> int:
    return max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1


def starve(server: Server) -> None:
    """Leave the server that is its own worker descriptors for so many connections more."""
    pid = server.process.pid
    count = descriptors(pid) + ROOM
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, count))


def ask(server: Server, path: str) -> tuple[int, str]:
    """The answer of the management port."""
    connection = HTTPConnection("127.0.0.1", server.management(), timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def count(server: Server, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", ask(server, "/metrics")[1], re.M)
    assert found, name
    return float(found[1])


def told(peers: list[Peer]) -> list[Peer]:
    """Those that have an answer to read."""
    readable, _, _ = select.select([peer.socket for peer in peers], [], [], 0)
    return [peer for peer in peers if peer.socket in readable]


def test_idle_connections_make_way_for_new_ones(serve) -> None:
    server: Server = serve(APP, "--management", "127.0.0.1:0")
    starve(server)
    # Each is idle when the next one comes, and none of them is told 503.
    for _ in range(3 * ROOM):
        assert server.connect().request("GET", "/").status == 200
    server.wait_for_log(
        r"no descriptor is free for a new connection: \d+ connections are open, \d+ idle"
    )
    assert count(server, "citius_connections_evicted_total") > 0
    assert count(server, "citius_descriptors_missing_total") > 0
    assert count(server, "citius_connections_refused_total") == 0


def test_new_connections_are_told_when_none_is_idle(serve) -> None:
    server: Server = serve(APP, "--management", "127.0.0.1:0", "--health", "/health")
    wait_for(lambda: ask(server, "/ready")[0] == 200, "readiness")
    starve(server)
    busy = [server.connect() for _ in range(2 * ROOM)]
    for peer in busy:
        peer.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n")

    wait_for(lambda: len(told(busy)) >= 3, "three that are told")
    assert {peer.reply().status for peer in told(busy)} == {503}
    server.wait_for_log(r"new ones were answered with 503; raise the limit of open files")
    # The management port is in the same process, and has descriptors of its own in reserve.
    status, text = ask(server, "/ready")
    assert (status, json.loads(text)["workers"][0]["state"]) == (503, "out of descriptors")
    assert ask(server, "/live")[0] == 200
    assert count(server, "citius_connections_refused_total") >= 3
    for peer in busy:
        peer.close()
    server.wait_for_log("descriptors are free again")
    wait_for(lambda: ask(server, "/ready")[0] == 200, "readiness")
    assert server.get("/health/ready").status == 200


def test_calls_of_another_service_fail_alone(serve) -> None:
    """Each connection to another server takes two; whichever is the last, its request alone has no answer."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as behind:
        server: Server = serve(APP, env={"BEHIND": str(behind.getsockname()[1])})
        starve(server)
        peers = [server.connect() for _ in range(ROOM)]
        for peer in peers:
            peer.send(b"GET /behind/x HTTP/1.1\r\nHost: a\r\n\r\n")

        wait_for(lambda: len(told(peers)) >= 3, "three that are told")
        replies = [peer.reply() for peer in told(peers)]
        assert {reply.status for reply in replies} <= {502, 503}
        for peer in peers:
            peer.close()
        wait_for(lambda: server.get("/").status == 200, "room")
    assert server.stop() == 0
    assert "Traceback" not in server.err


def test_over_tls_an_alert_is_given(serve, tmp_path: Path) -> None:
    import trustme
    from pki import Pki

    (tmp_path / "pki").mkdir()
    certificate, key = Pki(trustme.CA(), tmp_path / "pki").issue("localhost")
    server: Server = serve(APP, "--ssl-certfile", certificate, "--ssl-keyfile", key)
    starve(server)
    peers = [server.connect() for _ in range(ROOM + 8)]
    assert peers[-1].read_to_end()[:1] == b"\x15"  # an alert record (RFC 8446 §6)


def test_the_soft_limit_is_raised_to_the_hard_one(serve) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 512), hard))
    try:
        server: Server = serve(APP)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert json.loads(server.get("/limit").body) == [hard, hard]


def start_with(limit: int, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "main.py").write_text("from citius import App\napp = App()\n1 // 0")
    command = f"ulimit -n {limit}; exec {sys.executable} -m citius serve main.py --port 0"
    return subprocess.run(
        ["sh", "-c", " ".join([command, *arguments])],
        capture_output=True, text=True, timeout=60, cwd=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("arguments", [(), ("--reload",), ("--workers", "2")])
def test_too_few_to_start_with_are_exit_code_3_and_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = start_with(20, tmp_path, *arguments)
    assert done.returncode == 3
    assert done.stderr.startswith(
        "citius: the limit of open files is 20, and a server needs at least"
    )
    assert done.stderr.count("\n") == 1


def test_connections_max_beyond_the_descriptors_is_noticed(tmp_path: Path) -> None:
    done = start_with(256, tmp_path, "--connections-max", "1000")
    assert "--connections-max 1000 needs 1032: from about 224 connections on" in done.stderr


def test_peers_that_only_connect_do_not_fill_the_management_port(serve) -> None:
    server: Server = serve(APP, "--management", "127.0.0.1:0")
    address = ("127.0.0.1", server.management())
    peers: list[socket.socket] = []
    try:
        for _ in range(400):
            peers.append(socket.create_connection(address, 30))
        assert ask(server, "/live")[0] == 200
    finally:
        for peer in peers:
            peer.close()
