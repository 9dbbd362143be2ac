"""Broadcasts over several workers: events of one reach the streams of all, and clients miss none of them."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from citius import App, Broadcast, Request, Response
from citius.testing import AsyncClient
from citius.web.realtime.history import History, Kept, unpacked
from rig import Peer, Server, application, wait_for

APP = application("broadcast_workers_app")
Serve = Callable[..., Server]


class Follower:
    """A stream of events, and the worker that it is in."""

    def __init__(self, server: Server, name: str = "news", known: str = "") -> None:
        self.peer = server.connect()
        said = f"Last-Event-ID: {known}\r\n" if known else ""
        self.peer.send(f"GET /{name} HTTP/1.1\r\nHost: a\r\n{said}\r\n".encode())
        head = self.peer.read_until(b"\r\n\r\n").decode()
        self.worker = int(head.partition("x-worker: ")[2].split()[0])
        self.last_id = known

    def next(self) -> str:
        """The data of the next event; chunks are never smaller than one."""
        lines = self.peer.read_until(b"\n\n").decode().split("\n")
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        for line in lines:
            if line.startswith("id: "):
                self.last_id = line.removeprefix("id: ")
        return data[0] if data else self.next()

    def take(self, count: int) -> list[str]:
        return [self.next() for _ in range(count)]


@contextmanager
def in_all_workers(server: Server, count: int, name: str = "news") -> Iterator[dict[int, Follower]]:
    """A follower in each of so many workers."""
    found: dict[int, Follower] = {}
    with ExitStack() as opened:

        def is_complete() -> bool:
            follower = Follower(server, name)
            opened.callback(follower.peer.close)
            found.setdefault(follower.worker, follower)
            return len(found) == count

        wait_for(is_complete, f"streams in {count} workers")
        yield found


def send(server: Server, name: str, first: int, count: int, query: str = "") -> int:
    """Let some worker send; its process."""
    with server.connect() as peer:
        return int(peer.request("POST", f"/{name}/{first}/{count}{query}").body)


def come_back(server: Server, worker: int, name: str, known: str) -> Follower:
    """A client that comes back to this worker."""
    found: list[Follower] = []

    def is_there() -> bool:
        follower = Follower(server, name, known)
        if follower.worker != worker:
            follower.peer.close()
            return False
        found.append(follower)
        return True

    wait_for(is_there, f"a stream in worker {worker}")
    return found[0]


@pytest.mark.parametrize("name", ["news", "plain"])
def test_events_reach_the_streams_of_all_workers(serve: Serve, name: str) -> None:
    server = serve(APP, "--workers", "3")
    with in_all_workers(server, 3, name) as followers:
        for first in range(0, 50, 10):
            sender = send(server, name, first, 10)
            expected = [f"{sender} {number}" for number in range(first, first + 10)]
            for follower in followers.values():
                assert follower.take(10) == expected
        with_ids = [follower.last_id for follower in followers.values()]
        assert all(with_ids) == (name == "news")
    assert server.stop() == 0


def test_a_client_may_come_back_to_any_worker(serve: Serve) -> None:
    server = serve(APP, "--workers", "2")
    with in_all_workers(server, 2) as followers:
        one, other = followers.values()
        # Both workers send, so that each has an order of its own.
        sent: list[str] = []
        senders: set[int] = set()

        def both_have_sent() -> bool:
            sender = send(server, "news", len(sent), 1)
            sent.append(f"{sender} {len(sent)}")
            senders.add(sender)
            return len(senders) == 2 and len(sent) >= 10

        wait_for(both_have_sent, "events of both workers")
        assert sorted(one.take(5)) == sorted(sent[:5])
        known = one.last_id
        for worker in (one.worker, other.worker):
            again = come_back(server, worker, "news", known)
            assert sorted(again.take(len(sent) - 5)) == sorted(sent[5:])
            # What comes next follows without a gap and without repetition.
            sender = send(server, "news", 1000, 1)
            sent.append(f"{sender} 1000")
            assert again.next() == sent[-1]
            again.peer.close()
        forged = Follower(server, "news", "zzzzzzzz-zz")
        assert forged.next() == '{"missed":null}'
        assert sorted(forged.take(len(sent))) == sorted(sent)
        forged.peer.close()


def test_identifiers_of_the_application(serve: Serve) -> None:
    server = serve(APP, "--workers", "2")
    with in_all_workers(server, 2) as followers:
        sender = send(server, "news", 0, 5, "?own=true")
        for follower in followers.values():
            assert follower.take(5)[-1] == f"{sender} 4"
            assert follower.last_id == "own4"
        for worker in followers:
            again = come_back(server, worker, "news", "own2")
            assert again.take(2) == [f"{sender} 3", f"{sender} 4"]
            again.peer.close()


def test_a_new_worker_has_the_history(serve: Serve) -> None:
    server = serve(APP, "--workers", "2")
    with in_all_workers(server, 2) as followers:
        sender = send(server, "news", 0, 20)
        for follower in followers.values():
            assert follower.take(10)
        known = next(iter(followers.values())).last_id
        before = set(followers)
    os.kill(sender, signal.SIGKILL)
    with in_all_workers(server, 2) as followers:
        newcomer = (set(followers) - before).pop()

        def has_all() -> bool:
            again = come_back(server, newcomer, "news", known)
            send(server, "news", 99, 1)
            got = [again.next()]
            while not got[-1].endswith(" 99"):
                got.append(again.next())
            again.peer.close()
            return [one for one in got if not one.endswith(" 99")] == [
                f"{sender} {number}" for number in range(10, 20)
            ]

        wait_for(has_all, "the history of the other worker")


def test_threads_and_the_loop_send_at_once(serve: Serve) -> None:
    server = serve(APP, "--workers", "2")
    with in_all_workers(server, 2) as followers:
        with server.connect() as peer:
            sender = peer.request("POST", "/threads/300").body.decode()
        for follower in followers.values():
            got = follower.take(900)
            assert all(one.startswith(sender) for one in got)
            numbers = [int(one.split()[1]) for one in got]
            for first in (0, 1_000_000, 2_000_000):
                own = [number for number in numbers if first <= number < first + 1_000_000]
                assert own == list(range(first, first + 300))


def test_a_worker_that_is_stopped_costs_the_limit(serve: Serve) -> None:
    server = serve(APP, "--workers", "2", "--room-queue-bytes-max", "50000")
    with in_all_workers(server, 2, "plain") as followers, ExitStack() as opened:
        (stopped, _), (running, follower) = followers.items()
        senders = dict[int, Peer]()

        def is_there() -> bool:
            peer = opened.enter_context(server.connect())
            senders[int(peer.request("POST", "/plain/0/0").body)] = peer
            return running in senders

        wait_for(is_there, "a connection to the worker that runs")
        os.kill(stopped, signal.SIGSTOP)
        try:

            def has_lost() -> bool:
                senders[running].request("POST", "/plain/0/500")
                assert len(follower.take(500)) == 500
                return b'"missed":0' not in senders[running].request("GET", "/state/plain").body

            wait_for(has_lost, "events lost for the stopped worker", 60)
        finally:
            os.kill(stopped, signal.SIGCONT)
        server.wait_for_log("which does not take them")


def test_the_history_is_bounded(serve: Serve) -> None:
    server = serve(APP, "--workers", "2")
    with in_all_workers(server, 2, "short") as followers:
        first = send(server, "short", 0, 2)
        for follower in followers.values():
            follower.take(2)
        known = next(iter(followers.values())).last_id
        sender = send(server, "short", 2, 10)
        for worker, follower in followers.items():
            follower.take(10)
            again = come_back(server, worker, "short", known)
            assert again.next().startswith('{"missed":'), "the gap comes first"
            assert again.take(3) == [f"{sender} {number}" for number in (9, 10, 11)]
            again.peer.close()
        assert first


def kept(sender: str, number: int, own_id: str | None = None) -> Kept:
    return Kept(sender * 8, number, own_id, f"data: {sender}{number}\n\n".encode())


def names(found: list[bytes]) -> list[str]:
    return re.findall(r"data: (\w+)", b"".join(found).decode())


def test_orders_that_differ() -> None:
    """Events of two senders cross: each worker has its own order, and no client misses one of them."""
    one, other = History(10), History(10)
    ids = dict[str, list[str]](one=[], other=[])
    for name, history, order in (
        ("one", one, [("a", 1), ("b", 1), ("a", 2), ("b", 2)]),
        ("other", other, [("b", 1), ("b", 2), ("a", 1), ("a", 2)]),
    ):
        for sender, number in order:
            data = history.add(kept(sender, number)).decode()
            ids[name].append(data.partition("\n")[0].removeprefix("id: "))
    assert names(other.missed_since(ids["one"][0])) == ["b1", "b2", "a2"]
    assert names(other.missed_since(ids["one"][1])) == ["b2", "a2"]
    assert names(one.missed_since(ids["other"][1])) == ["a1", "a2"]
    assert names(one.missed_since(ids["other"][3])) == []


def test_senders_that_have_left_the_history() -> None:
    history = History(2)
    first = history.add(kept("a", 1)).decode().split()[1]
    for number in range(1, 4):
        last = history.add(kept("b", number)).decode().split()[1]
    assert last == "bbbbbbbb-3"
    assert names(history.missed_since(first)) == ["b2", "b3"]
    history.add(kept("a", 2))
    assert names(history.missed_since(last)) == ["a2"]


def test_the_history_of_another_worker() -> None:
    history = History(3)
    history.add_old(kept("a", 1))
    history.add_old(kept("a", 2, "own"))
    assert history.add(kept("a", 2, "own")).startswith(b"id: own\n")
    history.add(kept("a", 3))
    history.add_old(kept("b", 1))  # full: it may be older than what was dropped
    assert names(history.missed_since("?")) == ["a1", "a2", "a3"]
    assert [unpacked(one)[1].number for one in history.packed(1_000)] == [1, 2, 3]
    assert [unpacked(one)[1].number for one in history.packed(80)] == [2, 3]
    assert [unpacked(one) for one in history.packed(40)] == [(1, kept("a", 3))]


@pytest.mark.parametrize(
    "known", ["x", "aaaaaaaa", "aaaaaaaa-", "aaaaaaaa-x", "aaaaaaaa-" + "f" * 100, "." * 10_000]
)
def test_identifiers_that_are_none(known: str) -> None:
    history = History(3)
    history.add(kept("a", 1))
    assert names(history.missed_since(known)) == ["a1"]


def test_what_a_loop_has_not_taken_is_counted() -> None:
    """By it the relay knows when to read no more of other workers."""
    app, broadcast = App(), Broadcast()

    @app.get("/")
    async def follow(request: Request) -> Response:
        return broadcast.response(request)

    async def go() -> None:
        async with AsyncClient(app) as client, client.events("/") as events:
            payload = kept("a", 1).packed(0)
            thread = threading.Thread(target=broadcast._deliver, args=(False, payload))
            thread.start()
            thread.join()  # the loop does nothing meanwhile
            assert broadcast._undelivered_bytes() == len("data: a1\n\n")
            assert (await anext(events)).data == "a1"
            assert broadcast._undelivered_bytes() == 0
            broadcast._deliver(False, payload)
        assert broadcast._undelivered_bytes() == 0

    asyncio.run(go())


def test_a_broadcast_without_followers_keeps_nothing() -> None:
    broadcast = Broadcast()
    assert [broadcast.send("x") for _ in range(3)] == [0, 0, 0]
    assert broadcast._undelivered_bytes() == 0
    assert broadcast._old_events(1000) == []
