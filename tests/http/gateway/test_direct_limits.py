"""Limits, breakers and hashes hold without Python as with it, and need none for what they let pass."""

# pyright: basic

from __future__ import annotations

import json
import threading

import pytest
from citius._core import FAST_PATHS, CircuitGate, ForwardServer, ForwardServers, OriginSlots
from http_peer import Peer
from rig import application, wait_for

APP = application("direct_limits_app")
ROUTES = ("max", "slots", "breaker", "field", "path", "function")


class Servers:
    """Two servers that say which one they are; ``/held`` is answered when it is let go, ``/bad`` by 503."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.held, self.asked = 0, 0
        self.peers = [Peer(lambda talk, name=name: self.act(talk, name)) for name in (b"a", b"b")]

    def act(self, talk, name: bytes) -> None:
        while (got := talk.request()) is not None:
            self.asked += 1
            status = b"503 No" if "bad" in got[0] else b"200 OK"
            if "held" in got[0]:
                self.held += 1
                self.go.wait(20)
            talk.say(b"HTTP/1.1 %s\r\ncontent-length: 1\r\n\r\n%s" % (status, name))


@pytest.fixture
def rig(serve):
    servers = Servers()
    with servers.peers[0] as one, servers.peers[1] as other:
        urls = f"http://127.0.0.1:{one.port} http://127.0.0.1:{other.port}"
        yield serve(APP, "--workers", "1", env={"UPSTREAMS": urls}), servers
        servers.go.set()


def counts(server) -> dict[str, int]:
    return json.loads(server.get("/counts").body)


def test_what_passes_needs_no_python(rig) -> None:
    server, _ = rig
    with server.connect() as client:
        for name in ROUTES:
            for number in range(12):
                headers = {"x-user": str(number)}
                assert client.request("GET", f"/{name}/{number}", **headers).status == 200
    if FAST_PATHS:
        found = counts(server)
        assert all(found.get(name, 0) <= 2 for name in ROUTES[:5]), found
        assert found["function"] == 12


def test_requests_of_a_route(rig) -> None:
    server, servers = rig
    with server.connect() as one, server.connect() as other:
        assert one.request("GET", "/max/x").status == 200
        one.send(b"GET /max/held HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: servers.held == 1, "the first request")
        assert other.request("GET", "/max/x").status == 503
        servers.go.set()
        assert one.reply().status == 200
        for _ in range(3):
            assert other.request("GET", "/max/x").status == 200


def test_slots_of_an_origin(rig) -> None:
    """What waits in Python gets a slot that Python has not given; a client that leaves gives its own back."""
    server, servers = rig
    with server.connect() as one, server.connect() as other:
        assert one.request("GET", "/slots/x").status == 200
        asked = servers.asked
        one.send(b"GET /slots/held HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: servers.held == 1, "the first request")
        other.send(b"GET /slots/x HTTP/1.1\r\nhost: a\r\n\r\n")
        assert server.get("/counts").status == 200
        assert servers.asked == asked + 1
        servers.go.set()
        assert one.reply().status == 200
        assert other.reply().status == 200
    servers.go.clear()
    for number in range(2, 5):
        with server.connect() as client:
            client.send(b"GET /slots/held HTTP/1.1\r\nhost: a\r\n\r\n")
            wait_for(lambda number=number: servers.held == number, "a request")
    servers.go.set()
    assert server.get("/slots/x").status == 200


def test_a_breaker(rig) -> None:
    server, servers = rig
    with server.connect() as client:
        for path in ("x", "bad", "x", "bad", "x"):
            client.request("GET", f"/breaker/{path}")
        assert client.request("GET", "/breaker/x").status == 200, "a success between failures"
        for _ in range(2):
            assert client.request("GET", "/breaker/bad").status == 503
        asked = servers.asked
        assert client.request("GET", "/breaker/x").status == 503
        assert servers.asked == asked
    server.wait_for_log("503, for CircuitOpen")


def test_what_was_passed_on_before_a_breaker_opened_does_not_close_it(rig) -> None:
    """It did where Python had not seen it: a slow success, of before the failures."""
    server, servers = rig
    with server.connect() as slow, server.connect() as client:
        assert client.request("GET", "/breaker/x").status == 200
        slow.send(b"GET /breaker/held HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: servers.held == 1, "the slow request")
        for _ in range(2):
            assert client.request("GET", "/breaker/bad").status == 503
        servers.go.set()
        assert slow.reply().status == 200
        asked = servers.asked
        assert client.request("GET", "/breaker/x").status == 503
        assert servers.asked == asked


def test_hashes(rig) -> None:
    server, _ = rig
    with server.connect() as client:
        for name in ("field", "path", "function"):
            chosen = [
                [client.request("GET", f"/{name}/{number}", **{"x-user": str(number)}).body for _ in range(3)]
                for number in range(16)
            ]  # fmt: skip
            assert all(len(set(each)) == 1 for each in chosen), name
            assert {each[0] for each in chosen} == {b"a", b"b"}, name
            if name == "field":
                by_field = chosen
        assert chosen == by_field, "a function that returns the value of the field"
        assert len({client.request("GET", "/field/x").body for _ in range(4)}) == 2, "in turn"


def test_a_slot_is_not_given_past_who_waits() -> None:
    slots = OriginSlots(1)
    assert slots.take()
    assert not slots.take()
    assert not slots.take_or_wait()
    assert not slots.give()
    assert not slots.take(), "a request waits for the slot"
    slots.waits_no_more()
    assert slots.give()
    assert slots.take_or_wait()
    CircuitGate().set(True, True, 1)


def test_a_hash_is_the_same_in_every_process() -> None:
    names = [f"http://{name}.example" for name in "abcd"]
    servers = ForwardServers([ForwardServer() for _ in names], "hash", names=names)
    chosen = [servers.choose_hashed(b"%d" % number, []) for number in range(12)]
    again = ForwardServers([ForwardServer() for _ in names], "hash", names=names)
    assert chosen == [again.choose_hashed(b"%d" % number, []) for number in range(12)]
    assert set(chosen) == {0, 1, 2, 3}
