"""No input of a client takes time that grows faster than its length.

Each case sends inputs of n, 2n and 4n bytes to a server whose limits are raised and reads how much CPU time
the server's process has used for them. Four times the bytes may take nine times as long at most: a parser
in linear time takes four times as long, one in quadratic time sixteen times. What stays below
``HARMLESS_S`` at the largest size passes, for there the cost of the request itself is what is measured.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgpack
import pytest
from h2peer import CONTINUATION, END_HEADERS, END_STREAM, HEADERS, H2Peer, frame
from rig import Server, application
from rpc_rig import connect_rpc
from wspeer import BINARY, TEXT, RawSocket, deflated
from wspeer import CONTINUATION as WS_CONTINUATION
from wspeer import frame as ws_frame

HARMLESS_S = 0.02
RATIO_MAX = 9.0
ATTEMPTS = 3

APP = application("growth_app")

ASGI = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
"""

WSGI = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", "0")])
    return [b""]
"""

LIMITS = {
    "head-bytes-max": 1 << 22, "fields-max": 1 << 17, "target-bytes-max": 1 << 21,
    "chunk-extension-bytes-max": 1 << 22, "trailer-bytes-max": 1 << 22, "ranges-max": 1 << 17,
    "h2-continuations-max": 1 << 10, "body-bytes-max": 1 << 24, "ws-controls-max": 0,
    "h2-idle-frames-max": 1 << 20, "rpc-calls-open-max": 1 << 16,
}  # fmt: skip


def flags() -> list[str]:
    return [f"--{name}={value}" for name, value in LIMITS.items()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Native handlers, files, procedures, WebSockets: all that reads what a client sends."""
    directory = tmp_path_factory.mktemp("growth")
    (directory / "files").mkdir()
    (directory / "files/f.txt").write_text("text" * 1024)
    made = Server(
        [
            str(APP), "--port", "0", "--rpc", "127.0.0.1:0", "--static", "/files=files",
            "--compress=br", "--compress=gzip",
            "--trace", "--request-id", "x-request-id",
            "--forwarded-headers",
            "x-forwarded-for,x-forwarded-proto,x-forwarded-host,x-forwarded-port,x-forwarded-prefix,forwarded",
            *flags(),
        ],
        {"PYTHONDEVMODE": ""}, directory,
    )  # fmt: skip
    yield made.wait_ready()
    made.kill()


def cpu_s(server: Server) -> float:
    """CPU time that all threads of the server's process have used."""
    tasks = Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measured(server: Server, exchange: Callable[[], object]) -> float:
    """The CPU time of an exchange: the shortest of some attempts."""

    def once() -> float:
        before = cpu_s(server)
        exchange()
        return cpu_s(server) - before

    return min(once() for _ in range(ATTEMPTS))


def assert_linear(server: Server, exchange: Callable[[int], object], size: int) -> None:
    """``exchange(n)`` sends ``n`` bytes and waits for what becomes of them."""
    times = [measured(server, lambda n=n: exchange(n)) for n in (size, 2 * size, 4 * size)]
    limit_s = max(HARMLESS_S, RATIO_MAX * times[0])
    assert times[2] <= limit_s, [f"{time * 1e3:.1f} ms" for time in times]


def repeated(pattern: str, size: int) -> str:
    return pattern * (size // len(pattern))


def ask(server: Server, head: str, body: bytes = b"") -> int:
    """The status of one request, whose last field lines are ``head``'s."""
    with server.connect() as peer:
        with suppress(BrokenPipeError, ConnectionResetError):  # it was refused before its end
            peer.send(head.encode("latin-1") + b"Connection: close\r\n\r\n" + body)
        return int(peer.read_to_end()[9:12] or b"0")


FIELDS = [
    "Accept", "Accept-Encoding", "Content-Type", "Cookie", "Connection", "Expect", "Forwarded", "Host",
    "If-Match", "If-None-Match", "If-Modified-Since", "If-Range", "Range", "TE", "Traceparent", "Tracestate",
    "Transfer-Encoding", "Upgrade", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Prefix",
    "X-Forwarded-Proto", "X-Forwarded-Port", "X-Request-Id", "X-Other",
]  # fmt: skip
PATTERNS = [
    "x", ",", ";", '"', "\\", " ,", "; =", "a=", "a=b;", 'a="b";', 'a="', '"\\', ", ;", "for=1.1.1.1,", "W/",
    '"x",', "gzip;q=0.5,", "0-1,", "[", "1.", "%2", "a/b;q=0,", "k=v,",
]  # fmt: skip
PREFIXES = {
    "Content-Type": "multipart/form-data; boundary=b;", "Range": "bytes=", "Cookie": "a=b;",
    "Forwarded": "for=", "Traceparent": "00-",
}  # fmt: skip


@pytest.mark.parametrize("path", ["/", "/files/f.txt"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_field_line(server: Server, field: str, path: str) -> None:
    """All patterns in one go: the sum of their times grows as the worst of them."""

    def exchange(size: int) -> None:
        for pattern in PATTERNS:
            value = PREFIXES.get(field, "") + repeated(pattern, size) + "x"
            host = "" if field == "Host" else "Host: test\r\n"
            ask(server, f"GET {path} HTTP/1.1\r\n{host}{field}: {value}\r\n")

    assert_linear(server, exchange, 16 * 1024)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_content_type_of_a_form(server: Server, pattern: str) -> None:
    def exchange(size: int) -> None:
        value = "multipart/form-data; boundary=b;" + repeated(pattern, size)
        head = (
            f"POST /form HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\nContent-Type: {value}x\r\n"
        )
        assert ask(server, head, b"--b--\r") in (200, 400, 415)

    assert_linear(server, exchange, 32 * 1024)


@pytest.mark.parametrize(
    "line",
    [
        "a: b", "a:", "cookie: a=b", "x-forwarded-for: 1.1.1.1", "forwarded: for=1.1.1.1", "accept: a/b",
        "connection: a", "if-none-match: \"a\"", "content-type: a/b", "traceparent: 00", "upgrade: a",
    ],
)  # fmt: skip
def test_many_field_lines(server: Server, line: str) -> None:
    def exchange(size: int) -> None:
        lines = repeated(f"{line}\r\n", size)
        ask(server, f"GET / HTTP/1.1\r\nHost: test\r\n{lines}")

    assert_linear(server, exchange, 64 * 1024)


def test_field_lines_of_different_names(server: Server) -> None:
    def exchange(size: int) -> None:
        lines = "".join(f"x{n}: b\r\n" for n in range(size // 10))
        assert ask(server, f"GET / HTTP/1.1\r\nHost: test\r\n{lines}") == 200

    assert_linear(server, exchange, 64 * 1024)


@pytest.mark.parametrize("path", ["/?", "/typed?", "/", "/files/", "/files/f.txt?"])
def test_a_target(server: Server, path: str) -> None:
    patterns = [
        "a",
        "&",
        "=",
        "a=b&",
        "a&",
        "%41",
        "%",
        "%4",
        "+",
        "/",
        "../",
        "./",
        "%2F",
        "//",
        "%2e%2e/",
    ]

    def exchange(size: int) -> None:
        for pattern in patterns:
            ask(server, f"GET {path}{repeated(pattern, size)} HTTP/1.1\r\nHost: test\r\n")

    assert_linear(server, exchange, 64 * 1024)


DISPOSITION = 'Content-Disposition: form-data; name="a"'


def multipart(head: str, data: str, size: int) -> bytes:
    """A form of so many bytes, all of whose parts are the same."""
    part = f"--b\r\n{DISPOSITION}{head}\r\n\r\n{data}\r\n"
    return (repeated(part, max(size, len(part))) + "--b--\r\n").encode()


FORMS: dict[str, Callable[[int], bytes]] = {
    "parts": lambda size: multipart("", "x", size),
    "long disposition": lambda size: multipart(";" + "a=" * 3900, "x", size),
    "open quotes": lambda size: multipart(";" + 'a="' * 2600, "x", size),
    "tokens": lambda size: multipart(";" + "a" * 7900, "x", size),
    "backslashes": lambda size: multipart(';a="' + "\\" * 7900, "x", size),
    "head lines": lambda size: multipart("\r\na:" * 1900, "x", size),
    "almost delimiters": lambda size: multipart("", "\r\n--" * (size // 4), size),
    "line ends": lambda size: multipart("", "\r\n" * (size // 2), size),
    "no head end": lambda size: b"--b\r\n" + b"\r\n\r" * (size // 3),
    "no boundary": lambda size: b"\r\n-" * (size // 3),
    "preamble": lambda size: b"-" * size + b"\r\n--b--\r\n",
}


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_a_multipart_body(server: Server, make: Callable[[int], bytes]) -> None:
    assert_linear(server, lambda size: post_form(server, make(size)), 128 * 1024)


def post_form(server: Server, body: bytes, kind: str = "multipart/form-data; boundary=b") -> None:
    head = (
        f"POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\nContent-Type: {kind}\r\n"
    )
    assert ask(server, head, body) in (200, 400, 413)


@pytest.mark.parametrize("pattern", ["a", "&", "a=b&", "=", "%41", "%", "+", "a=&"])
def test_an_urlencoded_body(server: Server, pattern: str) -> None:
    kind = "application/x-www-form-urlencoded"
    assert_linear(
        server, lambda n: post_form(server, repeated(pattern, n).encode(), kind), 256 * 1024
    )


@pytest.mark.parametrize(
    "chunk", [b"1\r\nx\r\n", b"1;a=b\r\nx\r\n", b'1;a="\\""\r\nx\r\n', b"0000001\r\nx\r\n"]
)
def test_a_chunked_body(server: Server, chunk: bytes) -> None:
    def exchange(size: int) -> None:
        head = "POST /json HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
        body = b"1\r\n1\r\n" + chunk * (size // len(chunk)) + b"0\r\n" + b"a: b\r\n" * (size // 6)
        assert ask(server, head, body + b"\r\n") in (200, 400)

    assert_linear(server, exchange, 128 * 1024)


@pytest.mark.parametrize("pattern", ["[", "1,", '"a",', '{"a":', '"\\u0041",', '{"a":1},', " "])
def test_a_json_body(server: Server, pattern: str) -> None:
    def exchange(size: int) -> None:
        body = f"[{repeated(pattern, size)}1]".encode()
        head = f"POST /json HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body)}\r\n"
        assert ask(server, head, body) in (200, 400)

    assert_linear(server, exchange, 128 * 1024)


@pytest.mark.parametrize(("interface", "source"), [("asgi", ASGI), ("wsgi", WSGI)])
def test_field_lines_and_queries_of_other_interfaces(
    tmp_path: Path, interface: str, source: str
) -> None:
    (tmp_path / "main.py").write_text(source)
    command = ["main.py", "--port", "0", "--interface", interface, *flags()]
    server = Server(command, {"PYTHONDEVMODE": ""}, tmp_path)

    def exchange(size: int) -> None:
        lines = ["a: b\r\n", "cookie: a=b\r\n", "a-b: c\r\n", "a_b: c\r\n", "content-type: a\r\n"]
        for line in lines:
            ask(server, f"GET / HTTP/1.1\r\nHost: test\r\n{repeated(line, size)}")
        names = "".join(f"x{n}: b\r\n" for n in range(size // 10))
        assert ask(server, f"GET / HTTP/1.1\r\nHost: test\r\n{names}") == 200
        for pattern in ("a", "%41", "%", "/"):
            ask(
                server,
                f"GET /{repeated(pattern, size)}?{repeated(pattern, size)} HTTP/1.1\r\nHost: a\r\n",
            )

    try:
        server.wait_ready()
        assert_linear(server, exchange, 32 * 1024)
    finally:
        server.kill()


# Field blocks of HPACK (RFC 7541), to be repeated; the pseudo-header fields come first.
BLOCKS = {
    "indexed": b"\x90",
    "literals": b"\x00\x01a\x01b",
    "entries of the dynamic table": b"\x40\x01a\x01b",
    "long entries": b"\x40\x01a\x7f\x61" + b"b" * 224,
    "huffman": b"\x00\x81\x1f\x82\x1f\xff",
    "cookies": b"\x0f\x11\x03a=b",
    "table sizes": b"\x20\x3f\xe1\x1f",
    "long integers": b"\x7f" + b"\x80" * 4 + b"\x00",
}


@pytest.mark.parametrize("piece", BLOCKS.values(), ids=BLOCKS)
def test_a_field_block_of_http2(server: Server, piece: bytes) -> None:
    def exchange(size: int) -> None:
        block = b"\x82\x86\x84\x41\x04test" + piece * (size // len(piece))
        frames = [block[at : at + 16384] for at in range(0, len(block), 16384)]
        kinds = [HEADERS] + [CONTINUATION] * (len(frames) - 1)
        ends = [0] * (len(frames) - 1) + [END_HEADERS]
        with H2Peer(server.connect()) as peer:
            first = END_STREAM
            for kind, end, payload in zip(kinds, ends, frames, strict=True):
                peer.send(frame(kind, end | first, 1, payload))
                first = 0
            read_until_answered(peer)

    assert_linear(server, exchange, 64 * 1024)


def read_until_answered(peer: H2Peer) -> None:
    """Read until the stream is answered or the connection has ended."""
    try:
        peer.answer(1)
    except (EOFError, ConnectionResetError, AssertionError):
        return


@pytest.mark.parametrize("payload", [b"", b"x"], ids=["empty", "a byte"])
def test_fragments_of_a_websocket_message(server: Server, payload: bytes) -> None:
    def exchange(size: int) -> None:
        socket = RawSocket(server, "/ws").accepted()
        count = size // (6 + len(payload))
        frames = ws_frame(WS_CONTINUATION, payload, final=False) * count
        socket.send(ws_frame(BINARY, b"x", final=False) + frames + ws_frame(WS_CONTINUATION))
        assert socket.message() == "1"
        socket.peer.close()

    assert_linear(server, exchange, 128 * 1024)


@pytest.mark.parametrize("text", ["a", "ä", "\U0001f600"])
def test_a_websocket_text(server: Server, text: str) -> None:
    def exchange(size: int) -> None:
        socket = RawSocket(server, "/ws").accepted()
        payload = text.encode()
        payload *= size // len(payload)
        cuts = range(0, len(payload), 1001)  # through the middle of characters
        frames = [ws_frame(WS_CONTINUATION, payload[at : at + 1001], final=False) for at in cuts]
        socket.send(ws_frame(TEXT, final=False), *frames, ws_frame(WS_CONTINUATION))
        assert socket.message() == "1"
        socket.peer.close()

    assert_linear(server, exchange, 512 * 1024)


def test_compressed_websocket_messages(server: Server) -> None:
    def exchange(size: int) -> None:
        socket = RawSocket(server, "/ws", sec_websocket_extensions="permessage-deflate").accepted()
        packed = deflated(bytes(size))
        count = 16
        socket.send(*[ws_frame(BINARY, packed, rsv=4)] * count)
        assert list(socket.messages(count)) == ["1"] * count
        socket.peer.close()

    assert_linear(server, exchange, 512 * 1024)


@pytest.mark.parametrize(
    "field", ["sec_websocket_extensions", "sec_websocket_protocol", "connection"]
)
def test_a_websocket_handshake(server: Server, field: str) -> None:
    patterns = [
        "a,",
        "permessage-deflate,",
        "permessage-deflate;",
        "a;b=c,",
        'a;b="',
        ";",
        ",",
        '"\\',
    ]

    def exchange(size: int) -> None:
        for pattern in patterns:
            lines = {"Connection": "Upgrade", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
            lines[field.replace("_", "-")] = "Upgrade," + repeated(pattern, size) + "a"
            head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            with server.connect() as peer:
                peer.send(
                    "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                    f"{head}\r\n".encode()
                )
                peer.read_until(b"\r\n\r\n")

    assert_linear(server, exchange, 32 * 1024)


def call_elements(encoded: bytes) -> Callable[[int], bytes]:
    return lambda size: encoded * (size // len(encoded))


RPC: dict[str, Callable[[int], bytes]] = {
    "MessagePack calls": call_elements(msgpack.packb([0, 1, "ignore", []])),
    "MessagePack notifications": call_elements(msgpack.packb([2, "ignore", []])),
    "MessagePack cancellations": call_elements(msgpack.packb([2, "$/cancelRequest", [1]])),
    "a long MessagePack call": lambda size: msgpack.packb([0, 1, "ignore", [1] * size]),
    "JSON calls": call_elements(b'{"jsonrpc":"2.0","id":1,"method":"ignore"}\n'),
    "JSON spaces": lambda size: b" \n" * (size // 2),
    "a JSON batch": lambda size: b"[" + b'{"jsonrpc":"2.0","method":"ignore"},' * (size // 36) + b"1]",
    "a JSON batch of numbers": lambda size: b"[" + b"1," * (size // 2) + b"1]",
    "a long JSON call": lambda size: (
        b'{"jsonrpc":"2.0","id":1,"method":"ignore","params":[' + b"1," * (size // 2) + b"1]}"
    ),
    "a JSON text of escapes": lambda size: (
        b'{"jsonrpc":"2.0","id":1,"method":"' + b"\\u0041" * (size // 6) + b'"}'
    ),
}  # fmt: skip


@pytest.mark.parametrize("make", RPC.values(), ids=RPC)
@pytest.mark.parametrize("piece_bytes", [1 << 24, 4096], ids=["whole", "pieces"])
def test_remote_calls(server: Server, make: Callable[[int], bytes], piece_bytes: int) -> None:
    def exchange(size: int) -> None:
        data = make(size)
        with connect_rpc(server) as peer:
            peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(data), piece_bytes):
                peer.send(data[at : at + piece_bytes])
            peer.socket.shutdown(socket.SHUT_WR)
            assert len(peer.read_to_end()) >= 0

    assert_linear(server, exchange, 64 * 1024)
