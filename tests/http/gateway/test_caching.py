"""Responses that a gateway keeps: the rules of RFC 9111, each by the section that has it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest
from citius.errors import ConfigError
from citius.http.gateway import HTTPCache
from citius.http.gateway.caching import directives, lifetime_s
from citius.http.gateway.entries import Entry, Key
from citius.http.gateway.stores import CHANGED_MAX, Mark, MemoryResponses
from gateway_rig import Cached, Origin, date
from h2peer import H2Peer
from http_peer import Peer
from rig import application, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


APP = application("caching_gateway_app")
Fields = dict[str, str]


@pytest.fixture
def cached(serve) -> Iterator[Cached]:
    origin = Origin()
    with Peer(origin) as peer:
        env = {"UPSTREAMS": f"http://127.0.0.1:{peer.port}"}
        yield Cached(serve(APP, "--workers", "1", env=env), origin)


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        # §4.2.1: s-maxage before max-age before Expires; §4.2: what has no lifetime is not fresh.
        ({"cache-control": "max-age=100"}, 1),
        ({"cache-control": "max-age=0, s-maxage=100"}, 1),
        ({"cache-control": "max-age=100, s-maxage=0"}, 3),
        ({"expires": date(-86_400)}, 1),
        ({"expires": date(-86_400), "cache-control": "max-age=0"}, 3),
        ({"expires": "0"}, 3),
        ({"expires": date(10), "date": date(110)}, 3),
        ({"cache-control": 'MAX-AGE="100"'}, 1),
        ({"cache-control": "max-age=1, max-age=100"}, 3),
        ({"cache-control": "max-age=-1"}, 3),
        ({"cache-control": "max-age=1.5"}, 3),
        ({"cache-control": "max-age"}, 3),
        ({"cache-control": "max-age=99999999999999999999"}, 1),
        ({"cache-control": f"max-age={'9' * 5000}"}, 1),
        ({"cache-control": "max-age=100", "age": "9" * 5000}, 3),
        ({}, 3),
        # §4.2.3: it has an age when it comes.
        ({"cache-control": "max-age=100", "age": "100"}, 3),
        ({"cache-control": "max-age=100", "age": "50"}, 1),
        ({"cache-control": "max-age=100", "date": date(200)}, 3),
        # §5.2.2, §3: no-store, private, no-cache.
        ({"cache-control": "no-store, max-age=100"}, 3),
        ({"cache-control": "private, max-age=100"}, 3),
        ({"cache-control": 'private="set-cookie", max-age=100'}, 3),
        ({"cache-control": "no-cache, max-age=100"}, 3),
        ({"cache-control": 'max-age=100, x="no-store'}, 3),
        ({"cache-control": 'x="a, no-store", max-age=100'}, 1),
        # §7.3: a session of one client is no other's.
        ({"cache-control": "max-age=100", "set-cookie": "a=1"}, 3),
        # §4.1.
        ({"cache-control": "max-age=100", "vary": "*"}, 3),
        ({"cache-control": "max-age=100", "vary": "x-a, *"}, 3),
        ({"cache-control": "max-age=100", "vary": "accept"}, 1),
    ],
)  # fmt: skip
def test_what_is_sent_again(cached: Cached, fields: Fields, asked: int) -> None:
    cached.origin.always(fields)
    assert cached.counts(3) == asked


@pytest.mark.parametrize(
    ("status", "asked"),
    [("404 No", 1), ("301 Moved", 1), ("206 Partial", 2), ("500 Bad", 2), ("302 Found", 2)],
)  # fmt: skip
def test_statuses(cached: Cached, status: str, asked: int) -> None:
    cached.origin.always({"cache-control": "max-age=100", "content-range": "bytes 0-1/9"}, status)
    assert cached.counts(2) == asked


@pytest.mark.parametrize(
    ("said", "asked"),
    [("max-age=9", 2), ("max-age=9, public", 1), ("s-maxage=9", 1), ("max-age=9, must-revalidate", 1)],
)  # fmt: skip
def test_authorization(cached: Cached, said: str, asked: int) -> None:
    """§3.5; the credentials of the gateway itself count as well."""
    cached.origin.always({"cache-control": said})
    assert cached.counts(2, authorization="Bearer x") == asked
    assert cached.counts(2, path="/own/x") == asked


@pytest.mark.parametrize(
    ("said", "asked"),
    [("no-store", 1), ("no-cache", 2), ("max-age=0", 2), ("max-age=90", 0), ("max-age=40", 2),
     ("min-fresh=40", 0), ("min-fresh=90", 2), (f"max-age={'9' * 5000}", 0),
     (f"min-fresh={'9' * 5000}", 2)],
)  # fmt: skip
def test_directives_of_requests(cached: Cached, said: str, asked: int) -> None:
    """§5.2.1."""
    cached.origin.always({"cache-control": "max-age=100", "age": "50"})
    cached.ask()
    if said == "no-store":
        assert cached.counts(1, path="/c/other", cache_control=said) == 1
        assert cached.counts(1, path="/c/other") == 1
    else:
        assert cached.counts(2, cache_control=said) == asked
    if said == "no-cache":
        assert cached.counts(1, pragma="no-cache") == 1


def test_stale_ones_that_the_client_takes(cached: Cached) -> None:
    cached.origin.always({"cache-control": "max-age=10", "age": "50", "etag": '"a"'})
    cached.ask()
    assert cached.counts(1, cache_control="max-stale") == 0
    assert cached.counts(1, cache_control="max-stale=90") == 0
    assert cached.counts(1, cache_control="max-stale=10") == 1
    cached.origin.always(
        {"cache-control": "max-age=10, must-revalidate", "age": "50", "etag": '"a"'}
    )
    cached.ask("/c/strict")
    assert cached.counts(1, path="/c/strict", cache_control="max-stale") == 1


def test_only_if_cached(cached: Cached) -> None:
    cached.origin.always({"cache-control": "max-age=100"})
    assert cached.ask(cache_control="only-if-cached")[0] == 504
    cached.ask()
    assert cached.ask(cache_control="only-if-cached")[0] == 200
    assert len(cached.origin.seen) == 1


def test_age_and_status(cached: Cached) -> None:
    """§5.1, RFC 9211."""
    cached.origin.always({"cache-control": "max-age=100", "age": "7", "x-of": "origin"})
    assert cached.ask()[2]["cache-status"] == "citius; fwd=uri-miss; stored"
    status, body, fields = cached.ask()
    assert (status, body, fields["x-of"]) == (200, b"1", "origin")
    assert 7 <= int(fields["age"]) < 60
    assert fields["cache-status"].startswith("citius; hit; ttl=")


def test_validation(cached: Cached) -> None:
    """§4.3: the fields of a 304 replace those that are kept; another response replaces it."""

    def say(line: str, fields: dict[bytes, bytes]) -> tuple[str, Fields, bytes]:
        own = {"etag": '"a"', "cache-control": "max-age=10", "x-of": str(len(cached.origin.seen))}
        if fields.get(b"if-none-match") == b'"a"' and len(cached.origin.seen) < 4:
            return "304 Same", own, b""
        return "200 OK", own | {"age": "10"}, b"%d" % len(cached.origin.seen)

    cached.origin.say = say
    assert cached.ask()[1] == b"1"
    status, body, fields = cached.ask(if_none_match='"other"')
    assert (status, body, fields["x-of"]) == (200, b"1", "2")
    assert cached.origin.seen[1][1][b"if-none-match"] == b'"a"'
    assert fields["cache-status"] == "citius; hit; fwd=stale; fwd-status=304"
    assert cached.ask()[1] == b"1"  # fresh again
    assert len(cached.origin.seen) == 2
    assert cached.ask(if_none_match='"x", "a"')[:2] == (304, b"")
    cached.ask(cache_control="no-cache")
    assert cached.ask(cache_control="no-cache")[1] == b"4"
    assert cached.ask(cache_control="max-stale")[1] == b"4"


@pytest.mark.parametrize("said", ["private, max-age=100", "no-store, max-age=100", "max-age=100"])
def test_what_a_304_says_is_kept_if_it_may_be(cached: Cached, said: str) -> None:
    """§4.3.4 with §3 and §7.3: its fields may be those of one client, and Set-Cookie is."""

    def say(line: str, fields: dict[bytes, bytes]) -> tuple[str, Fields, bytes]:
        if b"if-none-match" not in fields:
            return "200 OK", {"etag": '"a"', "cache-control": "max-age=0"}, b"1"
        own = fields.get(b"x-user", b"").decode()
        return "304 Same", {"cache-control": said, "set-cookie": f"s={own}", "x-of": own}, b""

    cached.origin.say = say
    cached.ask()
    with cached.server.connect() as client:
        reply = client.request("GET", "/c/x", **{"x-user": "alice"})
    assert (reply.status, reply.body) == (200, b"1")
    assert reply.headers["set-cookie"] == "s=alice"
    with cached.server.connect() as client:
        other = client.request("GET", "/c/x", **{"x-user": "bob"})
    assert other.headers.get("set-cookie") != "s=alice"
    if said == "max-age=100":
        assert other.headers["cache-status"].startswith("citius; hit; ttl=")
        assert "set-cookie" not in other.headers
    else:
        assert other.headers.get("x-of") != "alice"


def test_what_a_304_says_to_one_with_credentials_is_theirs(cached: Cached) -> None:
    """§3.5."""

    def say(line: str, fields: dict[bytes, bytes]) -> tuple[str, Fields, bytes]:
        if b"if-none-match" not in fields:
            return "200 OK", {"etag": '"a"', "cache-control": "max-age=0"}, b"1"
        who = fields.get(b"authorization", b"nobody").decode()
        return "304 Same", {"cache-control": "max-age=100", "x-of": who}, b""

    cached.origin.say = say
    cached.ask()
    assert cached.ask(authorization="alice")[2]["x-of"] == "alice"
    assert cached.ask()[2]["x-of"] == "nobody"


def test_by_the_date(cached: Cached) -> None:
    modified = date(1000)
    cached.origin.always({"last-modified": modified})
    cached.ask()
    cached.ask()
    assert cached.origin.seen[1][1][b"if-modified-since"] == modified.encode()
    cached.origin.always({"last-modified": modified, "cache-control": "max-age=99"})
    cached.ask()
    assert cached.ask(if_modified_since=date(500))[0] == 304
    assert cached.ask(if_modified_since=date(2000))[0] == 200


def test_vary(cached: Cached) -> None:
    """§4.1: values that differ by blanks are the same; a field that is missing is no other's."""
    cached.origin.always({"cache-control": "max-age=100", "vary": "Accept, x-a"})
    assert cached.ask(accept="text/a")[1] == b"1"
    assert cached.ask(accept="text/b")[1] == b"2"
    assert cached.ask(accept="text/a", x_a="1")[1] == b"3"
    assert cached.ask(accept="text/a")[1] == b"1"
    assert cached.ask(accept="text/b")[1] == b"2"
    assert cached.ask(accept="text/a", x_a="1")[1] == b"3"


def test_hosts_and_queries_are_apart(cached: Cached) -> None:
    """The other server is told the client's host, and may write links by it."""
    cached.origin.always({"cache-control": "max-age=100"})
    assert cached.ask()[1] == b"1"
    assert cached.ask("/c/x?")[1] == b"2"
    assert cached.ask("/c/x?a=1")[1] == b"3"
    assert cached.ask(host="evil.example")[1] == b"4"
    assert cached.ask()[1] == b"1"


def test_prefixes_that_a_trusted_proxy_says_are_apart(serve) -> None:
    """Links are made by them, too: one client's would be all clients'."""
    origin = Origin()
    with Peer(origin) as peer:
        env = {"UPSTREAMS": f"http://127.0.0.1:{peer.port}"}
        options = ("--workers", "1", "--forwarded-headers", "x-forwarded-for,x-forwarded-prefix")
        cached = Cached(serve(APP, *options, env=env), origin)
        origin.always({"cache-control": "max-age=100"})
        evil = {"x_forwarded_prefix": "/evil", "x_forwarded_for": "192.0.2.1"}
        assert [cached.ask(**evil)[1], cached.ask()[1]] == [b"1", b"2"]
        assert [cached.ask(**evil)[1], cached.ask()[1]] == [b"1", b"2"]
        assert origin.seen[0][1][b"x-forwarded-prefix"] == b"/evil"


def test_head_is_had_from_a_get(cached: Cached) -> None:
    cached.origin.always({"cache-control": "max-age=100"})
    assert cached.counts(2, path="/c/head", method="HEAD") == 2
    cached.ask()
    assert cached.ask(method="HEAD")[:2] == (200, b"")
    assert len(cached.origin.seen) == 3


def test_unsafe_methods_invalidate(cached: Cached) -> None:
    """§4.4: the URL, and those in Location and Content-Location of the same origin; not for an error."""
    cached.origin.always({"cache-control": "max-age=100"})
    for path in ("/c/x", "/c/y", "/c/z"):
        cached.ask(path)
    cached.origin.always({}, "500 Bad")
    cached.ask(method="POST")
    cached.origin.always({"cache-control": "max-age=100"})
    assert [cached.counts(1, path=path) for path in ("/c/x", "/c/y", "/c/z")] == [0, 0, 0]
    cached.origin.always(
        {"location": "/c/y", "content-location": "http://elsewhere/c/z"}, "201 Made"
    )
    cached.ask(method="POST")
    cached.origin.always({"cache-control": "max-age=100"})
    assert [cached.counts(1, path=path) for path in ("/c/x", "/c/y", "/c/z")] == [1, 1, 0]


@pytest.mark.parametrize(
    "reference",
    ["y", "./y#a", "http://A/c/y", "http://a:80/c/y", "{server}/c/y", "//a/c/y"],
)
@pytest.mark.parametrize("field", ["location", "content-location"])
def test_what_is_named_by_a_change_in_any_form_is_dropped(
    cached: Cached, reference: str, field: str
) -> None:
    """§4.4, RFC 9110 §10.2.2: relative, the origin in another form, or as the server knows itself."""
    cached.origin.always({"cache-control": "max-age=100"})
    cached.ask("/c/y", host="a")
    server = cached.server.get("/to", accept="text/plain").body.decode().strip('"')
    cached.origin.always({field: reference.format(server=server)}, "201 Made")
    cached.ask(method="POST", host="a")
    cached.origin.always({"cache-control": "max-age=100"})
    assert cached.counts(1, path="/c/y", host="a") == 1


@pytest.mark.parametrize("status", ["200 OK", "cut"])
@pytest.mark.parametrize(("kept", "changed"), [("a", "A:80"), ("a:80", "a"), ("[::1]", "[::1]:80")])
def test_a_change_is_one_of_the_url_with_and_without_its_port(
    cached: Cached, kept: str, changed: str, status: str
) -> None:
    """RFC 9110 §4.2.3: some clients write the port of the scheme, others do not."""
    cached.origin.always({"cache-control": "max-age=100"})
    cached.ask(host=kept)
    cached.ask(host="a:81")
    if status == "cut":
        cached.origin.always({"content-length": "x"})  # no response: it may have been done
        assert cached.ask(method="POST", host=changed)[0] == 502
    else:
        cached.ask(method="POST", host=changed)
    cached.origin.always({"cache-control": "max-age=100"})
    assert cached.counts(1, host=kept) == 1
    assert cached.counts(1, host="a:81") == 0


def test_a_304_of_another_response_renews_nothing(cached: Cached) -> None:
    """§4.3.4: what is stored would be sent on with the entity tag of what it is not."""

    def say(line: str, fields: dict[bytes, bytes]) -> tuple[str, Fields, bytes]:
        if b"if-none-match" in fields:
            return "304 Same", {"etag": '"b"', "cache-control": "max-age=100"}, b""
        number = len(cached.origin.seen)
        tag = '"b"' if number > 1 else '"a"'
        return "200 OK", {"etag": tag, "cache-control": "max-age=0"}, b"%d" % number

    cached.origin.say = say
    assert cached.ask()[1] == b"1"
    status, body, fields = cached.ask()
    assert (status, body, fields["etag"]) == (200, b"3", '"b"')


@pytest.mark.parametrize("field", ["range", "if-range", "if-match", "if-unmodified-since"])
def test_requests_for_parts_pass(cached: Cached, field: str) -> None:
    cached.origin.always({"cache-control": "max-age=100"})
    cached.ask()
    assert cached.counts(2, **{field: "bytes=0-1"}) == 2


def test_content_of_a_request_poisons_nothing(cached: Cached) -> None:
    """What a server makes of the content of a GET is for that request; over HTTP/2 it has no length."""
    cached.origin.always({"cache-control": "max-age=100"})
    with cached.server.connect() as client:
        with_length = {"content-length": "4"}
        assert client.request("GET", "/c/x", b"evil", **with_length).status == 200
    with cached.server.connect() as client:
        peer = H2Peer(client)
        peer.request(1, "GET", "/c/x", b"evil")
        peer.answer(1)
    assert len(cached.origin.seen) == 2
    assert cached.counts(1, host="test") == 1


def test_stale_if_error(cached: Cached) -> None:
    """RFC 5861 §4: a status of 500 and more, and no response at all."""
    said = {"cache-control": "max-age=1, stale-if-error=1000", "age": "50"}
    cached.origin.always(said)
    cached.ask()
    cached.origin.always({}, "503 Away")
    status, body, fields = cached.ask()
    assert (status, body) == (200, b"1")
    assert fields["cache-status"] == "citius; hit; fwd=stale; fwd-status=503"
    cached.origin.is_gone = True
    assert cached.ask()[:2] == (200, b"1")
    assert cached.ask("/c/other")[0] == 502


def test_stale_while_revalidate(cached: Cached) -> None:
    """RFC 5861 §3."""
    cached.origin.always({"cache-control": "max-age=1, stale-while-revalidate=1000", "age": "50"})
    cached.ask()
    cached.origin.always({"cache-control": "max-age=1000"})
    assert cached.ask()[1] == b"1"
    wait_for(lambda: cached.ask()[1] == b"2", "the response of the revalidation")
    assert len(cached.origin.seen) == 2


def test_the_same_requests_are_one(cached: Cached) -> None:
    """Requests that come while the first is under way wait for its response."""
    cached.origin.always({"cache-control": "max-age=100"})
    cached.origin.gate = threading.Event()
    with cached.server.connect() as one, cached.server.connect() as two:
        for client in (one, two):
            client.send(b"GET /c/x HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: cached.origin.seen, "the first request")
        cached.origin.gate.set()
        assert one.reply().body == two.reply().body == b"1"
    assert len(cached.origin.seen) == 1


@pytest.mark.parametrize("authorization", [b"", b"authorization: Bearer x\r\n"])
def test_requests_whose_responses_are_not_shared_do_not_wait_for_one_another(
    cached: Cached, authorization: bytes
) -> None:
    """One that the server is slow to answer would hold up all others for its URL."""
    cached.origin.always({"cache-control": "max-age=100" if authorization else "no-store"})
    if not authorization:
        cached.ask()
    before = len(cached.origin.seen)
    cached.origin.gate = threading.Event()
    with cached.server.connect() as one, cached.server.connect() as two:
        for client in (one, two):
            client.send(b"GET /c/x HTTP/1.1\r\nhost: a\r\n%s\r\n" % authorization)
        wait_for(lambda: len(cached.origin.seen) == before + 2, "both requests")
        cached.origin.gate.set()
        assert one.reply().status == two.reply().status == 200


def test_a_first_client_that_leaves_costs_the_others_nothing(cached: Cached) -> None:
    cached.origin.always({"cache-control": "max-age=100"})
    cached.origin.gate = threading.Event()
    with cached.server.connect() as two:
        with cached.server.connect() as one:
            one.send(b"GET /c/x HTTP/1.1\r\nhost: a\r\n\r\n")
            wait_for(lambda: cached.origin.seen, "the first request")
            two.send(b"GET /c/x HTTP/1.1\r\nhost: a\r\n\r\n")
        cached.origin.gate.set()
        assert two.reply().status == 200


def test_a_client_that_reads_slowly_holds_up_no_other(cached: Cached) -> None:
    """The same requests wait for a response to be stored, not for the client that gets it first."""
    content = b"x" * (8 << 20)
    cached.origin.say = lambda line, _: ("200 OK", {"cache-control": "max-age=100"}, content)
    with (
        cached.server.connect(receive_buffer_bytes=4096) as slow,
        cached.server.connect() as other,
    ):
        slow.send(b"GET /large/x HTTP/1.1\r\nhost: a\r\n\r\n")
        slow.read_until(b"\r\n\r\n")
        other.send(b"GET /large/x HTTP/1.1\r\nhost: a\r\n\r\n")
        reply = other.reply()
        assert (reply.status, len(reply.body)) == (200, len(content))
        assert reply.headers["cache-status"] == "citius; hit; collapsed"
        assert len(cached.origin.seen) == 1


def test_a_change_while_a_response_is_on_its_way(cached: Cached) -> None:
    """§4.4: what was asked for before is not kept."""
    cached.origin.always({"cache-control": "max-age=100"})
    cached.origin.gate = gate = threading.Event()
    with cached.server.connect() as reader, cached.server.connect() as writer:
        reader.send(b"GET /c/x HTTP/1.1\r\nhost: a\r\n\r\n")
        wait_for(lambda: cached.origin.seen, "the first request")
        cached.origin.gate = None
        assert writer.request("POST", "/c/x", host="a").status == 200
        gate.set()
        assert reader.reply().status == 200
    assert json.loads(cached.server.get("/cache").body)["entries"] == 0


def test_fields_of_both_are_the_same(cached: Cached) -> None:
    cached.origin.always({"cache-control": "max-age=100", "x-of": "origin", "x-two": "a"})
    found: list[set[str]] = []
    for _ in range(2):
        with cached.server.connect() as client:
            found.append(set(client.request("GET", "/c/x").headers))
    assert found[1] - found[0] == {"age"}
    assert found[0] - found[1] <= {"transfer-encoding"}


def test_memory_is_bounded(cached: Cached) -> None:
    cached.origin.say = lambda line, _: (
        "200 OK", {"cache-control": "max-age=100"}, b"x" * (60_000 if "big" in line else 30_000),
    )  # fmt: skip
    for number in range(9):
        cached.ask(f"/c/{number}")
    found = json.loads(cached.server.get("/cache").body)
    assert found["entries"] == 3
    assert 90_000 < found["bytes"] <= 100_000
    assert cached.counts(1, path="/c/8") == 0
    assert cached.counts(1, path="/c/0") == 1
    assert cached.counts(2, path="/c/big") == 2


def test_what_a_client_chooses_takes_of_the_bound() -> None:
    """Targets, and fields that ``Vary`` names: small responses took 15 times ``bytes_max``."""
    bytes_max = 4 << 20
    responses = MemoryResponses(bytes_max)
    tracemalloc.start()
    try:
        for number in range(2000):
            fields = [(f"x-{name}", f"{name} {number}") for name in range(8)]
            varies = (("x-a", b"a" * 4000 + b"%d" % number),)
            entry = Entry(200, fields, b"", varies, time.monotonic())
            responses.keep(
                Key("to", "http", "a", "/?" + "a" * 4000 + str(number)), entry, Mark(), int
            )
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 100 < responses.stats()["entries"] < 2000
    assert taken < 1.25 * bytes_max
    while responses.stats()["entries"]:
        asyncio.run(responses.invalidate([next(iter(responses._entries))]))
    assert responses.stats()["bytes"] == 0


def test_a_response_that_is_cut_is_not_kept(cached: Cached) -> None:
    cached.origin.always({"cache-control": "max-age=100"})
    cached.origin.cuts = True
    with cached.server.connect() as client:
        client.send(b"GET /c/x HTTP/1.1\r\nhost: a\r\n\r\n")
        client.read_to_end()
    assert json.loads(cached.server.get("/cache").body) == {"entries": 0, "bytes": 0}


def test_lists_of_directives() -> None:
    assert directives(['a=1, B="x, y" ,,c', "a=1"]) == {"a": "1", "b": "x, y", "c": None}
    assert "no-store" in directives(['max-age=1, x="'])
    assert lifetime_s(directives(["max-age=5"]), []) == 5


def test_options_that_cannot_work() -> None:
    with pytest.raises(ConfigError, match="bytes_max"):
        HTTPCache(bytes_max=10)
    with pytest.raises(ConfigError, match="name"):
        HTTPCache(name="a b")


def stored_after(change: Callable[[HTTPCache, list[Key]], object], count: int = 1) -> int:
    """How many responses are kept that come after a change, to requests from before it."""
    cache, keys = HTTPCache(), [Key("a", "http", "h", f"/{number}") for number in range(2 * count)]
    entry = Entry(200, [("cache-control", "max-age=100")], b"old", (), time.monotonic())
    change(cache, keys)
    for key in keys[:count]:
        cache.store.keep(key, entry, Mark(), lambda: None)
    return cache.stats()["entries"]


def test_no_change_is_forgotten() -> None:
    """A response from before the change of its URL was kept if 1000 other URLs changed in between."""

    def all_of(cache: HTTPCache, keys: list[Key]) -> None:
        asyncio.run(cache.store.invalidate(keys))

    def others(cache: HTTPCache, keys: list[Key]) -> None:
        asyncio.run(cache.store.invalidate(keys[len(keys) // 2 :]))

    assert stored_after(all_of, CHANGED_MAX) == 0
    assert stored_after(others, CHANGED_MAX) == CHANGED_MAX


def test_what_is_on_its_way_is_not_kept_after_clear() -> None:
    assert stored_after(lambda cache, _: cache.clear()) == 0
