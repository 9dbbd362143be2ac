"""Servers behind a gateway that die, return and are drained under load: what may be repeated is not lost."""

# pyright: basic

from __future__ import annotations

import random
import threading
from collections import Counter

import pytest
from http_peer import Peer, Talk
from rig import application, wait_for

APP = application("many_upstreams_app")
WAYS = pytest.mark.parametrize("way", ["turn", "least", "hash", "python"])


class Mortal:
    """A server on one port that can be killed with its connections, and come back."""

    def __init__(self, name: int) -> None:
        self.name, self.port = name, 0
        self.peer: Peer | None = None
        self.served = 0

    def _act(self, talk: Talk) -> None:
        while talk.request() is not None:
            self.served += 1
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % self.name)

    def start(self) -> None:
        self.peer = Peer(self._act, port=self.port)
        self.port = self.peer.port
        self.peer.__enter__()

    def kill(self) -> None:
        assert self.peer is not None
        self.peer.__exit__()
        self.peer = None


@pytest.fixture
def mortals():
    made = [Mortal(number) for number in range(4)]
    for one in made:
        one.start()
    yield made
    for one in made:
        if one.peer is not None:
            one.kill()


@pytest.fixture
def server(serve, mortals: list[Mortal]):
    urls = " ".join(f"http://127.0.0.1:{one.port}" for one in mortals)
    return serve(APP, "--workers", "1", env={"UPSTREAMS": urls})


def ask(peer, way: str, key: int = 0, method: str = "GET") -> tuple[int, bytes]:
    body = b"x" if method == "POST" else None
    reply = peer.request(method, f"/{way}/x", body, **{"X-Key": f"key {key}"})
    return reply.status, reply.body


@WAYS
def test_servers_die_and_return_one_after_the_other(server, mortals, way: str) -> None:
    is_over = threading.Event()
    statuses: Counter[int] = Counter()
    errors: list[BaseException] = []

    def load(seed: int) -> None:
        dice = random.Random(seed)
        try:
            with server.connect() as peer:
                while not is_over.is_set():
                    status, _ = ask(peer, way, dice.randrange(100))
                    statuses[status] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=load, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for number in range(12):
        one = mortals[number % 4]
        before = statuses[200]
        one.kill()
        wait_for(lambda before=before: statuses[200] > before + 60 or errors, "requests without it")
        one.start()
        served = one.served
        wait_for(lambda one=one, served=served: one.served > served or errors, "it to be asked")
    is_over.set()
    for thread in threads:
        thread.join(20)
    assert not errors
    assert set(statuses) == {200}
    with server.connect() as peer:
        assert peer.request("GET", f"/under-way/{way}").body == b"0"


@pytest.mark.parametrize("way", ["hash", "python"])
def test_keys_move_once_and_return(server, mortals, way: str) -> None:
    """Those of the server that is gone, and no others; with the server they come back."""
    with server.connect() as peer:
        first = {key: ask(peer, way, key)[1] for key in range(60)}
        assert len(set(first.values())) == 4
        for loses in ("dies", "is drained"):
            if loses == "dies":
                mortals[1].kill()
            else:
                assert peer.request("POST", f"/drain/{way}/1/1").status in (200, 204)
            moved = {key: ask(peer, way, key)[1] for key in first}
            assert {key for key in first if moved[key] != first[key]} == {
                key for key in first if first[key] == b"1"
            }
            assert {key: ask(peer, way, key)[1] for key in first} == moved
            if loses == "dies":
                mortals[1].start()
            else:
                assert peer.request("POST", f"/drain/{way}/1/0").status in (200, 204)
            again = lambda: {key: ask(peer, way, key)[1] for key in first} == first  # noqa: E731
            wait_for(again, "the keys to return")


@WAYS
def test_draining_loses_not_even_what_may_not_be_repeated(server, mortals, way: str) -> None:
    is_over = threading.Event()
    statuses: Counter[int] = Counter()

    def load(seed: int) -> None:
        dice = random.Random(seed)
        with server.connect() as peer:
            while not is_over.is_set():
                statuses[ask(peer, way, dice.randrange(100), "POST")[0]] += 1

    threads = [threading.Thread(target=load, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    with server.connect() as peer:
        for number in range(12):
            at, one = number % 4, mortals[number % 4]
            assert peer.request("POST", f"/drain/{way}/{at}/1").status in (200, 204)
            under_way = one.served
            before = sum(statuses.values())
            wait_for(lambda before=before: sum(statuses.values()) > before + 40, "requests")
            assert one.served <= under_way + 4, "requests that were under way, and no more"
            assert peer.request("POST", f"/drain/{way}/{at}/0").status in (200, 204)
    is_over.set()
    for thread in threads:
        thread.join(20)
    assert set(statuses) == {200}


def test_all_are_gone_and_back(server, mortals) -> None:
    with server.connect() as peer:
        for one in mortals:
            one.kill()
        for way in ("turn", "least", "hash", "python"):
            for _ in range(10):
                assert ask(peer, way)[0] in (502, 503)
        for one in mortals:
            one.start()
        for way in ("turn", "least", "hash", "python"):
            assert ask(peer, way)[0] == 200, "with none left, all are tried"
