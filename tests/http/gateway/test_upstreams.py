"""Several servers: which one gets a request, which are left alone, and what goes to a second one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from citius.errors import ConfigError
from citius.http import Client, Limits, PoolTimeout
from citius.http.gateway import Checks, Upstreams
from gateway_rig import opening
from http_peer import OK, Peer, Talk, answering


def named(name: bytes):
    return answering(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + name)


def bodies(server, paths: list[str], **fields: str) -> list[bytes]:
    with server.connect() as peer:
        return [peer.request("GET", path, None, **fields).body for path in paths]


def test_each_in_turn(gateway) -> None:
    before = gateway(named(b"a"), named(b"b"), named(b"c"))
    assert Counter(bodies(before.server, ["/many/x"] * 30)) == {b"a": 10, b"b": 10, b"c": 10}


def test_the_same_one_for_the_same_key(gateway) -> None:
    before = gateway(named(b"a"), named(b"b"), named(b"c"))
    found = set()
    for number in range(20):
        got = set(bodies(before.server, ["/hash/x"] * 3, **{"X-User": f"user {number}"}))
        assert len(got) == 1
        found |= got
    assert found == {b"a", b"b", b"c"}


def test_a_server_that_is_not_there_costs_no_request(gateway) -> None:
    before = gateway(named(b"a"), named(b"b"))
    before.peers[1].__exit__()
    with before.server.connect() as peer:
        for number in range(20):
            method, body = ("POST", b"content") if number % 2 else ("GET", None)
            assert peer.request(method, "/many/x", body).body == b"a"
    before.server.wait_for_log("has not answered 3 requests in a row")


def test_servers_without_websockets_are_there_for_others(gateway) -> None:
    """Three clients that ask for one would take a server from all."""

    def act(name: bytes):
        def talk_with(talk: Talk) -> None:
            while talk.request() is not None and b"upgrade" not in talk.fields:
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n" + name)

        return talk_with

    before = gateway(act(b"a"), act(b"b"))
    for _ in range(6):
        with before.server.connect() as peer:
            peer.send(opening(b"/many/x"))
            assert peer.reply("GET").status == 502
    assert Counter(bodies(before.server, ["/many/x"] * 10)) == {b"a": 5, b"b": 5}


def test_what_may_have_been_done_is_not_done_twice(gateway) -> None:
    seen: list[str] = []

    def cuts(talk: Talk) -> None:
        got = talk.request()
        if got is not None:
            seen.append(got[0].split()[0])

    before = gateway(cuts, cuts)
    with before.server.connect() as peer:
        assert peer.request("POST", "/many/x", b"content").status == 502
        assert seen == ["POST"]
        assert peer.request("GET", "/many/x").status == 502
        assert seen == ["POST", "GET", "GET"]
        assert peer.request("PUT", "/many/x", b"content").status == 502
        assert seen == ["POST", "GET", "GET", "PUT"]


def test_checks(gateway) -> None:
    is_well = threading.Event()
    is_well.set()

    def act(talk: Talk) -> None:
        while (got := talk.request()) is not None:
            if "/health" in got[0] and not is_well.is_set():
                talk.say(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")
            else:
                talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na")

    before = gateway(act, named(b"b"), CHECK="1")
    assert set(bodies(before.server, ["/checked/x"] * 4)) == {b"a", b"b"}
    is_well.clear()
    before.server.wait_for_log("fails its checks")
    assert set(bodies(before.server, ["/checked/x"] * 4)) == {b"b"}
    is_well.set()
    before.server.wait_for_log("passes its checks")
    assert set(bodies(before.server, ["/checked/x"] * 4)) == {b"a", b"b"}


async def checked(
    act: Callable[[Talk], object], until: Callable[[Upstreams, Client], Awaitable[None]]
) -> bool:
    """Whether a server is still taken for up when ``until`` has ended."""
    with Peer(act) as peer:
        client = Client(
            timeout=20, trust_env=False, limits=Limits(connections_per_origin_max=1), http2=False
        )
        url = f"http://127.0.0.1:{peer.port}"
        checks = Checks("/health", every_s=0.01, timeout_s=0.2, failures=2)
        servers = Upstreams([url], client=client, checks=checks)
        async with asyncio.timeout(20), client, servers.lifespan(None):
            await until(servers, client)
            return servers.servers[0].state.is_up


async def test_a_check_that_does_not_end_fails() -> None:
    """An answer of a byte now and then kept a server in use, and its checks from ever being made again."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 10000\r\n\r\n")
        while True:
            talk.say(b"x")
            time.sleep(0.02)  # a server that takes its time

    async def until(servers: Upstreams, _client: Client) -> None:
        while servers.servers[0].state.is_up:
            await asyncio.sleep(0.01)  # a look at a condition

    assert not await checked(act, until)


async def test_a_server_that_is_busy_does_not_fail_its_checks() -> None:
    """All connections that the client may have are in use: no check was made, and none has failed."""
    is_done = threading.Event()

    def act(talk: Talk) -> None:
        while (got := talk.request()) is not None:
            if "/long" in got[0]:
                is_done.wait(20)
            talk.say(OK)

    waits: list[BaseException] = []

    async def until(servers: Upstreams, client: Client) -> None:
        url = servers.servers[0].url.origin
        long = asyncio.ensure_future(client.get(f"{url}/long"))
        get = client.get

        async def noted(url: str, **options: Any) -> Any:
            try:
                return await get(url, **options)
            except PoolTimeout as error:
                waits.append(error)
                raise

        client.get = noted  # pyright: ignore[reportAttributeAccessIssue]
        while len(waits) < 4:
            await asyncio.sleep(0.01)  # a look at a condition
        is_done.set()
        await long

    assert await checked(act, until)


def test_choosing() -> None:
    request: object = None
    three = Upstreams([f"http://{name}.example" for name in "abc"], balance="least_requests")
    for number, server in zip((2, 1), three.servers, strict=False):
        for _ in range(number):
            server.state.begin()
    assert three.choose(request) is three.servers[2]
    three.drain("http://c.example")
    assert three.choose(request) is three.servers[1]
    three.drain("http://c.example", drains=False)
    assert three.choose(request) is three.servers[2]
    with pytest.raises(ValueError, match="none of the servers"):
        three.drain("http://d.example")
    for server in three.servers:
        assert server.state.leave_alone(60_000)
    assert three.choose(request) is three.servers[2], "with none left, all are tried"


def test_without_a_server_only_its_keys_move() -> None:
    def key(request: object) -> str:
        return str(request)

    four = Upstreams([f"http://{name}.example" for name in "abcd"], balance="hash", key=key)
    requests: list[object] = list(range(1000))
    before = {one: four.choose(one) for one in requests}
    counts = Counter(id(one) for one in before.values())
    assert len(counts) == 4
    assert min(counts.values()) > 150
    gone = four.servers[1]
    gone.state.is_draining = True
    moved = [one for one in requests if four.choose(one) is not before[one]]
    assert moved == [one for one in requests if before[one] is gone]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: Upstreams("http://a"), "is a list"),
        (lambda: Upstreams([]), "at least one"),
        (lambda: Upstreams(["http://a", "http://a:80"]), "twice"),
        (lambda: Upstreams(["http://a/b"]), "without path"),
        (lambda: Upstreams(["ftp://a"]), "URL of a server"),
        (lambda: Upstreams(["http://a"], balance="random"), "is one of"),  # pyright: ignore[reportArgumentType]
        (lambda: Upstreams(["http://a"], balance="hash"), "need one another"),
        (lambda: Upstreams(["http://a"], failures=0), "at least 1"),
        (lambda: Upstreams(["http://a"], client=Client("http://a", auth=("a", "b"))), "auth="),
        (lambda: Checks("health"), "slash"),
        (lambda: Checks("/health", every_s=0), "more than 0"),
    ],
)
def test_what_cannot_work(make, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        make()
