"""Errors through the transport for httpx are those that httpx itself raises, case by case."""

# pyright: basic

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import trustme
from citius.http.httpx import SyncTransport, Transport
from http_peer import Peer, Talk, server
from rig import free_port

HEAD = b"HTTP/1.1 200 OK\r\n"
LENGTH = HEAD + b"content-length: 5\r\n\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
SHORT, LONG = 0.3, 10.0
"""Seconds that a call has which is to come to its limit, and one which is not."""


def ends(data: bytes):
    """Responds, and closes."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(data)

    return act


def resets(data: bytes):
    """Responds, and resets the connection behind it."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(data)
        if data:
            wait_until_received(talk.socket)
        talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return act


def wait_until_received(made: socket.socket) -> None:
    """Returns when the other side's kernel has all: it is read before the reset that follows is."""
    import fcntl
    import termios

    while struct.unpack("I", fcntl.ioctl(made, termios.TIOCOUTQ, b"\0\0\0\0"))[0]:
        pass


def stalls(data: bytes):
    """Responds, and says no more."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(data)
        while talk.read():
            pass

    return act


def notifies(data: bytes):
    """Responds over TLS, and closes by close_notify."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(data)
        with suppress(OSError):
            talk.socket.unwrap()  # pyright: ignore[reportAttributeAccessIssue]

    return act


def redirects(location: str):
    def act(talk: Talk) -> None:
        while talk.request() is not None:
            talk.say(
                b"HTTP/1.1 302 F\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % location.encode()
            )

    return act


REMOTE, READ, TIMED_OUT = httpx.RemoteProtocolError, httpx.ReadError, httpx.ReadTimeout
CASES = {
    "end before the head": (ends(b""), REMOTE),
    "end within the status line": (ends(b"HTTP/1.1 2"), REMOTE),
    "end within the head": (ends(HEAD + b"content-le"), REMOTE),
    "end before the content": (ends(LENGTH), REMOTE),
    "end within the content": (ends(LENGTH + b"ab"), REMOTE),
    "end within a chunk": (ends(CHUNKED + b"5\r\nab"), REMOTE),
    "end within a chunk's size": (ends(CHUNKED + b"5"), REMOTE),
    "end between chunks": (ends(CHUNKED + b"2\r\nab\r\n"), REMOTE),
    "end within the trailers": (ends(CHUNKED + b"0\r\nx: y\r\n"), REMOTE),
    "end behind 100": (ends(b"HTTP/1.1 100 Continue\r\n\r\n"), REMOTE),
    "end behind 103": (ends(b"HTTP/1.1 103 Early Hints\r\n\r\n"), REMOTE),
    "reset before the head": (resets(b""), READ),
    "reset within the head": (resets(HEAD + b"content-le"), READ),
    "reset within the content": (resets(LENGTH + b"ab"), READ),
    "reset within a chunk": (resets(CHUNKED + b"5\r\nab"), READ),
    "reset of content that ends with the connection": (resets(HEAD + b"\r\nab"), READ),
    "nothing": (stalls(b""), TIMED_OUT),
    "nothing within the head": (stalls(HEAD), TIMED_OUT),
    "nothing within the content": (stalls(LENGTH + b"ab"), TIMED_OUT),
    "another protocol": (ends(b"SSH-2.0-OpenSSH\r\n\r\n"), REMOTE),
    "a status that is none": (ends(b"HTTP/1.1 abc OK\r\n\r\n"), REMOTE),
    "a line without a colon": (ends(HEAD + b"no colon\r\n\r\n"), REMOTE),
    "a name with a space": (ends(HEAD + b"a b: c\r\n\r\n"), REMOTE),
    "NUL in a value": (ends(HEAD + b"a: b\0c\r\ncontent-length: 0\r\n\r\n"), REMOTE),
    "two lengths": (ends(HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc"), REMOTE),
    "a negative length": (ends(HEAD + b"content-length: -2\r\n\r\nabc"), REMOTE),
    "a length that is none": (ends(HEAD + b"content-length: abc\r\n\r\nabc"), REMOTE),
    "a chunk's size that is none": (ends(CHUNKED + b"zz\r\nab\r\n"), REMOTE),
    "a chunk without its end": (ends(CHUNKED + b"2\r\nabXX0\r\n\r\n"), REMOTE),
    "an unknown transfer coding": (ends(HEAD + b"transfer-encoding: xyz\r\n\r\nabc"), REMOTE),
    "a head that is too long": (ends(HEAD + b"x: y\r\n" * 30_000 + b"\r\n"), REMOTE),
    "a switch that was not asked for": (
        ends(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"),
        REMOTE,
    ),
    "content that is not in its coding": (
        ends(HEAD + b"content-encoding: gzip\r\ncontent-length: 5\r\n\r\nabcde"),
        httpx.DecodingError,
    ),
    "redirects in a circle": (redirects("/"), httpx.TooManyRedirects),
    "a redirect to another protocol": (redirects("ftp://a/"), httpx.UnsupportedProtocol),
}
SECURED = {
    "notified end before the head": (notifies(b""), REMOTE),
    "notified end within the head": (notifies(HEAD + b"conte"), REMOTE),
    "notified end within the content": (notifies(LENGTH + b"ab"), REMOTE),
    "notified end within a chunk": (notifies(CHUNKED + b"5\r\nab"), REMOTE),
    "end before the head": (ends(b""), REMOTE),
    "end within the head": (ends(HEAD + b"conte"), REMOTE),
    "end within the content": (ends(LENGTH + b"ab"), REMOTE),
    "end within a chunk": (ends(CHUNKED + b"5\r\nab"), REMOTE),
}
PROXIED = {
    "refusal": (ends(b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"), httpx.ProxyError),
    "end": (ends(b""), REMOTE),
    "another protocol": (ends(b"nonsense\r\n\r\n"), REMOTE),
}
STRICTER = {
    "a version that does not exist": ends(b"HTTP/3.7 200 OK\r\ncontent-length: 0\r\n\r\n"),
    "content of a response that has none": ends(b"HTTP/1.1 204 No\r\ncontent-length: 3\r\n\r\nabc"),
}


def calls(url: str, bundle: str | None = None, proxy: str | None = None, timeout: float = LONG):
    """By httpx and through the transport, by both clients."""
    rules = True if bundle is None else ssl.create_default_context(cafile=bundle)
    options = {"trust_env": False, "timeout": timeout, "follow_redirects": True}
    own = {"trust_env": False, "proxy": proxy, "verify": bundle or True}

    def plain() -> None:
        with httpx.Client(**options, verify=rules, proxy=proxy) as client:
            client.get(url)

    def ours() -> None:
        with httpx.Client(**options, transport=SyncTransport(**own)) as client:
            client.get(url)

    async def plain_async() -> None:
        async with httpx.AsyncClient(**options, verify=rules, proxy=proxy) as client:
            await client.get(url)

    async def ours_async() -> None:
        async with httpx.AsyncClient(**options, transport=Transport(**own)) as client:
            await client.get(url)

    yield from (plain, ours)
    yield from (lambda: asyncio.run(plain_async()), lambda: asyncio.run(ours_async()))


def check(expected: type[Exception], url: str, **options: str) -> None:
    timeout = SHORT if issubclass(expected, httpx.TimeoutException) else LONG
    for call in calls(url, timeout=timeout, **options):
        with pytest.raises(expected) as caught:
            call()
        assert type(caught.value) is expected


@pytest.mark.parametrize("case", CASES)
def test_a_server(case: str) -> None:
    act, expected = CASES[case]
    with Peer(act) as peer:
        check(expected, f"http://127.0.0.1:{peer.port}/")


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def bundle(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


@pytest.mark.parametrize("case", SECURED)
def test_a_server_behind_tls(case: str, authority: trustme.CA, bundle: str) -> None:
    act, expected = SECURED[case]
    with Peer(act, tls=server(authority.issue_cert("localhost"))) as peer:
        check(expected, f"https://localhost:{peer.port}/", bundle=bundle)


def test_tls_that_fails(authority: trustme.CA, bundle: str) -> None:
    for context in (
        server(trustme.CA().issue_cert("localhost")),
        server(authority.issue_cert("other")),
    ):
        with Peer(ends(b""), tls=context) as peer:
            check(httpx.ConnectError, f"https://localhost:{peer.port}/", bundle=bundle)
    with Peer(lambda talk: None) as peer:
        check(httpx.ConnectError, f"https://localhost:{peer.port}/", bundle=bundle)
    with Peer(lambda talk: talk.say(b"HTTP/1.1 400 Bad\r\n\r\n")) as peer:
        check(httpx.ConnectError, f"https://localhost:{peer.port}/", bundle=bundle)
    with Peer(stalls(b"")) as peer:
        check(httpx.ConnectTimeout, f"https://localhost:{peer.port}/", bundle=bundle)


@pytest.mark.parametrize("case", PROXIED)
def test_a_proxy(case: str, bundle: str) -> None:
    act, expected = PROXIED[case]
    with Peer(act) as peer:
        proxy = f"http://127.0.0.1:{peer.port}"
        check(expected, "https://localhost:9/", bundle=bundle, proxy=proxy)


def test_a_proxy_that_cannot_be_reached(bundle: str) -> None:
    for url in ("https://localhost:9/", "http://localhost:9/"):
        check(httpx.ConnectError, url, bundle=bundle, proxy=f"http://127.0.0.1:{free_port()}")


def test_what_cannot_be_connected_to() -> None:
    check(httpx.ConnectError, f"http://127.0.0.1:{free_port()}/")
    check(httpx.ConnectError, "http://name.invalid/")
    for url in ("ftp://a/", "http:///x", "/x"):
        check(httpx.UnsupportedProtocol, url)
    client = httpx.Client(transport=SyncTransport(trust_env=False))
    with client, pytest.raises(httpx.ConnectError, match="no port 99999"):
        client.get("http://127.0.0.1:99999/")


@pytest.mark.parametrize("case", STRICTER)
def test_where_the_transport_is_stricter(case: str) -> None:
    """httpx takes these for responses; two readings of one are how others are smuggled."""
    with Peer(STRICTER[case]) as peer:
        plain, ours, plain_async, ours_async = calls(f"http://127.0.0.1:{peer.port}/")
        for call in (plain, plain_async):
            call()
        for call in (ours, ours_async):
            with pytest.raises(httpx.RemoteProtocolError):
                call()


def test_content_over_tls_that_ends_without_notice_is_cut(
    authority: trustme.CA, bundle: str
) -> None:
    """httpx treats it as complete, so an attacker on the path can truncate it (RFC 9112 §9.8)."""
    with Peer(ends(HEAD + b"\r\nab"), tls=server(authority.issue_cert("localhost"))) as peer:
        plain, ours, _, ours_async = calls(f"https://localhost:{peer.port}/", bundle=bundle)
        plain()
        for call in (ours, ours_async):
            with pytest.raises(httpx.RemoteProtocolError):
                call()
    with Peer(notifies(HEAD + b"\r\nab"), tls=server(authority.issue_cert("localhost"))) as peer:
        for call in calls(f"https://localhost:{peer.port}/", bundle=bundle):
            call()
