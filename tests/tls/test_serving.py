"""Requests over TLS are requests: every way to ask and to answer, in both versions."""

from __future__ import annotations

import contextlib
import json
import signal
import ssl
from collections.abc import Callable

import pytest
import trustme
from h2peer import H2Peer, StreamResponse
from pki import Pki, connect, metric, run
from rig import Server, application, children, wait_for

EVENTS = application("handshake_events_app")
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.mark.parametrize("loop", ["uvloop", "asyncio", "none"])
def test_every_loop_serves_it(secured: Callable[..., Server], pki: Pki, loop: str) -> None:
    if loop == "none":
        server = secured("--loop", loop, app='@app.get("/")\ndef hello():\n    return "Hello"\n')
    else:
        server = secured("--loop", loop)
    assert f"serves on https://127.0.0.1:{server.port}" in server.err
    for version in VERSIONS:
        with connect(server, pki.client(version=version)) as peer:
            assert [peer.request("GET", "/").body for _ in range(3)] == [b"Hello"] * 3


def test_curl_in_both_versions(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    url = f"https://localhost:{server.port}/about"
    trusting = [
        "curl",
        "-sS",
        "--http1.1",
        "--cacert",
        pki.bundle,
        "--resolve",
        f"localhost:{server.port}:127.0.0.1",
    ]
    for version, name in (("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")):
        done = run(*trusting, f"--tlsv{version}", "--tls-max", version, url)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["scheme"], said["version"], said["server_name"]) == (
            "https",
            name,
            "localhost",
        )
    other = Pki(trustme.CA(), pki.directory / "..")
    done = run("curl", "-sS", "--cacert", other.bundle, url)
    assert done.returncode == 60, "a stranger's authority is not believed"


def test_protocols_are_agreed_on(secured: Callable[..., Server], pki: Pki) -> None:
    offers = {"auto": ["h2", "http/1.1"], "1": ["http/1.1"], "2": ["h2"]}
    for spoken, names in offers.items():
        server = secured("--http", spoken)
        for offered in (["h2", "http/1.1"], ["http/1.1"], ["h2"]):
            context = pki.client()
            context.set_alpn_protocols(offered)
            common = [name for name in names if name in offered]
            if not common:
                with pytest.raises(ssl.SSLError, match="no application protocol"):
                    connect(server, context)
                continue
            with connect(server, context) as peer:
                assert peer.socket.selected_alpn_protocol() == common[0]  # pyright: ignore


def test_a_client_that_has_chosen_http_1_1_cannot_begin_http_2(
    secured: Callable[..., Server], pki: Pki
) -> None:
    server = secured()
    context = pki.client()
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"
    context.set_alpn_protocols(["http/1.1"])
    with connect(server, context) as peer:
        peer.send(preface)
        assert peer.read_to_end().startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 505 "))
    # One that has chosen nothing may (RFC 9113 §3.3 asks for ALPN, and curl's prior knowledge does without).
    with connect(server, pki.client()) as peer:
        peer.send(preface)
        assert peer.read(9)[3] == 4


def test_http_2_over_it(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    url = f"https://localhost:{server.port}"
    asked = ["curl", "-sS", "--http2", "--cacert", pki.bundle, "-w", " %{http_version}"]
    asked += ["--resolve", f"localhost:{server.port}:127.0.0.1"]
    for version in ("1.2", "1.3"):
        done = run(*asked, "--tls-max", version, f"{url}/", f"{url}/about")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Hello 2")
        assert '"scheme":"https"' in done.stdout
    upload = run(*asked, "-d", "x" * 100_000, f"{url}/count")
    assert upload.stdout == "100000 2"
    assert len(run(*asked, f"{url}/large/3000").stdout) == 3000 * 1024 + 2
    assert run(*asked, "--http1.1", f"{url}/").stdout == "Hello 1.1"


def test_bodies_both_ways(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    with connect(server, pki.client()) as peer:
        body = bytes(range(256)) * 4000
        assert peer.request("POST", "/echo", body).body == body
        assert peer.request("POST", "/count", body).body == b"1024000"
        assert peer.request("GET", "/large/3000").body == b"x" * 3000 * 1024
        assert peer.request("GET", "/stream/40").body == b"y" * 800_000
        peer.send(
            b"POST /count HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n"
        )
        assert peer.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        peer.send(b"abc")
        assert peer.reply().body == b"3"


def test_pipelines_keep_their_order(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    with connect(server, pki.client()) as peer:
        peer.send(
            b"".join(
                b"GET %s HTTP/1.1\r\nhost: a\r\n\r\n" % p
                for p in (b"/slow/50", b"/", b"/large/70") * 4
            )
        )
        got = [len(peer.reply().body) for _ in range(12)]
    assert got == [4, 5, 70 * 1024] * 4


def test_files_are_whole(secured: Callable[..., Server], pki: Pki) -> None:
    site = pki.directory / "site"
    site.mkdir()
    (site / "large.bin").write_bytes(large := bytes(range(251)) * 8000)
    (site / "small.txt").write_bytes(b"small")
    server = secured("--static", f"/files={site}")
    with connect(server, pki.client()) as peer:
        assert peer.request("GET", "/files/large.bin").body == large
        assert peer.request("GET", "/files/small.txt").body == b"small"
        part = peer.request("GET", "/files/large.bin", range="bytes=1000-99999")
        assert (part.status, part.body) == (206, large[1000:100_000])


def test_unix_sockets(secured: Callable[..., Server], pki: Pki, tmp_path) -> None:
    server = secured("--uds", str(tmp_path / "s"))
    with connect(server, pki.client()) as peer:
        assert json.loads(peer.request("GET", "/about").body)["scheme"] == "https"


def test_proxies_are_believed_above_it(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    with connect(server, pki.client()) as peer:
        said = peer.request("GET", "/about", x_forwarded_proto="http", x_forwarded_for="192.0.2.1")
        assert json.loads(said.body)["scheme"] == "http"


def test_a_clean_end_is_said_and_a_cut_is_not(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    with connect(server, pki.client()) as peer:
        peer.send(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert peer.reply().body == b"Hello"
        # OpenSSL tells an end without close_notify from one with it.
        peer.socket.suppress_ragged_eofs = False
        assert peer.socket.recv(1) == b""
    context = pki.client()
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # which some versions of Python set
    with connect(server, context) as peer:
        peer.socket.suppress_ragged_eofs = False
        peer.send(b"GET /slow/60000 HTTP/1.1\r\nhost: a\r\n\r\n")
        with connect(server, pki.client()) as other:
            assert other.request("GET", "/").status == 200  # the slow one has been taken by now
        server.signal(signal.SIGQUIT)
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            peer.socket.recv(1)


def test_a_client_that_sends_no_more_is_answered(secured: Callable[..., Server], pki: Pki) -> None:
    """RFC 8446 §6.1: close_notify ends one direction."""
    server = secured()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = pki.client().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with server.connect() as peer:

        def step(act: Callable[[], object]) -> object:
            while True:
                try:
                    return act()
                except ssl.SSLWantReadError:
                    peer.send(outgoing.read())
                    incoming.write(peer.socket.recv(65536))

        step(client.do_handshake)
        client.write(b"GET /large/100 HTTP/1.1\r\nhost: a\r\n\r\n")
        with pytest.raises(ssl.SSLWantReadError):
            client.unwrap()
        peer.send(outgoing.read())
        assert len(peer.read_to_end()) > 100 * 1024


@pytest.mark.parametrize("way", ["cut", "close_notify", "reset"])
@pytest.mark.parametrize("protocol", ["http/1.1", "h2"])
def test_events_end_with_their_reader(
    secured: Callable[..., Server], pki: Pki, protocol: str, way: str
) -> None:
    """The handler is cancelled while it waits; those of other connections and streams go on."""
    server = secured(app=EVENTS)
    context = pki.client()
    context.set_alpn_protocols([protocol])

    def ends() -> list[str]:
        with connect(server, pki.client()) as other:
            return json.loads(other.request("GET", "/ends").body)

    with connect(server, pki.client()) as stays, connect(server, context) as leaves:
        stays.send(b"GET /ticks/stays HTTP/1.1\r\nhost: a\r\n\r\n")
        stays.read_until(b"data: 0\n\n")
        if protocol == "h2":
            streams = H2Peer(leaves)
            for stream in (1, 3):
                streams.request(stream, "GET", f"/ticks/{stream}")
                while b"data: 0" not in streams.answers.setdefault(stream, StreamResponse()).body:
                    streams.step()
            if way == "reset":
                streams.reset(1)
                wait_for(lambda: ends() == ["1"], "the end of one stream")
                seen = len(streams.answers[3].body)
                while len(streams.answers[3].body) == seen:
                    streams.step()
        else:
            leaves.send(b"GET /ticks/1 HTTP/1.1\r\nhost: a\r\n\r\n")
            leaves.read_until(b"data: 0\n\n")
        if way == "close_notify":
            leaves.socket.settimeout(5)
            with contextlib.suppress(OSError):
                leaves.socket.unwrap()  # pyright: ignore
        if way == "reset":
            leaves.reset()
        leaves.close()
        expected = ["1", "3"] if protocol == "h2" else ["1"]
        wait_for(lambda: sorted(ends()) == expected, "the ends of all that has left")
        stays.read_until(b"data: 9\n\n")
    assert "ERROR" not in server.err


def test_workers_are_replaced_without_a_failed_request(
    secured: Callable[..., Server], pki: Pki
) -> None:
    server = secured("--workers", "2")
    before = set(children(server))
    server.signal(signal.SIGHUP)
    served = 0
    context = pki.client()
    while "replaced" not in server.err and served < 500:
        with connect(server, context) as peer:
            assert peer.request("GET", "/").body == b"Hello"
        served += 1
    wait_for(lambda: not before & set(children(server)), "new workers")
    assert served > 0
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_interfaces_see_it(serve: Callable[..., Server], pki: Pki) -> None:
    certificate, key = pki.issue("localhost")
    shown = pki.issue("alice@example.org", file="alice")
    rules = ("--ssl-certfile", certificate, "--ssl-keyfile", key, "--ssl-ca-certs", pki.bundle)
    asgi = """
        async def app(scope, receive, send):
            if scope["type"] != "http":
                return
            tls = scope["extensions"]["tls"]
            body = json.dumps([scope["scheme"], tls]).encode()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})
        """
    server = serve(asgi, *rules, "--ssl-cert-reqs", "optional", "--no-access-log")
    for extra in ((), shown):
        with connect(server, pki.client(*extra)) as peer:
            for _ in range(2):
                scheme, tls = json.loads(peer.request("GET", "/").body)
                assert scheme == "https"
                assert ssl.PEM_cert_to_DER_cert(tls["server_cert"])
                assert (tls["tls_version"], tls["cipher_suite"]) == (0x0304, 0x1302)
                assert tls["client_cert_error"] is None
                assert (
                    bool(tls["client_cert_chain"]) == bool(tls["client_cert_name"]) == bool(extra)
                )
    wsgi = """
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "application/json")])
            names = ("wsgi.url_scheme", "HTTPS", "SSL_PROTOCOL", "SSL_CLIENT_VERIFY", "SSL_CLIENT_CERT",
                     "SSL_TLS_SNI")
            return [json.dumps([environ.get(name) for name in names]).encode()]
        """
    server = serve(wsgi, *rules, "--ssl-cert-reqs", "2", "--no-access-log")
    with connect(server, pki.client(*shown)) as peer:
        scheme, https, protocol, verify, cert, name = json.loads(peer.request("GET", "/").body)
    assert (scheme, https, protocol, verify, name) == (
        "https",
        "on",
        "TLSv1.3",
        "SUCCESS",
        "localhost",
    )
    assert cert.startswith("-----BEGIN CERTIFICATE-----")


def test_handshakes_are_counted(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--management", "127.0.0.1:0")
    for _ in range(3):
        with connect(server, pki.client()) as peer:
            peer.request("GET", "/")
    with server.connect() as peer:
        peer.send(b"\x16\x03\x01\x00\x05hello")
        peer.read_to_end()
    wait_for(lambda: metric(server, "citius_tls_handshakes_total") == 3, "three handshakes")
    wait_for(lambda: metric(server, "citius_tls_handshakes_failed_total") == 1, "a failed one")
