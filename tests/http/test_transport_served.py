"""Calls of handlers, whose connections the reactor carries."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator

import pytest
from http_peer import Peer, Talk
from rig import Server, application, serving, wait_for


def act(talk: Talk) -> None:
    while request := talk.request():
        target = request[0].split()[1]
        if target == "/silent":
            talk.request()
            return
        said = request[1] if target == "/echo" else target.encode()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(said))
        talk.say(said)
        if target == "/last":
            return


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    with Peer(act) as made:
        yield made


@pytest.fixture(scope="module")
def server(peer: Peer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("served"), "") as serve:
        path = application("http_calls_app")
        yield serve(path, "--workers", "1", env={"PEER": str(peer.port)})


def test_calls_reuse_their_connection(server: Server) -> None:
    replies = [json.loads(server.get(f"/call/{n}").body) for n in range(5)]
    assert [reply["body"] for reply in replies] == [f"/{n}" for n in range(5)]
    assert all(reply["reused"] for reply in replies[1:])


def test_many_at_once_keep_to_the_limit(server: Server) -> None:
    assert json.loads(server.get("/many").body) == 100
    stats = json.loads(server.get("/stats").body)
    assert 0 < stats["open"] <= 8
    assert stats["waiting"] == 0


def test_the_end_of_an_idle_connection_is_seen_before_the_next_request(server: Server) -> None:
    for number in range(20):
        assert json.loads(server.get("/call/last").body)["body"] == "/last", number


@pytest.mark.parametrize("size", [0, 10, 400_000, 5_000_000])
def test_content_is_streamed_both_ways(server: Server, size: int) -> None:
    content = os.urandom(size)
    with server.connect() as client:
        assert client.request("POST", "/echo", content).body == content


def test_threads_share_the_connections(server: Server) -> None:
    assert server.get("/thread").body == b"/thread"


def test_a_client_that_leaves_ends_the_call_for_it(server: Server, peer: Peer) -> None:
    """After clients that left early no place is lost, and no call is open."""
    wait_for(lambda: json.loads(server.get("/stats").body)["waiting"] == 0, "calls end")

    def leave() -> None:
        for _ in range(10):
            client = server.connect()
            client.send(b"GET /call/silent HTTP/1.1\r\nhost: a\r\n\r\n")
            client.close()

    threads = [threading.Thread(target=leave) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def is_over() -> bool:
        stats = json.loads(server.get("/stats").body)
        return stats["open"] == stats["idle"] and not stats["waiting"]

    wait_for(is_over, "no call is under way")
    assert json.loads(server.get("/many").body) == 100
