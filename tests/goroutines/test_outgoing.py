"""Compiled handlers call other servers: TCP, TLS and HTTP/1.1, and peers that are slow, hostile or gone."""

from __future__ import annotations

import importlib.util
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue
from urllib.parse import quote

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from goroutines_rig import failure, post
from rig import Server, free_port

HERE = Path(__file__).parent
REFUSED, ENDED, TLS, PROTOCOL, TOO_LARGE, TIMEOUT, MISUSE = 2, 4, 5, 6, 7, 9, 11


@pytest.fixture(scope="module")
def outgoing(secure: tuple[int, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    spec = importlib.util.spec_from_file_location(
        "conftest_c", HERE.parent / "compiled/conftest.py"
    )
    assert spec is not None
    assert spec.loader is not None
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    folder = tmp_path_factory.mktemp("outgoing")
    library = conftest.build(HERE / "outgoing.c", folder / "outgoing.so")
    (folder / "main.py").write_text(
        "from citius import App, load_handlers\n"
        "app = App()\n"
        f"handlers = load_handlers({str(library)!r})\n"
        "@app.get('/alive')\n"
        "def alive(): return 'yes'\n"
        "for name in ('tcp', 'fetch'):\n"
        "    app.post('/' + name, compiled=handlers[name], serial=True)\n"
        "    app.post('/pool/' + name, compiled=handlers[name], serial=True, pool=True)\n"
    )
    server = Server(["main.py", "--port", "0"], {}, folder).wait_ready()
    yield server
    server.kill()


class Peer:
    """A server that answers each connection by `serve`, on a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.serve = serve
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection: socket.socket) -> None:
        try:
            self.serve(connection)
        except OSError:
            pass
        finally:
            connection.close()


@pytest.fixture
def peer() -> Iterator[Callable[[Callable[[socket.socket], None]], Peer]]:
    peers: list[Peer] = []

    def make(serve: Callable[[socket.socket], None]) -> Peer:
        made = Peer(serve)
        peers.append(made)
        return made

    yield make
    for made in peers:
        made.listener.close()


def head_of(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            raise OSError
        data += more
    return data


def answering(response: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        head_of(connection)
        connection.sendall(response)

    return serve


def echo(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(data.upper())
        if data.endswith(b"\n"):
            return


@pytest.mark.parametrize("where", ["", "/pool"])
def test_bytes_go_there_and_back(outgoing: Server, peer: Callable[..., Peer], where: str) -> None:
    assert post(outgoing, where + "/tcp", b"hello\n", port=peer(echo).port) == "HELLO\n"


def test_a_long_message_waits_for_a_slow_reader(
    outgoing: Server, peer: Callable[..., Peer]
) -> None:
    size = 8 << 20
    go_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        go_on.wait(20)
        left = size
        while left:
            left -= len(connection.recv(1 << 20))
        connection.sendall(b"all of it")

    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(post, outgoing, "/tcp", b"x" * size, port=peer(serve).port)
        # The reactor serves others while the message is half way.
        assert outgoing.get("/alive").body == b"yes"
        go_on.set()
        assert sent.result() == "all of it"


def test_a_name_is_looked_up(outgoing: Server, peer: Callable[..., Peer]) -> None:
    assert post(outgoing, "/tcp", b"hi\n", port=peer(echo).port, host="localhost") == "HI\n"


def test_nobody_listens(outgoing: Server) -> None:
    port = free_port()
    code, reason, why = failure(post(outgoing, "/tcp", port=port))
    assert (code, reason) == (502, REFUSED)
    assert str(port) in why


def test_a_deadline_comes_while_the_server_is_silent(
    outgoing: Server, peer: Callable[..., Peer]
) -> None:
    silent = peer(lambda _: threading.Event().wait(20) and None)
    code, reason, _ = failure(post(outgoing, "/tcp", port=silent.port, timeout_ms=50))
    assert (code, reason) == (504, TIMEOUT)
    assert outgoing.get("/alive").body == b"yes"


RESPONSES = {
    "length": b"HTTP/1.1 200 OK\r\ncontent-type: text/x\r\ncontent-length: 4\r\n\r\nbody",
    "chunks": b"HTTP/1.1 200 OK\r\ncontent-type: text/x\r\ntransfer-encoding: chunked\r\n\r\n"
    b"1\r\nb\r\n3;x=y\r\nody\r\n0\r\nx-trailer: t\r\n\r\n",
    "end": b"HTTP/1.0 200 OK\r\ncontent-type: text/x\r\n\r\nbody",
    "interim": b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    b"HTTP/1.1 200 OK\r\ncontent-type: text/x\r\ncontent-length: 4\r\n\r\nbody",
}


@pytest.mark.parametrize("kind", sorted(RESPONSES))
def test_bodies_are_framed_in_each_way(
    outgoing: Server, peer: Callable[..., Peer], kind: str
) -> None:
    url = f"http://127.0.0.1:{peer(answering(RESPONSES[kind])).port}/"
    assert post(outgoing, "/fetch", url=url) == "200 text/x body"


def test_a_response_may_come_byte_by_byte(outgoing: Server, peer: Callable[..., Peer]) -> None:
    def serve(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head_of(connection)
        for byte in RESPONSES["chunks"]:
            connection.sendall(bytes([byte]))

    url = f"http://127.0.0.1:{peer(serve).port}/"
    assert post(outgoing, "/fetch", url=url) == "200 text/x body"


WRONG = {
    b"SSH-2.0-x\r\n\r\n": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ncontent-length: 4, 5\r\n\r\nbody!": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n": PROTOCOL,
    b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na": PROTOCOL,
    b"HTTP/1.1 200 OK\ncontent-length: 1\n\na": PROTOCOL,
    b"HTTP/1.1 200 OK\r\nx: y\r\n content-length: 1\r\n\r\na": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\ncontent-length: 1\r\n\r\n": PROTOCOL,
    b"HTTP/1.1 204 No Content\r\ncontent-length: 1\r\n\r\na": PROTOCOL,
    b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbo": ENDED,
    b"HTTP/1.1 200 OK\r\ncontent-le": ENDED,
    b"": ENDED,
    b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n": TOO_LARGE,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffff\r\n": TOO_LARGE,
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n": TOO_LARGE,
    b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000: TOO_LARGE,
    b"HTTP/1.1 102 Processing\r\n\r\n" * 100: TOO_LARGE,
}


@pytest.mark.parametrize("response", WRONG)
def test_a_hostile_server_gets_a_named_error(
    outgoing: Server, peer: Callable[..., Peer], response: bytes
) -> None:
    url = f"http://127.0.0.1:{peer(answering(response)).port}/"
    code, reason, why = failure(post(outgoing, "/fetch", url=url))
    assert (code, reason) == (502, WRONG[response]), why


def test_a_body_has_a_bound(outgoing: Server, peer: Callable[..., Peer]) -> None:
    url = f"http://127.0.0.1:{peer(answering(RESPONSES['end'])).port}/"
    code, reason, _ = failure(post(outgoing, "/fetch", url=url, most=3))
    assert (code, reason) == (502, TOO_LARGE)
    assert post(outgoing, "/fetch", url=url, most=4) == "200 text/x body"


@pytest.mark.parametrize(
    "url",
    ["", "ftp://x/", "http://", "http://a b/", "http://u@x/", "http://x:0/", "http://x:99999/"],
)
def test_a_wrong_url_is_a_mistake(outgoing: Server, url: str) -> None:
    code, reason, why = failure(post(outgoing, "/fetch", url=url))
    assert (code, reason) == (2, MISUSE)
    assert "URL" in why


def test_a_method_cannot_smuggle_a_line(outgoing: Server, peer: Callable[..., Peer]) -> None:
    url = f"http://127.0.0.1:{peer(answering(RESPONSES['end'])).port}/"
    assert failure(post(outgoing, "/fetch", url=url, method="GET /x\r\n"))[:2] == (2, MISUSE)


def test_a_connection_serves_again_and_a_gone_one_is_replaced(
    outgoing: Server, peer: Callable[..., Peer]
) -> None:
    leaves = threading.Event()

    def serve(connection: socket.socket) -> None:
        while not leaves.is_set():
            head = head_of(connection)
            assert b"x-from: compiled\r\n" in head
            assert b"\r\nhost: 127.0.0.1:" in head
            if leaves.is_set():
                return
            connection.sendall(RESPONSES["length"])

    server = peer(serve)
    url = f"http://127.0.0.1:{server.port}/"
    for _ in range(5):
        assert post(outgoing, "/fetch", url=url) == "200 text/x body"
    assert server.connections == 1
    # It ends the idle connection when the next request comes; the request is sent again.
    leaves.set()

    def again(connection: socket.socket) -> None:
        head_of(connection)
        connection.sendall(RESPONSES["length"])

    server.serve = again
    assert post(outgoing, "/fetch", url=url) == "200 text/x body"
    assert server.connections == 2


EARLY = b"HTTP/1.1 413 Too Large\r\ncontent-type: text/x\r\ncontent-length: 4\r\n\r\nbody"
LARGE = b"x" * (16 << 20)


@pytest.mark.parametrize("where", ["", "/pool"])
def test_a_response_that_comes_early_ends_the_sending(
    outgoing: Server, peer: Callable[..., Peer], where: str
) -> None:
    goes_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        head_of(connection)
        connection.sendall(EARLY)
        # It reads no more, and keeps the connection open.
        goes_on.wait(30)

    server = peer(serve)
    url = f"http://127.0.0.1:{server.port}/"
    for _ in range(2):
        text = post(outgoing, where + "/fetch", LARGE, url=url, method="POST", timeout_ms=60_000)
        assert text == "413 text/x body"
    # No request follows on a connection with half a request.
    assert server.connections == 2
    goes_on.set()


def test_a_server_may_send_while_it_reads(outgoing: Server, peer: Callable[..., Peer]) -> None:
    def serve(connection: socket.socket) -> None:
        data = head_of(connection).partition(b"\r\n\r\n")[2]
        connection.sendall(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/x\r\ncontent-length: %d\r\n\r\n" % len(LARGE)
        )
        left = len(LARGE)
        while left:
            connection.sendall(data)
            left -= len(data)
            data = connection.recv(65536) if left else b""

    url = f"http://127.0.0.1:{peer(serve).port}/"
    text = post(
        outgoing, "/fetch", LARGE, url=url, method="POST", most=len(LARGE), timeout_ms=60_000
    )
    assert text == "200 text/x " + LARGE.decode()


def test_a_server_that_answers_and_is_gone_has_answered(
    outgoing: Server, peer: Callable[..., Peer]
) -> None:
    def serve(connection: socket.socket) -> None:
        head_of(connection)
        connection.sendall(EARLY)
        connection.shutdown(socket.SHUT_WR)
        # What is unread at the close resets the connection.
        connection.recv(1 << 16)

    url = f"http://127.0.0.1:{peer(serve).port}/"
    text = post(outgoing, "/fetch", LARGE, url=url, method="POST", timeout_ms=60_000)
    assert text == "413 text/x body"


def test_many_calls_wait_on_one_reactor(outgoing: Server, peer: Callable[..., Peer]) -> None:
    together = threading.Barrier(8)

    def serve(connection: socket.socket) -> None:
        head_of(connection)
        # No response is sent before all requests have come.
        together.wait(15)
        connection.sendall(RESPONSES["end"])

    url = f"http://127.0.0.1:{peer(serve).port}/"
    with ThreadPoolExecutor(8) as threads:
        texts = list(threads.map(lambda _: post(outgoing, "/fetch", url=url), range(8)))
    assert texts == ["200 text/x body"] * 8


def test_a_client_that_leaves_ends_the_call(outgoing: Server, peer: Callable[..., Peer]) -> None:
    begun, ended = threading.Event(), threading.Event()

    def serve(connection: socket.socket) -> None:
        head_of(connection)
        begun.set()
        if connection.recv(1) == b"":
            ended.set()

    url = quote(f"http://127.0.0.1:{peer(serve).port}/", safe="")
    client = socket.create_connection(("127.0.0.1", outgoing.port))
    client.sendall(
        f"POST /fetch?url={url}&timeout_ms=60000 HTTP/1.1\r\nhost: x\r\n"
        "content-length: 0\r\n\r\n".encode()
    )
    assert begun.wait(15)
    client.close()
    assert ended.wait(15)


@pytest.mark.parametrize("where", ["", "/pool"])
def test_https(outgoing: Server, secure: tuple[int, str], where: str) -> None:
    port, authorities = secure
    body = "x" * 200_000
    for _ in range(3):
        text = post(
            outgoing,
            where + "/fetch",
            body.encode(),
            url=f"https://localhost:{port}/",
            method="POST",
            authorities=authorities,
        )
        assert text == f"201 text/x {body}"


def test_a_certificate_of_another_name_is_refused(
    outgoing: Server, secure: tuple[int, str]
) -> None:
    port, authorities = secure
    url = f"https://127.0.0.1:{port}/"
    code, reason, why = failure(post(outgoing, "/fetch", url=url, authorities=authorities))
    assert (code, reason) == (502, TLS)
    assert "name" in why


def test_a_server_without_tls_is_a_tls_error(
    outgoing: Server, peer: Callable[..., Peer], secure: tuple[int, str]
) -> None:
    url = f"https://localhost:{peer(lambda c: c.sendall(b'hello')).port}/"
    code, reason, _ = failure(post(outgoing, "/fetch", url=url, authorities=secure[1]))
    assert (code, reason) == (502, TLS)


@contextmanager
def tls_peer(folder: Path, serve: Callable[[ssl.SSLSocket], None]) -> Iterator[tuple[int, str]]:
    """A server over TLS for the name localhost: its port, and the file of its authority."""
    authority = trustme.CA()
    authorities = str(folder / "ca.pem")
    authority.cert_pem.write_to_path(authorities)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    def secured(connection: socket.socket) -> None:
        with context.wrap_socket(
            connection, server_side=True, suppress_ragged_eofs=False
        ) as session:
            serve(session)

    server = Peer(secured)
    yield server.port, authorities
    server.listener.close()


def test_the_end_of_tls_is_the_end_of_the_content(outgoing: Server, tmp_path: Path) -> None:
    over = threading.Event()

    def serve(session: ssl.SSLSocket) -> None:
        session.recv(65536)
        session.sendall(RESPONSES["end"])
        # The end is announced, and TCP stays open.
        with suppress(OSError):
            session.unwrap()
        over.wait(30)

    with tls_peer(tmp_path, serve) as (port, authorities):
        url = f"https://localhost:{port}/"
        text = post(outgoing, "/fetch", url=url, authorities=authorities, timeout_ms=60_000)
        assert text == "200 text/x body"
        over.set()


def test_content_that_tls_does_not_end_is_cut(outgoing: Server, tmp_path: Path) -> None:
    def serve(session: ssl.SSLSocket) -> None:
        session.recv(65536)
        session.sendall(RESPONSES["end"])
        socket.socket(fileno=session.detach()).close()

    with tls_peer(tmp_path, serve) as (port, authorities):
        url = f"https://localhost:{port}/"
        code, reason, why = failure(post(outgoing, "/fetch", url=url, authorities=authorities))
        assert (code, reason) == (502, ENDED), why
        code, reason, why = failure(
            post(outgoing, "/tcp", b"hi", port=port, host="localhost", authorities=authorities)
        )
        assert (code, reason) == (502, ENDED), why


def test_a_close_tells_tls_that_all_was_sent(outgoing: Server, tmp_path: Path) -> None:
    ends: Queue[object] = Queue()

    def serve(session: ssl.SSLSocket) -> None:
        try:
            data = session.recv(65536)
            session.sendall(RESPONSES["end"].replace(b"1.0", b"1.1"))
            session.unwrap()
            ends.put(data.partition(b" ")[0])
        except OSError as error:
            ends.put(error)

    with tls_peer(tmp_path, serve) as (port, authorities):
        url = f"https://localhost:{port}/"
        post(outgoing, "/fetch", url=url, authorities=authorities)
        assert ends.get(timeout=30) == b"GET"


def test_a_common_name_is_no_name_of_a_server(
    outgoing: Server, peer: Callable[..., Peer], tmp_path: Path
) -> None:
    certificate, key = named_by_common_name("localhost", tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as session:
            session.recv(65536)
            session.sendall(RESPONSES["length"])

    url = f"https://localhost:{peer(serve).port}/"
    text = post(outgoing, "/fetch", url=url, authorities=certificate)
    code, reason, why = failure(text)
    assert (code, reason) == (502, TLS)
    assert "another name" in why


def named_by_common_name(common_name: str, folder: Path) -> tuple[str, str]:
    """A certificate that is signed by itself and has no alternative name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    paths = folder / "own.pem", folder / "own-key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(paths[0]), str(paths[1])
