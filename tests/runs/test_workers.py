"""Runs of several workers and nodes: read, cancelled, limited from any; workers that stop or are killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines_rig import Redis
from rig import Server, application, children, wait_for
from runs_rig import Reader, begin, cancel, state
from wspeer import RawSocket

APP = application("runs_app")
Serve = Callable[..., Server]
HAS_REDIS = shutil.which("redis-server") is not None


def elsewhere(server: Server, url: str, worker: int, **fields: str) -> Reader:
    """A reader whose connection another worker than ``worker`` has."""
    while True:
        peer = server.connect()
        if int(peer.request("GET", "/pid").body) != worker:
            return Reader(server, url, peer=peer, **fields)
        peer.close()


def worker_of(server: Server, url: str) -> int:
    """The worker that a run is in, which is its first event."""
    reader = Reader(server, url)
    first = reader.next()
    reader.close()
    assert first.event == "worker", first
    return json.loads(first.data)["pid"]


@pytest.fixture
def server(serve: Serve) -> Server:
    return serve(APP, "--workers", "2")


def test_any_worker_reads_and_cancels(server: Server) -> None:
    url = begin(server, "/counts?n=100000&pid=1")
    worker = worker_of(server, url)
    reader = elsewhere(server, url, worker)
    seen = [reader.next() for _ in range(20)]
    assert [one.data for one in seen[1:]] == [str(n) for n in range(19)]
    reader.close()
    reader = elsewhere(server, url, worker, after=seen[-1].id)
    assert reader.next().data == "19"
    assert cancel(server, url) == 204
    *_, last = list(reader)
    assert json.loads(last.data) == {"state": "cancelled", "reason": "client"}


def test_a_reader_of_another_worker_is_a_reader(server: Server) -> None:
    """The grace of a run does not end while a reader of another worker follows; it does when it has left."""
    url = begin(server, "/hasty?pid=1")
    readers = [Reader(server, url) for _ in range(8)]  # in both workers
    for reader in readers:
        for _ in range(40):
            reader.next()
    for reader in readers:
        reader.close()
    wait_for(lambda: state(server, url)["state"] == "cancelled", "the end of its grace")


def test_a_key_begins_one_run_of_many_at_once(server: Server) -> None:
    body = json.dumps({"text": "x", "count": 100_000})
    fields = {"x_user": "ann", "idempotency_key": "k"}
    with ThreadPoolExecutor(16) as threads:
        one = [threads.submit(begin, server, "/chats/1/answers", body, **fields) for _ in range(32)]
        urls = {each.result() for each in one}
    assert len(urls) == 1
    # What has lost counts for nothing: there is room for two more.
    for _ in range(2):
        begin(server, "/chats/1/answers", body, x_user="ann")


def test_owners_are_limited_over_workers(server: Server) -> None:
    body = json.dumps({"text": "x", "count": 100_000})
    urls = [begin(server, "/chats/1/answers", body, x_user="ann") for _ in range(3)]
    for _ in range(10):
        with server.connect() as peer:
            reply = peer.request(
                "POST",
                "/chats/1/answers",
                body.encode(),
                content_type="application/json",
                x_user="ann",
            )
            assert reply.status == 429
    for url in urls:
        assert cancel(server, url, x_user="ann") == 204


def test_readers_are_told_that_a_worker_was_killed(server: Server) -> None:
    url = begin(server, "/counts?n=100000&pid=1")
    worker = worker_of(server, url)
    reader = elsewhere(server, url, worker)
    for _ in range(5):
        reader.next()
    os.kill(worker, signal.SIGKILL)
    *events, last = list(reader)
    assert json.loads(last.data) == {"state": "cut_off", "reason": "worker_lost"}
    numbers = [int(one.id) for one in [*events, last]]
    assert numbers == list(range(6, 6 + len(numbers)))
    assert state(server, url)["state"] == "cut_off"
    # What it had is there, for any reader.
    assert len(list(Reader(server, url))) == numbers[-1]


def test_a_websocket_goes_on_in_another_worker(server: Server) -> None:
    """It is opened again after its last event, by any worker, and told that the worker was killed."""
    url = begin(server, "/counts?n=100000&pid=1")
    worker = worker_of(server, url)
    seen: list[dict[str, Any]] = []
    for _ in range(4):  # connections of both workers
        after = seen[-1]["id"] if seen else 0
        socket = RawSocket(server, f"{url}?after={after}").accepted()
        seen += [json.loads(socket.message()) for _ in range(5)]
        socket.peer.close()
    assert [one["id"] for one in seen] == list(range(1, 21))
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: state(server, url)["state"] == "cut_off", "the end of the run")
    socket = RawSocket(server, f"{url}?after={seen[-1]['id']}").accepted()
    last = seen[-1]
    while last["event"] != "end":
        last = json.loads(socket.message())
    assert json.loads(last["data"]) == {"state": "cut_off", "reason": "worker_lost"}
    socket.peer.close()


def test_runs_of_a_killed_worker_count_no_more(server: Server) -> None:
    body = json.dumps({"text": "x", "count": 100_000})
    for _ in range(3):
        begin(server, "/chats/1/answers", body, x_user="ann")
    for worker in children(server):
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: "serves again" in server.err or len(children(server)) == 2, "workers")

    def begins() -> bool:
        try:
            return bool(begin(server, "/chats/1/answers", body, x_user="ann"))
        except (AssertionError, EOFError, OSError):
            return False

    wait_for(begins, "a place for another run")


def test_a_reload_lets_a_run_end(serve: Serve) -> None:
    """Readers are sent to the new workers and go on there; the old one waits for its runs."""
    server = serve(APP, "--workers", "2", "--drain-s", "20")
    url = begin(server, "/counts?n=150&pause_s=0.02&pid=1")
    reader = Reader(server, url)
    before = [reader.next() for _ in range(5)]
    old = set(children(server))
    server.signal(signal.SIGHUP)
    before += list(reader)  # the stream ends, the run does not
    assert before[-1].event != "end"
    wait_for(lambda: set(children(server)) - old, "new workers")
    rest: list[object] = []
    while not rest or rest[-1].event != "end":
        rest += list(Reader(server, url, after=before[-1].id if not rest else rest[-1].id))
    assert [one.data for one in [*before, *rest]][1:-1] == [str(n) for n in range(150)]
    assert json.loads(rest[-1].data) == {"state": "done"}


def test_a_reload_cuts_off_what_takes_longer(serve: Serve) -> None:
    server = serve(APP, "--workers", "2", "--drain-s", "1")
    url = begin(server, "/counts?n=100000")
    old = set(children(server))
    server.signal(signal.SIGHUP)
    wait_for(lambda: not old & set(children(server)), "the old workers to end")
    *_, last = list(Reader(server, url))
    assert json.loads(last.data) == {"state": "cut_off", "reason": "shutdown"}
    server.wait_for_log("1 run did not end within the drain time; cut off")
    assert "0 requests" not in server.err


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = Redis(tmp_path / "redis")
    yield made
    made.close()


@pytest.mark.skipif(not HAS_REDIS, reason="redis-server is not installed")
class TestRedis:
    """Two servers that are one service."""

    @pytest.fixture
    def nodes(self, serve: Serve, redis: Redis) -> list[Server]:
        return [serve(APP, env={"CLUSTER": redis.url}) for _ in range(2)]

    def test_any_node_reads_and_cancels(self, nodes: list[Server]) -> None:
        url = begin(nodes[0], "/counts?n=100000")
        reader = Reader(nodes[1], url)
        seen = [reader.next() for _ in range(20)]
        assert [one.data for one in seen] == [str(n) for n in range(20)]
        reader.close()
        reader = Reader(nodes[1], url, after=seen[-1].id)
        assert reader.next().data == "20"
        assert cancel(nodes[1], url) == 204
        *_, last = list(reader)
        assert json.loads(last.data) == {"state": "cancelled", "reason": "client"}
        wait_for(lambda: state(nodes[0], url)["state"] == "cancelled", "the other node to know")

    def test_history_limits_and_keys(self, nodes: list[Server]) -> None:
        url = begin(nodes[0], "/fast")
        wait_for(lambda: state(nodes[1], url)["state"] == "done", "the end")
        gap, *rest = list(Reader(nodes[1], url))
        assert (gap.event, json.loads(gap.data)) == ("gap", {"missed": 90})
        assert [one.id for one in rest] == [str(n) for n in range(91, 102)]
        body = json.dumps({"text": "x", "count": 100_000})
        fields = {"x_user": "ann", "idempotency_key": "k"}
        first = begin(nodes[0], "/chats/1/answers", body, **fields)
        assert begin(nodes[1], "/chats/1/answers", body, **fields) == first
        for node in nodes:
            begin(node, "/chats/1/answers", body, x_user="ann")
        with nodes[1].connect() as peer:
            reply = peer.request(
                "POST",
                "/chats/1/answers",
                body.encode(),
                content_type="application/json",
                x_user="ann",
            )
            assert reply.status == 429

    def test_readers_are_told_that_a_node_was_killed(self, nodes: list[Server]) -> None:
        url = begin(nodes[0], "/counts?n=100000")
        reader = Reader(nodes[1], url)
        reader.next()
        nodes[0].process.kill()
        *_, last = list(reader)
        assert json.loads(last.data) == {"state": "cut_off", "reason": "worker_lost"}

    def test_an_engine_that_is_away_for_a_while(self, nodes: list[Server], redis: Redis) -> None:
        url = begin(nodes[0], "/counts?n=200&pause_s=0.01")
        reader = Reader(nodes[1], url)
        seen = [reader.next() for _ in range(3)]
        redis.hang()
        redis.go_on()
        seen += list(reader)
        assert [one.data for one in seen[:-1]] == [str(n) for n in range(200)]
        assert json.loads(seen[-1].data) == {"state": "done"}

    def test_an_engine_that_has_lost_a_run(self, nodes: list[Server], redis: Redis) -> None:
        url = begin(nodes[0], "/counts?n=100000")
        reader = Reader(nodes[1], url)
        reader.next()
        redis.cli("FLUSHALL")
        *_, last = list(reader)
        assert json.loads(last.data) == {"state": "cut_off", "reason": "lost"}
        assert nodes[0].get(url).status == 404
