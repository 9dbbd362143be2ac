"""Responses that gateways keep in Redis: shared by processes, right after changes, no failure without it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import redis_rig
from citius.errors import ConfigError
from citius.http.gateway import HTTPCache
from citius.http.gateway.entries import Entry
from citius.http.gateway.stores import CHANGED_MAX
from citius.redis import Redis
from gateway_rig import Cached, Origin, date
from http_peer import Peer
from rig import application, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

APP = application("caching_gateway_app")
KEPT = {"cache-control": "max-age=600"}

pytestmark = redis_rig.needs_redis


@pytest.fixture
def store() -> Iterator[redis_rig.Server]:
    server = redis_rig.Server(listens=True)
    server.start()
    yield server
    server.remove()


@pytest.fixture
def two(serve, store: redis_rig.Server) -> Iterator[tuple[Cached, Cached]]:
    """Two gateways with a worker each, before the same server."""
    origin = Origin()
    with Peer(origin) as peer:
        env = {"UPSTREAMS": f"http://127.0.0.1:{peer.port}", "REDIS_URL": store.url}
        a, b = (Cached(serve(APP, "--workers", "1", env=env), origin) for _ in range(2))
        yield a, b


def hits(one: Cached, path: str = "/c/x", **fields: str) -> bool:
    return "hit" in one.ask(path, **fields)[2].get("cache-status", "")


def becomes_hit(one: Cached, path: str = "/c/x", **fields: str) -> None:
    """What was sent is kept beside it."""
    wait_for(lambda: hits(one, path, **fields), "the store")


def test_workers_share_responses_and_their_age(two: tuple[Cached, Cached]) -> None:
    a, b = two
    a.origin.always({**KEPT, "date": date(100), "etag": '"1"', "x-of": "origin"})
    assert a.ask()[1] == b"1"
    becomes_hit(a)
    status, body, fields = b.ask()
    assert (status, body, fields["etag"], fields["x-of"]) == (200, b"1", '"1"', "origin")
    assert 100 <= int(fields["age"]) < 600
    assert "hit; ttl=" in fields["cache-status"]
    assert b.ask(if_none_match='"1"')[0] == 304
    assert len(a.origin.seen) == 1


def test_a_response_is_for_the_fields_that_vary_names(two: tuple[Cached, Cached]) -> None:
    a, b = two
    a.origin.say = lambda _, fields: (
        "200 OK", {**KEPT, "vary": "accept-language"}, fields[b"accept-language"]
    )  # fmt: skip
    for language in ("de", "fr"):
        assert a.ask(accept_language=language)[1] == language.encode()
        becomes_hit(a, accept_language=language)
    assert len(a.origin.seen) == 2
    for language in ("fr", "de"):
        assert b.ask(accept_language=language)[1] == language.encode()
    assert len(a.origin.seen) == 2
    assert b.ask(accept_language="it")[1] == b"it"


def test_many_variants_are_bounded(two: tuple[Cached, Cached], store: redis_rig.Server) -> None:
    a, _ = two
    a.origin.say = lambda _, fields: ("200 OK", {**KEPT, "vary": "x-n"}, fields[b"x-n"])
    for number in range(40):
        assert a.ask(x_n=f"{number}")[1] == b"%d" % number
        becomes_hit(a, x_n=f"{number}")
    (name,) = [line for line in store.say("KEYS", "http-cache:*}").split() if b"http" in line]
    assert int(store.say("HLEN", name.decode())[1:]) <= 17


@pytest.mark.parametrize("is_told", [True, False], ids=["content-length", "chunked"])
def test_what_exceeds_the_limit_passes(two: tuple[Cached, Cached], *, is_told: bool) -> None:
    a, _ = two
    content = b"x" * 60_000
    if is_told:
        a.origin.say = lambda *_: ("200 OK", KEPT, content)
    else:

        def act(talk) -> None:
            while (got := talk.request()) is not None:
                a.origin.seen.append((got[0], talk.fields))
                head = b"HTTP/1.1 200 OK\r\ncache-control: max-age=9\r\ntransfer-encoding: chunked"
                talk.say(head + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(content), content))

        a.origin.__class__ = type("Chunked", (Origin,), {"__call__": lambda _, talk: act(talk)})
    for times in (1, 2):
        status, body, _ = a.ask()
        assert (status, body) == (200, content)
        assert len(a.origin.seen) == times


def test_without_redis_requests_pass(two: tuple[Cached, Cached], store: redis_rig.Server) -> None:
    a, b = two
    a.origin.always(KEPT)
    assert a.ask()[1] == b"1"
    becomes_hit(b)
    store.stop()
    for one in (a, b):
        for _ in range(3):
            status, _, fields = one.ask()
            assert status == 200
            assert "hit" not in fields["cache-status"]
        assert one.ask(method="POST")[0] == 200
    assert len(a.origin.seen) == 9
    store.start()
    wait_for(lambda: hits(a) and hits(b), "the store")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_a_change_by_one_is_seen_by_the_other(two: tuple[Cached, Cached], method: str) -> None:
    a, b = two
    a.origin.say = lambda line, _: (
        "200 OK", {"content-location": "/c/other"} if line.startswith(method) else KEPT,
        f"{len(a.origin.seen)}".encode(),
    )  # fmt: skip
    for path in ("/c/x", "/c/other"):
        a.ask(path)
        becomes_hit(b, path)
    assert b.ask(method=method)[0] == 200
    assert not hits(a)
    assert not hits(a, "/c/other")


def test_a_change_that_failed_changes_nothing(two: tuple[Cached, Cached]) -> None:
    a, b = two
    a.origin.say = lambda line, _: (
        "409 Conflict" if line.startswith("POST") else "200 OK", KEPT, b"x"
    )  # fmt: skip
    a.ask()
    becomes_hit(a)
    assert b.ask(method="POST")[0] == 409
    assert hits(a)


def test_a_change_while_redis_is_away_is_told_later(
    two: tuple[Cached, Cached], store: redis_rig.Server
) -> None:
    a, b = two
    a.origin.always(KEPT)
    assert a.ask()[1] == b"1"
    becomes_hit(b)
    store.pause()
    assert a.ask(method="POST")[0] == 200
    assert not hits(a), "the worker knows of it"
    store.resume()
    wait_for(lambda: int(b.ask()[1]) > 1, "the store")
    wait_for(lambda: hits(a), "the store")
    assert int(a.ask()[1]) > 1


def test_more_changes_while_redis_is_away_than_are_remembered(
    two: tuple[Cached, Cached], store: redis_rig.Server
) -> None:
    """The oldest were forgotten, and found when it was back."""
    a, b = two
    a.origin.always(KEPT)
    for path in ("/c/x", "/c/other"):
        a.ask(path)
        becomes_hit(b, path)
    store.say("SET", "of another", "kept")
    store.pause()
    assert a.ask(method="POST")[0] == 200
    with a.server.connect() as client:
        for number in range(CHANGED_MAX + 1):
            assert client.request("POST", f"/c/{number}").status == 200
    assert not hits(a, "/c/other"), "the worker knows that it does not know which"
    store.resume()
    wait_for(lambda: b"http-cache" not in store.say("KEYS", "*}"), "the store")
    seen = len(a.origin.seen)
    for path in ("/c/x", "/c/other"):
        assert int(b.ask(path)[1]) > seen
        becomes_hit(a, path)
    assert store.say("GET", "of another") == b"$4\r\nkept\r\n"


@pytest.mark.parametrize("then", ["nothing", "is emptied", "forgets the change"])
def test_a_response_from_before_a_change_is_not_kept(
    two: tuple[Cached, Cached], store: redis_rig.Server, then: str
) -> None:
    a, b = two
    gate, has_begun = threading.Event(), threading.Event()
    content = [b"old"]

    def say(line: str, _) -> tuple[str, dict[str, str], bytes]:
        if line.startswith("POST"):
            content[0] = b"new"
            return "200 OK", {}, b""
        said = content[0]
        has_begun.set()
        if said == b"old":
            assert gate.wait(20)
        return "200 OK", KEPT, said

    a.origin.say = say
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(a.ask)
        assert has_begun.wait(20)
        assert b.ask(method="POST")[0] == 200
        if then == "is emptied":
            asyncio.run(told(store, "FLUSHALL"))
        elif then == "forgets the change":  # it is short of memory
            asyncio.run(forgotten(store, "*:changed"))
        gate.set()
        assert late.result(20)[1] == b"old"
    # It would be kept by now: what is kept is kept in order.
    assert a.ask("/c/y")[1] == b"new"
    becomes_hit(a, "/c/y")
    assert [one.ask()[1] for one in (a, b, a, b)] == [b"new"] * 4


async def told(store: redis_rig.Server, *words: str) -> Any:
    async with Redis(store.url) as redis:
        return await redis.execute(*words)


async def forgotten(store: redis_rig.Server, pattern: str) -> None:
    for key in await told(store, "KEYS", pattern):
        await told(store, "DEL", key)


def test_a_change_whose_client_has_left_is_one(two: tuple[Cached, Cached]) -> None:
    a, b = two
    gate, has_begun = threading.Event(), threading.Event()

    def say(line: str, _) -> tuple[str, dict[str, str], bytes]:
        if line.startswith("POST"):
            has_begun.set()
            assert gate.wait(20)
        return "200 OK", KEPT, b"x"

    a.origin.say = say
    a.ask()
    becomes_hit(b)
    with a.server.connect() as leaving:
        leaving.send(b"POST /c/x HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n")
        assert has_begun.wait(20)
    gate.set()
    wait_for(lambda: not hits(b), "the change")


def test_a_change_that_had_no_answer_is_one(two: tuple[Cached, Cached]) -> None:
    a, b = two

    def say(line: str, _) -> tuple[str, dict[str, str], bytes]:
        if line.startswith("POST"):
            raise ConnectionResetError
        return "200 OK", KEPT, b"x"

    a.origin.say = say
    a.ask()
    becomes_hit(a)
    assert b.ask(method="POST")[0] == 502
    assert not hits(a)


def test_the_same_requests_of_all_processes_are_one(two: tuple[Cached, Cached]) -> None:
    a, b = two
    a.origin.always(KEPT)
    a.origin.gate = threading.Event()
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(one.ask) for _ in range(6) for one in (a, b)]
        wait_for(lambda: len(a.origin.seen) == 1, "the store")
        a.origin.gate.set()
        replies = [one.result(30) for one in asked]
    assert {body for _, body, _ in replies} == {b"1"}
    assert len(a.origin.seen) == 1


def test_a_response_kept_between_the_look_and_the_claim_is_sent(
    two: tuple[Cached, Cached],
) -> None:
    a, _ = two
    a.origin.always(KEPT)
    assert a.ask("/late/x")[1] == b"of another process"
    assert not a.origin.seen


def test_requests_whose_response_is_not_kept_do_not_wait_for_one_another(
    two: tuple[Cached, Cached],
) -> None:
    a, b = two
    a.origin.always({"cache-control": "private"})
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(one.ask) for _ in range(6) for one in (a, b)]
        assert {one.result(30)[0] for one in asked} == {200}
    assert len(a.origin.seen) == 12


def test_one_that_is_stale_is_validated_for_all(two: tuple[Cached, Cached]) -> None:
    a, b = two
    a.origin.say = lambda _, fields: (
        ("304 Not Modified", {"etag": '"1"', "cache-control": "max-age=600"}, b"")
        if fields.get(b"if-none-match") == b'"1"'
        else ("200 OK", {"etag": '"1"', "cache-control": "max-age=0"}, b"same")
    )
    assert a.ask()[1] == b"same"
    wait_for(lambda: "fwd-status=304" in b.ask()[2]["cache-status"], "the store")
    wait_for(lambda: hits(a) and "fwd" not in a.ask()[2]["cache-status"], "the store")
    assert a.ask()[1] == b"same"


def test_stale_responses_are_refreshed_once(two: tuple[Cached, Cached]) -> None:
    a, b = two
    a.origin.always(
        {"cache-control": "max-age=100, stale-while-revalidate=1000", "date": date(200)}
    )
    a.ask()
    wait_for(lambda: "revalidating" in b.ask()[2].get("cache-status", ""), "the store")
    a.origin.gate = threading.Event()
    with ThreadPoolExecutor(8) as pool:
        before = len(a.origin.seen)
        asked = [pool.submit(one.ask) for _ in range(4) for one in (a, b)]
        assert all("hit" in one.result(20)[2]["cache-status"] for one in asked)
        assert len(a.origin.seen) - before <= 1
        a.origin.gate.set()


def test_other_data_under_the_key_is_no_response(
    two: tuple[Cached, Cached], store: redis_rig.Server
) -> None:
    a, b = two
    a.origin.always(KEPT)
    a.ask()
    becomes_hit(a)
    (name,) = [line for line in store.say("KEYS", "http-cache:*}").split() if b"http" in line]
    store.say("HSET", name.decode(), "", "not MessagePack")
    assert b.ask()[0] == 200
    becomes_hit(b)
    store.say("DEL", name.decode())
    store.say("SET", name.decode(), "of another type")
    assert [one.ask()[0] for one in (a, b)] == [200, 200]


def test_an_entry_is_the_same_in_another_process() -> None:
    fields = [("cache-control", "max-age=60"), ("etag", '"x"'), ("age", "7")]
    entry = Entry(203, fields, b"\xff\x00", (("accept", None), ("x", b"1")), 0.0)
    entry._age_s = 7.0
    other = Entry.unpacked(entry.packed())
    assert (other.status, other.fields, other.body) == (entry.status, entry.fields, entry.body)
    assert other.varies == entry.varies
    assert other.lifetime_s == 60
    assert 7 <= other.age_s < 60


def test_redis_bounds_its_memory_itself() -> None:
    with pytest.raises(ConfigError, match="maxmemory"):
        HTTPCache(redis="redis://127.0.0.1:1", bytes_max=1 << 20)
    with pytest.raises(ConfigError):
        HTTPCache(redis="http://127.0.0.1")
    HTTPCache(redis=Redis("redis://127.0.0.1:1"))
