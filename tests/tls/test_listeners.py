"""Addresses of one server that differ in TLS and in the versions of HTTP."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from h2peer import PREFACE
from pki import Pki
from rig import TIMEOUT_S, Peer, Server, wait_for

ADDRESSES = (
    "tls://127.0.0.1:0",
    "tls://localhost:0?http=1",
    "127.0.0.1:0?http=2",
    ":0?http=1",
    "[::1]:0",
)


def addresses(server: Server) -> list[tuple[str, int]]:
    """Scheme and port of all that it serves on."""
    line = server.err[server.err.index("serves on") :].partition("\n")[0]
    return [(scheme, int(port)) for scheme, port in re.findall(r"(\w+)://\S+:(\d+)", line)]


def clear(port: int, host: str = "127.0.0.1") -> Peer:
    return Peer(socket.create_connection((host, port), TIMEOUT_S))


def encrypted(port: int, pki: Pki, *offered: str) -> Peer:
    context = pki.client()
    context.set_alpn_protocols(list(offered))
    made = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
    return Peer(context.wrap_socket(made, server_hostname="localhost"))


def protocol(peer: Peer) -> str | None:
    assert isinstance(peer.socket, ssl.SSLSocket)
    return peer.socket.selected_alpn_protocol()


def check_http2_alone(port: int) -> None:
    """Clear text, HTTP/2 and no other version."""
    with clear(port) as peer:
        peer.send(PREFACE)
        assert peer.read(9)[3] == 4  # SETTINGS
    with clear(port) as peer:
        peer.send(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n")
        assert not peer.read_to_end().startswith(b"HTTP/1.1 200")


def check_http1_alone(port: int) -> None:
    """Clear text, HTTP/1.1 and no other version."""
    with clear(port) as peer:
        assert peer.request("GET", "/").body == b"Hello"
    with clear(port) as peer:
        peer.send(PREFACE)
        assert peer.read_to_end().startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize("more", [(), ("--workers", "2")])
def test_each_speaks_what_it_says(
    secured: Callable[..., Server], pki: Pki, more: tuple[str, ...]
) -> None:
    server = secured(*(part for text in ADDRESSES for part in ("--bind", text)), *more)
    (tls, both), (tls1, one), (h2, two), (h1, clear_one), (plain, six) = addresses(server)
    assert [tls, tls1, h2, h1, plain] == ["https", "https", "http", "http", "http"]
    with encrypted(both, pki, "h2", "http/1.1") as peer:
        assert protocol(peer) == "h2"
    with encrypted(both, pki, "http/1.1") as peer:
        assert protocol(peer) == "http/1.1"
        assert peer.request("GET", "/").body == b"Hello"
    with encrypted(one, pki, "h2", "http/1.1") as peer:
        assert protocol(peer) == "http/1.1"
        assert peer.request("GET", "/").body == b"Hello"
    with pytest.raises(ssl.SSLError):
        encrypted(one, pki, "h2")
    with clear(both) as peer:
        assert peer.request("GET", "/").status == 400  # this port speaks HTTPS
    check_http2_alone(two)
    check_http1_alone(clear_one)
    with clear(six, "::1") as peer:
        assert peer.request("GET", "/").body == b"Hello"
    with clear(six, "::1") as peer:
        peer.send(PREFACE)
        assert peer.read(9)[3] == 4


def test_the_scheme_is_that_of_the_connection(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--bind", "tls://127.0.0.1:0", "--bind", "127.0.0.1:0")
    (_, over_tls), (_, in_clear_text) = addresses(server)
    with encrypted(over_tls, pki, "http/1.1") as peer:
        assert b'"scheme":"https"' in peer.request("GET", "/about").body
    with clear(in_clear_text) as peer:
        assert b'"scheme":"http"' in peer.request("GET", "/about").body


def test_a_reload_keeps_what_each_speaks(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured(
        "--bind", "127.0.0.1:0?http=2", "--bind", "tls://127.0.0.1:0?http=1", "--workers", "2"
    )
    (_, two), (_, one) = addresses(server)
    server.signal(signal.SIGHUP)
    server.wait_for_log("all workers are new")
    for _ in range(8):
        with clear(two) as peer:
            peer.send(PREFACE)
            assert peer.read(9)[3] == 4
        with encrypted(one, pki, "http/1.1") as peer:
            assert peer.request("GET", "/").body == b"Hello"


def test_unix_sockets_have_it_too(secured: Callable[..., Server], pki: Pki, tmp_path: Path) -> None:
    path = tmp_path / "clear.sock"
    secured("--bind", "tls://127.0.0.1:0", "--bind", f"unix:{path}?http=1")
    wait_for(path.exists, "the socket")
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(TIMEOUT_S)
    made.connect(str(path))
    with Peer(made) as peer:
        assert peer.request("GET", "/").body == b"Hello"


def test_an_upgrade_keeps_what_each_speaks(
    secured: Callable[..., Server], pki: Pki, tmp_path: Path
) -> None:
    server = secured(
        "--bind", "127.0.0.1:0?http=2", "--bind", "127.0.0.1:0?http=1",
        "--bind", "tls://127.0.0.1:0?http=1", "--workers", "2", "--pidfile", "pid",
    )  # fmt: skip
    (_, two), (_, one), (_, tls) = before = addresses(server)
    assert len({port for _, port in before}) == 3
    server.signal(signal.SIGUSR2)
    assert server.process.wait(TIMEOUT_S) == 0
    try:
        for _ in range(4):
            check_http2_alone(two)
            check_http1_alone(one)
            with encrypted(tls, pki, "h2", "http/1.1") as peer:
                assert protocol(peer) == "http/1.1"
                assert peer.request("GET", "/").body == b"Hello"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    assert server.wait() == 0
