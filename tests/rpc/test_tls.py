"""Procedures over TLS: ``--rpc tls://…``, and both clients of ``citius.rpc``."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from citius.rpc import AsyncClient, Client, ConnectionLost
from pki import Pki, run
from rig import Server, wait_for
from rpc_rig import RpcPeer, connect_rpc, rpc_address, serve_procedures

SECURED = "tls://127.0.0.1:0"


@pytest.fixture(scope="module")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    return Pki(trustme.CA(), tmp_path_factory.mktemp("pki"))


@pytest.fixture(scope="module")
def certified(pki: Pki) -> list[str]:
    """The options that name a certificate for this machine."""
    certificate, key = pki.issue("localhost", "127.0.0.1")
    return ["--ssl-certfile", certificate, "--ssl-keyfile", key, "--no-access-log"]


@pytest.fixture(scope="module")
def secured(certified: list[str], tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("secured")
    server = serve_procedures(directory, *certified, address=SECURED)
    yield server
    server.kill()


def wrapped(server: Server, context: ssl.SSLContext) -> RpcPeer:
    plain = connect_rpc(server)
    return RpcPeer(context.wrap_socket(plain.socket, server_hostname="localhost"))


def test_somebody_elses_client(secured: Server, pki: Pki) -> None:
    """Python's own TLS and msgpack, and OpenSSL with a line of JSON; a protocol need not be named."""
    with wrapped(secured, pki.client()) as peer:
        assert peer.call("sum", 1, 2) == (None, 3)
        assert peer.call("ignore", b"x" * 300_000, 300_000) == (None, b"x" * 300_000)
    address = rpc_address(secured).removeprefix("tls://")
    call = '{"jsonrpc": "2.0", "id": 1, "method": "sum", "params": [1, 2]}'
    done = run(
        "openssl", "s_client", "-connect", address, "-CAfile", pki.bundle, "-verify_return_error",
        "-quiet", "-ign_eof", stdin=call + "\nnonsense",
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert answers[0]["result"] == 3, (answers, done.stderr)
    assert answers[1]["error"]["data"]["type"] == "ParseError"


def test_a_protocol_of_http_is_refused(secured: Server, pki: Pki) -> None:
    """What a browser sends must not reach procedures, whoever has led it here."""
    context = pki.client()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        wrapped(secured, context)
    context.set_alpn_protocols(["citius-rpc"])
    with wrapped(secured, context) as peer:
        assert peer.call("hello") == (None, "Hello World!")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_calls(secured: Server, pki: Pki, version: ssl.TLSVersion) -> None:
    with Client(rpc_address(secured), tls=pki.client(version=version), timeout_s=10) as client:
        assert client.call("sum", 1, 2) == 3
        assert list(client.map("sum", ((n, 1) for n in range(2000)))) == list(range(1, 2001))
        assert client.call("echo", b"x" * 3_000_000) == b"x" * 3_000_000


def test_both_sides_fill_their_buffers(secured: Server, pki: Pki) -> None:
    """Pieces that are half sent when something comes; none may be enciphered twice."""
    with Client(rpc_address(secured), tls=pki.client(), timeout_s=20) as client:
        waiting = [client.submit("ignore", b"x" * 200_000, 200_000) for _ in range(60)]
        assert all(len(one.result()) == 200_000 for one in waiting)


def test_threads_share_a_connection(secured: Server, pki: Pki) -> None:
    """One reads while others write: what OpenSSL does not allow on one connection."""
    wrong: list[object] = []
    with Client(rpc_address(secured), tls=pki.client(), timeout_s=20) as client:

        def ask(thread: int) -> None:
            for n in range(150):
                size = (n * 7919) % 30_000
                if (got := client.call("ignore", b"y" * size, thread + n)) != b"x" * (thread + n):
                    wrong.append(got)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert wrong == []


def test_greenlets_share_a_connection(secured: Server, pki: Pki) -> None:
    pytest.importorskip("gevent")
    program = f"""
    from gevent import monkey
    monkey.patch_all()
    import gevent, ssl
    from citius.rpc import Client
    rules = ssl.create_default_context(cafile={pki.bundle!r})
    with Client({rpc_address(secured)!r}, tls=rules, timeout_s=10) as client:
        def ask(n):
            return client.call("sum", n, 1)
        waiting = [gevent.spawn(ask, n) for n in range(200)]
        gevent.joinall(waiting, raise_error=True)
        assert [one.value for one in waiting] == list(range(1, 201))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=30)


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_async_calls(secured: Server, pki: Pki, kind: str) -> None:
    async def use() -> None:
        async with AsyncClient(rpc_address(secured), tls=pki.client(), timeout_s=10) as client:
            assert await client.call("sum", 1, 2) == 3
            calls = [client.call("sum", n, 1) for n in range(1000)]
            assert await asyncio.gather(*calls) == list(range(1, 1001))
            assert await client.call("echo", b"x" * 3_000_000) == b"x" * 3_000_000

    loop = asyncio if kind == "asyncio" else pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=loop.new_event_loop) as runner:
        runner.run(use())


def test_certificates_are_checked_at_once(secured: Server, pki: Pki) -> None:
    """Whom nobody vouches for, and who is somebody else: no call, and no waiting for a better one."""
    begun = time.monotonic()
    for tls, name, why in [
        (None, None, "certificate verify failed"),
        (pki.client(), "elsewhere.example", "certificate verify failed.*elsewhere.example"),
    ]:
        with Client(rpc_address(secured), tls=tls, server_name=name, timeout_s=20) as client:
            with pytest.raises(ConnectionLost, match=why) as caught:
                client.call("hello")
            assert not caught.value.was_sent

        async def use(
            tls: ssl.SSLContext | None = tls, name: str | None = name, why: str = why
        ) -> None:
            address = rpc_address(secured)
            async with AsyncClient(address, tls=tls, server_name=name, timeout_s=20) as client:
                with pytest.raises(ConnectionLost, match=why):
                    await client.call("hello")

        asyncio.run(use())
    assert time.monotonic() - begun < 10


def test_clear_text_is_told_so(secured: Server, pki: Pki) -> None:
    address = rpc_address(secured).removeprefix("tls://")
    with connect_rpc(secured) as peer:
        peer.send(b'{"jsonrpc": "2.0", "id": 1, "method": "hello"}\n')
        assert json.loads(peer.read_to_end())["error"]["message"] == "this port speaks TLS"
    with (
        Client(address, timeout_s=5) as client,
        pytest.raises(ConnectionLost, match=r"speaks TLS; put tls://"),
    ):
        client.call("hello")

    async def use() -> None:
        async with AsyncClient(address, timeout_s=5) as client:
            with pytest.raises(ConnectionLost, match=r"speaks TLS; put tls://"):
                await client.call("hello")

    asyncio.run(use())
    with wrapped(secured, pki.client()) as peer:
        assert peer.call("hello") == (None, "Hello World!")


def test_tls_to_a_port_of_clear_text(procedures: Server) -> None:
    with (
        Client("tls://" + rpc_address(procedures), timeout_s=0.5) as client,
        pytest.raises(ConnectionLost, match="cannot connect to tls://"),
    ):
        client.call("hello")
    with connect_rpc(procedures) as peer:
        assert peer.call("hello") == (None, "Hello World!")


def test_a_handshake_has_its_time_on_both_sides(
    serve_rpc: Callable[..., Server], certified: list[str], pki: Pki
) -> None:
    server = serve_rpc(*certified, "--tls-handshake-ms", "300", address=SECURED)
    begun = time.monotonic()
    with connect_rpc(server) as silent, connect_rpc(server) as half:
        half.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert silent.is_closed()
        assert half.is_closed()
        assert 0.25 < time.monotonic() - begun < 5
    with wrapped(server, pki.client()) as peer:
        assert peer.call("hello") == (None, "Hello World!")
    with socket.create_server(("127.0.0.1", 0)) as mute:
        begun = time.monotonic()
        with (
            Client(f"tls://127.0.0.1:{mute.getsockname()[1]}", timeout_s=0.4) as client,
            pytest.raises(ConnectionLost),
        ):
            client.call("hello")
        assert 0.3 < time.monotonic() - begun < 5


def test_callers_show_certificates(
    serve_rpc: Callable[..., Server], certified: list[str], pki: Pki
) -> None:
    required = ["--ssl-cert-reqs", "required", "--ssl-ca-certs", pki.bundle]
    server = serve_rpc(*certified, *required, address=SECURED)
    address, shown = rpc_address(server), pki.issue("billing.internal")
    with Client(address, tls=pki.client(*shown), timeout_s=10) as client:
        assert client.call("hello") == "Hello World!"
    with (
        Client(address, tls=pki.client(), timeout_s=5) as client,
        pytest.raises(ConnectionLost, match="(?i)certificate.required|closed|reset"),
    ):
        client.call("hello")


def test_workers_a_unix_socket_and_a_reload(
    serve_rpc: Callable[..., Server], certified: list[str], pki: Pki, tmp_path: Path
) -> None:
    server = serve_rpc(*certified, "--workers", "2", address=f"tls://unix:{tmp_path}/rpc.sock")
    with Client(rpc_address(server), tls=pki.client(), timeout_s=20) as client:
        before = client.call("pid")
        server.signal(signal.SIGHUP)
        wait_for(lambda: "all workers are new" in server.err, "new workers")
        wait_for(lambda: client.call("pid") != before, "their answers")


def test_a_certificate_is_missing(serve: Callable[..., Server]) -> None:
    server = serve("", "--rpc", SECURED, ready=False)
    assert server.wait() == 2
    assert "needs a certificate" in server.err


def test_clear_text_beside_tls_is_warned_about(
    serve_rpc: Callable[..., Server], certified: list[str]
) -> None:
    server = serve_rpc(*certified, address="0.0.0.0:0")
    assert "--rpc 0.0.0.0:0 speaks clear text; --rpc tls://0.0.0.0:0 would" in server.err
