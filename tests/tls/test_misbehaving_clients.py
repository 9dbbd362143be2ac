"""Peers that are slow, wrong, gone, huge or many; others are served all the while."""

from __future__ import annotations

import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from pki import Pki, connect, metric, run
from rig import Server, wait_for


def is_well(server: Server, pki: Pki) -> bool:
    with connect(server, pki.client()) as peer:
        return peer.request("GET", "/").body == b"Hello"


def test_clear_text_is_told_so(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        reply = peer.reply()
        assert (reply.status, reply.headers["connection"]) == (400, "close")
        assert b"HTTPS" in reply.body
        assert peer.is_closed()
    assert is_well(server, pki)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\x40\x01" + b"x" * 16385, b"\x80\x2e\x01\x00\x02",
        b"\x00" * 100,
        b"\x15\x03\x01\x00\x02\x02\x28", b"\x17\x03\x03\x00\x05hello", b"\xff" * 70000,
    ],
    ids=["handshake", "long", "sslv2", "zeros", "alert", "data", "ones"],
)  # fmt: skip
def test_garbage_is_cut_off(secured: Callable[..., Server], pki: Pki, sent: bytes) -> None:
    server = secured()
    with server.connect() as peer:
        with suppress(ConnectionError):
            peer.send(sent)
        answer = peer.read_to_end()
        assert answer == b"" or answer[0] == 21, "nothing, or an alert"
    assert is_well(server, pki)


def test_a_handshake_has_its_time(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--tls-handshake-ms", "300", "--management", "127.0.0.1:0")
    begun = time.monotonic()
    silent, half, dribbling = (server.connect() for _ in range(3))
    half.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    with suppress(ConnectionError):
        for byte in b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 100:
            dribbling.send(bytes([byte]))
            time.sleep(0.02)  # byte by byte for longer than a handshake may take
    for peer in (silent, half, dribbling):
        assert peer.is_closed()
    assert 0.25 < time.monotonic() - begun < 5
    wait_for(lambda: metric(server, "citius_tls_handshakes_failed_total") == 3, "three that failed")
    assert is_well(server, pki)


def test_bytes_may_come_one_by_one(secured: Callable[..., Server], pki: Pki) -> None:
    """Half records at every place, on both ways."""
    server = secured()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = pki.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with server.connect() as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def step(act: Callable[[], object]) -> object:
            while True:
                try:
                    return act()
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        peer.send(bytes([byte]))
                    incoming.write(peer.socket.recv(1))

        step(client.do_handshake)
        client.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        got = b""
        while not got.endswith(b"Hello"):
            got += step(lambda: client.read(1))  # pyright: ignore


def test_old_versions_and_renegotiation_are_refused(
    secured: Callable[..., Server], pki: Pki
) -> None:
    server = secured()
    address = f"127.0.0.1:{server.port}"
    for version in ("-tls1", "-tls1_1"):
        done = run(
            "openssl", "s_client", "-connect", address, version, "-cipher", "ALL:@SECLEVEL=0"
        )
        assert "Cipher is (NONE)" in done.stdout, done.stdout
    for cipher in ("AES128-SHA", "ECDHE-RSA-AES128-SHA256", "DHE-RSA-AES128-GCM-SHA256"):
        done = run("openssl", "s_client", "-connect", address, "-tls1_2", "-cipher", cipher)
        assert "Cipher is (NONE)" in done.stdout, cipher
    asked = f"(echo R; sleep 1) | openssl s_client -connect {address} -tls1_2"
    done = run("sh", "-c", asked)
    assert "no renegotiation" in done.stderr, done.stderr
    assert "Secure Renegotiation IS supported" in done.stdout
    assert is_well(server, pki)


def test_a_cut_upload_is_no_request(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    peer = connect(server, pki.client())
    peer.send(b"POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n" + b"x" * 50000)
    # The socket is closed, and TLS knows nothing of it.
    socket.socket(fileno=peer.socket.detach()).close()
    assert is_well(server, pki)
    assert "Traceback" not in server.err


def test_slow_and_huge_both_ways(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--body-bytes-max", "64M", "--write-queue-bytes-max", "64k")
    with connect(server, pki.client()) as peer:
        peer.send(b"POST /count HTTP/1.1\r\nhost: a\r\ncontent-length: 16777216\r\n\r\n")
        for _ in range(64):
            peer.send(b"x" * 262144)
            time.sleep(0.002)  # slowly
        assert peer.reply().body == b"16777216"
    before = rss_kib(server)
    slow = [connect_with_small_buffer(server, pki) for _ in range(8)]
    for peer in slow:
        peer.send(b"GET /stream/1000 HTTP/1.1\r\nhost: a\r\n\r\n")
    assert is_well(server, pki)
    time.sleep(0.5)  # what the server makes meanwhile is measured
    # 20 MB for each wait to be made, not to be read.
    assert rss_kib(server) - before < 8 * 1024
    total = sum(
        len(chunk) for peer in slow[:2] if peer.read_until(b"\r\n\r\n") for chunk in peer.chunks()
    )
    assert total == 2 * 20_000_000
    for peer in slow:
        peer.close()


def connect_with_small_buffer(server: Server, pki: Pki):
    from rig import Peer

    plain = server.connect(receive_buffer_bytes=8192)
    return Peer(pki.client().wrap_socket(plain.socket, server_hostname="localhost"))


def rss_kib(server: Server) -> int:
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1])  # pyright: ignore


@pytest.mark.epoll("asyncio reads each connection in a turn of its own")
def test_a_burst_of_handshakes_leaves_open_connections_their_time(
    secured: Callable[..., Server], pki: Pki
) -> None:
    server = secured()
    context = pki.client()
    with connect(server, context) as open_one:
        open_one.request("GET", "/")
        hello = client_hello(context)
        burst = [server.connect() for _ in range(400)]
        answers = select.poll()
        for peer in burst:
            answers.register(peer.socket, select.POLLIN)
        sender = threading.Thread(target=lambda: [peer.send(hello) for peer in burst])
        sender.start()
        # How many handshakes there had been when each request was answered: time would tell how busy the
        # machine is.
        progress = [0]
        while progress[-1] < len(burst):
            assert open_one.request("GET", "/").body == b"Hello"
            progress.append(len(answers.poll(0)))
        sender.join()
        for peer in burst:
            assert peer.read(1) == b"\x16", "each has its ServerHello"
    # 400 handshakes in a row take some 100 ms and more; a request waits for a few of them.
    steps = [after - before for before, after in pairwise(progress)]
    assert len(steps) > 6, steps
    assert max(steps) < len(burst) * 3 / 4, steps


def client_hello(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def test_above_the_limit_of_connections_an_alert_is_given(
    secured: Callable[..., Server], pki: Pki
) -> None:
    server = secured("--connections-max", "2")
    with connect(server, pki.client()) as one, connect(server, pki.client()) as other:
        one.request("GET", "/")
        other.request("GET", "/")
        with pytest.raises(ssl.SSLError, match="internal error"):
            connect(server, pki.client())
    wait_for(lambda: is_well(server, pki), "a free place")


@pytest.mark.epoll("a transport of asyncio is larger")
def test_idle_connections_are_small(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    context = pki.client()
    warm = [connect(server, context) for _ in range(50)]
    for peer in warm:
        peer.request("GET", "/")
    before = rss_kib(server)
    idle = [connect(server, context) for _ in range(400)]
    for peer in idle:
        peer.request("POST", "/echo", b"x" * 20000)
    each = (rss_kib(server) - before) * 1024 / len(idle)
    for peer in warm + idle:
        peer.close()
    assert each < 12 * 1024, f"{each:.0f} bytes each"
