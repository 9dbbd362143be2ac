"""Calls through proxies: forwarded, by CONNECT, and by SOCKS5."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from citius._core import HttpOrigin
from citius.http import errors
from http_peer import FIVE, OK, Peer, Talk, answering, get, run, server

if TYPE_CHECKING:
    from pathlib import Path

    from citius.http.transport import Pool


def relay(one: socket.socket, other: socket.socket) -> None:
    def copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    thread = threading.Thread(target=copy, args=(one, other), daemon=True)
    thread.start()
    copy(other, one)
    thread.join()


class Tunnel:
    """A proxy that connects."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connected\r\n\r\n") -> None:
        self.heads: list[bytes] = []
        self._answer = answer

    def __call__(self, talk: Talk) -> None:
        while b"\r\n\r\n" not in talk._buffer:
            if not talk._more():
                return
        head = talk._buffer
        self.heads.append(head)
        talk.say(self._answer)
        if b" 200 " not in self._answer:
            return
        host, _, port = head.split()[1].decode().rpartition(":")
        with socket.create_connection((host, int(port))) as made:
            relay(talk.socket, made)


def test_a_tunnel(tmp_path: Path) -> None:
    authority, seen = trustme.CA(), list[dict[bytes, bytes]]()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def act(talk: Talk) -> None:
        while talk.request():
            seen.append(talk.fields)
            talk.say(OK)

    proxy = Tunnel()
    with Peer(act, tls=server(authority.issue_cert("localhost"))) as peer, Peer(proxy) as between:

        async def work(pool: Pool) -> None:
            url = f"http://user:pass%20word@127.0.0.1:{between.port}"
            for _ in range(2):
                assert (await get(pool, peer.origin(host="localhost", proxy=url))).body == b"ok"

        run(work, verify=str(tmp_path / "ca.pem"))
        assert between.accepted == 1
        assert proxy.heads[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % peer.port)
    assert b"Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=" in proxy.heads[0]
    assert not [fields for fields in seen if b"proxy-authorization" in fields], (
        "the target is not told"
    )


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "407 Proxy Authentication Required",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\nsurplus", "belong to no connection"),
        (b"SSH-2.0\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 403 \x1b[2J\nforged\r\n\r\n", r"403 \\x1b\[2J\\nforged$"),
        (b"HTTP/1.1 200 " + b"x" * 20_000, "too long"),
    ],
)
def test_a_proxy_that_refuses(answer: bytes, what: str) -> None:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(answer)
        talk.request()

    with Peer(act) as between:

        async def work(pool: Pool) -> None:
            origin = HttpOrigin(
                "https", "shop.example", 443, proxy=f"http://127.0.0.1:{between.port}"
            )
            with pytest.raises(errors.ProxyError, match=what):
                await get(pool, origin)

        run(work)


def test_a_proxy_that_is_not_there() -> None:
    async def work(pool: Pool) -> None:
        for scheme in ("http", "socks5h"):
            origin = HttpOrigin("http", "shop.example", 80, proxy=f"{scheme}://127.0.0.1:1")
            with pytest.raises(errors.ProxyError, match="cannot be reached"):
                await get(pool, origin)

    run(work)


def test_requests_that_are_not_secured_are_forwarded() -> None:
    seen: list[tuple[str, dict[bytes, bytes]]] = []

    def act(talk: Talk) -> None:
        while request := talk.request():
            seen.append((request[0], talk.fields))
            talk.say(OK)

    with Peer(act) as between:

        async def work(pool: Pool) -> None:
            url = f"http://user:word@127.0.0.1:{between.port}"
            origin = HttpOrigin("http", "shop.example", 8080, proxy=url)
            assert (await get(pool, origin)).body == b"ok"

        run(work)
    line, fields = seen[0]
    assert line == "GET http://shop.example:8080/ HTTP/1.1"
    assert fields[b"host"] == b"shop.example:8080"
    assert fields[b"proxy-authorization"] == b"Basic dXNlcjp3b3Jk"


class Socks:
    """A proxy of SOCKS5."""

    def __init__(self, reply: int = 0, method: int = 0) -> None:
        self.said: list[bytes] = []
        self._reply, self._method = reply, method

    def __call__(self, talk: Talk) -> None:
        made = talk.socket
        made.recv(2)
        self.said.append(made.recv(10))
        made.sendall(bytes([5, self._method]))
        if self._method == 2:
            self.said.append(made.recv(100))
            made.sendall(b"\x01\x00")
        request = made.recv(300)
        self.said.append(request)
        made.sendall(bytes([5, self._reply, 0, 1]) + b"\0\0\0\0\0\0")
        if not self._reply:
            with socket.create_connection(("127.0.0.1", int.from_bytes(request[-2:], "big"))) as to:
                relay(made, to)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_socks(scheme: str) -> None:
    proxy = Socks(method=2)
    with Peer(answering()) as peer, Peer(proxy) as between:

        async def work(pool: Pool) -> None:
            url = f"{scheme}://user:word@127.0.0.1:{between.port}"
            assert (await get(pool, peer.origin(host="localhost", proxy=url))).body == b"ok"

        async def resolver(host: str, port: int) -> list[tuple[int, Any]]:
            return [(socket.AF_INET, ("127.0.0.1", port))]

        run(work, resolver=resolver)
    assert proxy.said[:2] == [b"\x00\x02", b"\x01\x04user\x04word"]
    is_name = scheme == "socks5h"
    expected = b"\x05\x01\x00\x03\x09localhost" if is_name else b"\x05\x01\x00\x01\x7f\0\0\x01"
    assert proxy.said[2].startswith(expected)


@pytest.mark.parametrize(
    ("reply", "method", "what"), [(5, 0, "refused"), (2, 0, "rules"), (0, 255, "login")]
)
def test_socks_that_refuses(reply: int, method: int, what: str) -> None:
    with Peer(Socks(reply, method)) as between:

        async def work(pool: Pool) -> None:
            origin = HttpOrigin(
                "http", "shop.example", 80, proxy=f"socks5h://127.0.0.1:{between.port}"
            )
            with pytest.raises(errors.ProxyError, match=what):
                await get(pool, origin)

        run(work)


@pytest.mark.parametrize("said", [b"\x04\0\0\x01", b"\x05\0\0\x09", b"\x05\0\0\x00"])
def test_what_is_no_reply_of_socks(said: bytes) -> None:
    def act(talk: Talk) -> None:
        talk.socket.recv(3)
        talk.say(b"\x05\x00")
        talk.socket.recv(300)
        talk.say(said + b"\0" * 300)
        talk.socket.recv(1)

    with Peer(act) as between:

        async def work(pool: Pool) -> None:
            proxy = f"socks5h://127.0.0.1:{between.port}"
            origin = HttpOrigin("http", "shop.example", 80, proxy=proxy)
            with pytest.raises(errors.ProxyError, match="SOCKS5"):
                await get(pool, origin)

        run(work)


def test_a_proxy_that_says_nothing_has_the_time_of_connecting() -> None:
    with Peer(lambda talk: talk.socket.recv(1) and threading.Event().wait(2)) as between:

        async def work(pool: Pool) -> None:
            origin = HttpOrigin(
                "http", "a.example", 80, proxy=f"socks5h://127.0.0.1:{between.port}"
            )
            with pytest.raises(errors.ConnectTimeout):
                await get(pool, origin, deadlines=(0.2, *FIVE[1:]))

        run(work)
