"""Headers of the PROXY protocol before TLS, HTTP and calls of procedures; their parsing's cases are in
crates/citius-forwarded."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from pki import Pki, metric
from rig import TIMEOUT_S, Peer, Server, application, citius, get, wait_for
from rpc_rig import serve_procedures

Serve = Callable[..., Server]

NATIVE = application("proxy_headers_native_app")
ASGI = application("proxy_headers_asgi_app")
V1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n"
SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
ADDRESSES = socket.inet_aton("192.0.2.7") + socket.inet_aton("198.51.100.1")
V2 = SIGNATURE + struct.pack("!BBH", 0x21, 0x11, 12) + ADDRESSES + struct.pack("!HH", 4711, 443)
# The same client as a proxy that listens for both families writes it (RFC 4291 section 2.5.5.2).
MAPPED = [socket.inet_pton(socket.AF_INET6, f"::ffff:{ip}") for ip in ("192.0.2.7", "198.51.100.1")]
V1_MAPPED = b"PROXY TCP6 ::ffff:192.0.2.7 ::ffff:c633:6401 4711 443\r\n"
V2_MAPPED = (
    SIGNATURE
    + struct.pack("!BBH", 0x21, 0x21, 36)
    + b"".join(MAPPED)
    + struct.pack("!HH", 4711, 443)
)
LOCAL = SIGNATURE + struct.pack("!BBH", 0x20, 0, 0)
UNNAMED = SIGNATURE + struct.pack("!BBH", 0x21, 0, 0)
REQUEST = b"GET / HTTP/1.1\r\nhost: test\r\n\r\n"


def said_to(peer: Peer, *, x_forwarded_for: str | None = None) -> dict[str, Any]:
    fields = {} if x_forwarded_for is None else {"x_forwarded_for": x_forwarded_for}
    return json.loads(peer.request("GET", "/", **fields).body)


@pytest.mark.parametrize(
    "header", [V1, V2, V1_MAPPED, V2_MAPPED], ids=["v1", "v2", "v1 mapped", "v2 mapped"]
)
@pytest.mark.parametrize("kind", ["native", "asgi", "wsgi"])
def test_the_client_is_who_the_header_says(serve: Serve, kind: str, header: bytes) -> None:
    app = application(f"proxy_headers_{kind}_app")
    server = serve(app, "--proxy-protocol", "--access-log-format", "common")
    with server.connect() as peer:
        peer.send(header)
        for _ in range(2):
            # What the header names is no trusted proxy, so its fields say nothing.
            said = said_to(peer, x_forwarded_for="6.6.6.6")
            assert said["client"] == ["192.0.2.7", 4711]
            assert said.get("server", ["198.51.100.1", 443]) == ["198.51.100.1", 443]
    assert server.stop() == 0
    assert server.out.count("192.0.2.7 - - ") == 2


def test_the_connection_is_the_proxy_s_own(serve: Serve) -> None:
    server = serve(NATIVE, "--proxy-protocol")
    with server.connect() as peer:
        peer.send(LOCAL)
        assert said_to(peer)["client"][0] == "127.0.0.1"
        # It is a trusted one, whose fields are believed.
        assert said_to(peer, x_forwarded_for="192.0.2.9")["client"][0] == "192.0.2.9"


@pytest.mark.parametrize("header", [b"PROXY UNKNOWN\r\n", UNNAMED], ids=["v1", "v2"])
def test_fields_of_a_client_without_a_name_are_not_the_proxy_s(serve: Serve, header: bytes) -> None:
    """HAProxy says so of clients on Unix sockets: they may send what they like."""
    server = serve(NATIVE, "--proxy-protocol")
    with server.connect() as peer:
        peer.send(header)
        assert said_to(peer, x_forwarded_for="6.6.6.6")["client"][0] == "127.0.0.1"


@pytest.mark.parametrize("header", [V1, V2], ids=["v1", "v2"])
def test_bytes_may_come_one_by_one(serve: Serve, header: bytes) -> None:
    server = serve(NATIVE, "--proxy-protocol")
    with server.connect() as together, server.connect() as apart:
        together.send(header + REQUEST)
        assert json.loads(together.reply().body)["client"] == ["192.0.2.7", 4711]
        apart.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in header + REQUEST:
            apart.send(bytes([byte]))
        assert json.loads(apart.reply().body)["client"] == ["192.0.2.7", 4711]


@pytest.mark.parametrize("header", [V1, V2], ids=["v1", "v2"])
def test_tls_begins_behind_the_header(serve: Serve, tmp_path: Path, header: bytes) -> None:
    pki = Pki(trustme.CA(), tmp_path)
    certificate, key = pki.issue("localhost")
    server = serve(ASGI, "--proxy-protocol", "--ssl-certfile", certificate, "--ssl-keyfile", key)
    context = pki.client()
    with server.connect() as plain:
        plain.send(header)
        with Peer(context.wrap_socket(plain.socket, server_hostname="localhost")) as peer:
            said = said_to(peer)
        assert (said["client"], said["scheme"]) == (["192.0.2.7", 4711], "https")
    # The header and the first bytes of the handshake in one piece.
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    with server.connect() as peer:
        peer.send(header + outgoing.read())
        assert peer.read(1) == b"\x16"  # a record of the handshake


def test_others_are_closed_and_told_of(serve: Serve) -> None:
    server = serve(NATIVE, "--proxy-protocol", "--management", "127.0.0.1:0")
    wrong = [REQUEST, b"PROXY TCP4 1.2.3.4\r\n", SIGNATURE + b"\x21\x12\0\0", V1 + V1 + REQUEST]
    for sent in wrong:
        with server.connect() as peer:
            peer.send(sent)
            answer = peer.read_to_end()
            # A second header is a request that cannot be.
            assert answer.startswith(b"HTTP/1.1 400") if sent.startswith(V1) else answer == b""
    with server.connect():
        pass  # as load balancers look whether the port is open: no notice, no count
    server.wait_for_log("PROXY protocol: a connection from 127.0.0.1 is closed: it does not begin")
    wait_for(lambda: metric(server, "citius_proxy_headers_refused_total") == 3, "three refused")
    assert server.err.count("PROXY protocol:") == 1  # the counter has all


def test_strangers_send_no_header(serve: Serve) -> None:
    server = serve(NATIVE, "--proxy-protocol", "--forwarded-allow-ips", "192.0.2.1")
    with server.connect() as peer:
        peer.send(V1 + REQUEST)
        assert peer.is_closed()
    server.wait_for_log("is closed: it is not one of --forwarded-allow-ips")


def test_a_header_has_its_time(serve: Serve) -> None:
    server = serve(NATIVE, "--proxy-protocol", "--head-read-ms", "300")
    with server.connect() as silent, server.connect() as half:
        half.send(V2[:20])
        assert silent.is_closed()
        assert half.is_closed()
    server.wait_for_log("it sent no PROXY header within --head-read-ms")


def test_one_address_of_several(serve: Serve) -> None:
    server = serve(NATIVE, "--bind", "proxy+127.0.0.1:0", "--bind", "127.0.0.1:0")
    proxied, direct = map(int, re.findall(r"http://127\.0\.0\.1:(\d+)", server.err))
    with Peer(socket.create_connection(("127.0.0.1", proxied), TIMEOUT_S)) as peer:
        peer.send(V1)
        assert said_to(peer)["client"] == ["192.0.2.7", 4711]
    assert json.loads(get(direct, "/")[1])["client"][0] == "127.0.0.1"


def test_calls_of_procedures(tmp_path: Path) -> None:
    server = serve_procedures(tmp_path, address="proxy+127.0.0.1:0")
    try:
        found = server.wait_for_log(r"rpc://127\.0\.0\.1:(\d+)")
        address = ("127.0.0.1", int(found[1]))
        call = b'{"jsonrpc": "2.0", "id": 1, "method": "missing"}\n'
        with Peer(socket.create_connection(address, TIMEOUT_S)) as peer:
            peer.send(V2 + call)
            assert b"-32601" in peer.read_until(b"\n")
        with Peer(socket.create_connection(address, TIMEOUT_S)) as peer:
            peer.send(call)
            assert peer.is_closed()
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--proxy-protocol", "--forwarded-allow-ips", ""], "no peer may send a PROXY header"),
        (["--bind", "proxy+127.0.0.1:0", "--forwarded-allow-ips", ""], "no peer may send"),
        (["--proxy-protocol", "--ssl-dev", "--http", "1,2,3"], "has no form for HTTP/3"),
        (["--bind", "proxy+127.0.0.1:0", "--ssl-dev", "--http", "1,2,3"], "has no form for"),
        (["--bind", "proxy+tls://127.0.0.1:0"], "needs a certificate"),
    ],
    ids=["nobody", "address", "http3", "address-http3", "tls"],
)
def test_what_cannot_be_is_refused_at_the_start(arguments: list[str], message: str) -> None:
    ended = citius("serve", str(NATIVE), "--port", "0", *arguments)
    assert ended.returncode == 2
    assert message in ended.stderr


@pytest.mark.parametrize("form", ["send-proxy", "send-proxy-v2"])
def test_a_real_proxy(serve: Serve, tmp_path: Path, form: str) -> None:
    if shutil.which("haproxy") is None:
        pytest.skip("haproxy is not installed")
    server = serve(NATIVE, "--proxy-protocol", "--access-log-format", "common")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.set_inheritable(True)
        port = listener.getsockname()[1]
        path = tmp_path / "haproxy.cfg"
        path.write_text(
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n"
            f"frontend f\n  bind fd@{listener.fileno()}\n  default_backend b\n"
            f"backend b\n  server s 127.0.0.1:{server.port} {form}\n"
        )
        proxy = subprocess.Popen(["haproxy", "-db", "-f", str(path)], pass_fds=[listener.fileno()])
    try:
        with socket.socket() as client:
            client.settimeout(TIMEOUT_S)
            client.bind(("127.0.0.2", 0))
            client.connect(("127.0.0.1", port))
            said = said_to(Peer(client))
            assert said["client"] == list(client.getsockname())
    finally:
        proxy.terminate()
        proxy.wait(TIMEOUT_S)
