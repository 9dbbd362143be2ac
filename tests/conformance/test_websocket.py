"""RFC 6455 and RFC 7692 against a server over sockets, by the groups of Autobahn's published list of cases.

Autobahn's own suite needs Python 2 (`make autobahn` runs it where there is one). What is sent here are the
cases of its groups 1 to 7, 9, 10, 12 and 13, as whole frames and in pieces; what has to come back is strict:
no case may end in "allowed, but not ideal".
"""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Server
from wspeer import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TAIL,
    TEXT,
    RawSocket,
    deflated,
    frame,
)

ECHO = """
from citius import App
app = App()

@app.websocket("/")
async def echo(ws):
    async for message in ws:
        await ws.send(message)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("echo")
    (directory / "main.py").write_text(ECHO)
    served = Server(["main.py", "--port", "0"], {}, directory).wait_ready()
    yield served
    served.kill()


@pytest.fixture
def client(server: Server) -> Iterator[RawSocket]:
    made = RawSocket(server).accepted()
    yield made
    made.peer.close()


def goodbye(client: RawSocket) -> None:
    """The closing handshake (case 7.1.1), after which the server hangs up."""
    client.send(frame(CLOSE, (1000).to_bytes(2, "big")))
    client.closed(1000)


# --- 1: framing ---------------------------------------------------------------------------------

SIZES = (0, 125, 126, 127, 128, 65535, 65536)


@pytest.mark.parametrize("size", SIZES)
def test_1_framing(client: RawSocket, size: int) -> None:
    client.text("*" * size)
    assert client.message() == "*" * size
    client.send(frame(BINARY, b"\xfe" * size))
    assert client.message() == b"\xfe" * size
    goodbye(client)


def test_1_framing_in_pieces(client: RawSocket) -> None:
    client.send(frame(TEXT, b"*" * 65536), piece_bytes=997)
    assert client.message() == "*" * 65536
    client.send(frame(BINARY, b"\xfe" * 300), piece_bytes=1)
    assert client.message() == b"\xfe" * 300


# --- 2: pings and pongs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload",
    [b"", b"Hello, world!", bytes.fromhex("00fffefdfcfb00ff"), b"\xfe" * 125],
    ids=["empty", "text", "binary", "longest"],
)
@pytest.mark.parametrize("piece_bytes", [0, 1])
def test_2_pings_are_answered(client: RawSocket, payload: bytes, piece_bytes: int) -> None:
    client.send(frame(PING, payload), piece_bytes=piece_bytes)
    got = client.frame()
    assert (got.opcode, got.payload) == (PONG, payload)
    goodbye(client)


def test_2_pongs_are_not_and_pings_keep_their_order(client: RawSocket) -> None:
    client.send(frame(PONG), frame(PONG, b"unsolicited"), frame(PING, b"asked"))
    got = client.frame()
    assert (got.opcode, got.payload) == (PONG, b"asked")
    payloads = [f"payload-{n}".encode() for n in range(10)]
    client.send(*[frame(PING, payload) for payload in payloads], piece_bytes=5)
    assert [client.frame().payload for _ in payloads] == payloads


def test_2_long_pings_are_refused(client: RawSocket) -> None:
    client.send(frame(PING, b"\xfe" * 126))
    client.closed(1002)


# --- 3, 4: reserved bits and opcodes ------------------------------------------------------------


@pytest.mark.parametrize("rsv", range(1, 8))
@pytest.mark.parametrize("opcode", [TEXT, BINARY, PING, CLOSE])
def test_3_reserved_bits(client: RawSocket, rsv: int, opcode: int) -> None:
    client.text("first")
    client.send(frame(opcode, b"", rsv=rsv), frame(PING))
    assert client.message() == "first"
    client.closed(1002)


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
@pytest.mark.parametrize("piece_bytes", [0, 1])
def test_4_reserved_opcodes(client: RawSocket, opcode: int, piece_bytes: int) -> None:
    client.text("first")
    client.send(frame(opcode, b"reserved"), frame(PING), piece_bytes=piece_bytes)
    assert client.message() == "first"
    client.closed(1002)


def test_4_unmasked_frames(client: RawSocket) -> None:
    client.send(frame(TEXT, b"x", mask=False))
    client.closed(1002)


# --- 5: fragmentation ---------------------------------------------------------------------------


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_5_control_frames_in_fragments(client: RawSocket, opcode: int) -> None:
    client.send(frame(opcode, b"fragment1", final=False), frame(CONTINUATION, b"fragment2"))
    client.closed(1002)


@pytest.mark.parametrize("piece_bytes", [0, 1])
def test_5_fragments_with_a_ping_between(client: RawSocket, piece_bytes: int) -> None:
    client.send(
        frame(TEXT, b"fragment1", final=False),
        frame(PING, b"ping payload"),
        frame(CONTINUATION, b"fragment2", final=False),
        frame(PING, b"another"),
        frame(CONTINUATION, b"fragment3"),
        piece_bytes=piece_bytes,
    )
    assert [client.frame().payload for _ in range(2)] == [b"ping payload", b"another"]
    assert client.message() == "fragment1fragment2fragment3"
    goodbye(client)


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("after_message", [True, False])
def test_5_continuation_of_nothing(client: RawSocket, final: bool, after_message: bool) -> None:
    if after_message:
        client.text("whole")
        assert client.message() == "whole"
    client.send(frame(CONTINUATION, b"of nothing", final=final), frame(TEXT, b"not heard"))
    client.closed(1002)


def test_5_a_message_inside_another(client: RawSocket) -> None:
    client.send(frame(TEXT, b"fragment1", final=False), frame(TEXT, b"fragment2"))
    client.closed(1002)


# --- 6: UTF-8 -----------------------------------------------------------------------------------

TEXTS = [
    "Hello-µ@ßöäüàá-UTF-8!!", "κόσμε", "\0", "\x7f", "\x80", "\u07ff", "\u0800", "\uffff",
    "\U00010000", "\ud7ff", "\ue000", "\ufffd", "\U0010ffff", "\ufffe", "\U0001fffe", "\U0010fffe",
]  # fmt: skip
NO_TEXTS = [
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited", b"\xf4\x90\x80\x80",
    b"\x80", b"\xbf", b"\x80\xbf\x80", b"\xc0\x20\xc1\x20", b"\xe0\x20\xef\x20", b"\xf0\x20\xf7 ",
    b"\xf8 \xfb ", b"\xfc \xfd ", b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80",
    b"\xfc\x80\x80\x80\x80", b"\xdf", b"\xef\xbf", b"\xf7\xbf\xbf", b"\xfe", b"\xff",
    b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xc1\xbf", b"\xe0\x9f\xbf",
    b"\xf0\x8f\xbf\xbf", b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xed\xa0\x80",
    b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf", b"\xed\xb0\x80", b"\xed\xbf\xbf",
    b"\xed\xa0\x80\xed\xb0\x80", b"\xed\xaf\xbf\xed\xbf\xbf",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_6_texts(client: RawSocket, text: str) -> None:
    data = text.encode()
    client.text(text)
    # One byte to a frame: characters are cut in two.
    client.send(
        *[
            frame(CONTINUATION if at else TEXT, data[at : at + 1], final=at == len(data) - 1)
            for at in range(len(data))
        ]
    )
    assert list(client.messages(2)) == [text, text]
    goodbye(client)


def test_6_empty_fragments(client: RawSocket) -> None:
    client.send(frame(TEXT, final=False), frame(CONTINUATION, final=False), frame(CONTINUATION))
    assert client.message() == ""


@pytest.mark.parametrize("data", NO_TEXTS, ids=bytes.hex)
def test_6_no_texts(server: Server, data: bytes) -> None:
    whole, cut = RawSocket(server).accepted(), RawSocket(server).accepted()
    whole.send(frame(TEXT, data))
    whole.closed(1007)
    cut.send(frame(TEXT, data[:1], final=False), frame(CONTINUATION, data[1:]))
    cut.closed(1007)


@pytest.mark.parametrize("in_one_frame", [True, False])
def test_6_refused_at_the_byte_that_shows_it(client: RawSocket, in_one_frame: bool) -> None:
    """Cases 6.4: the rest of the message is not waited for."""
    good, bad = "κόσμε".encode(), b"\xf4\x90"
    if in_one_frame:
        client.send(frame(TEXT, good + bad + b"\x80\x80edited")[: 6 + len(good) + len(bad)])
    else:
        client.send(frame(TEXT, good, final=False), frame(CONTINUATION, bad, final=False))
    client.closed(1007)


# --- 7: closing ---------------------------------------------------------------------------------


def test_7_nothing_is_heard_after_a_close(client: RawSocket) -> None:
    client.send(
        frame(TEXT, b"before"),
        frame(CLOSE, (1000).to_bytes(2, "big")),
        frame(TEXT, b"after"),
        frame(PING),
        frame(CLOSE),
    )
    assert client.message() == "before"
    client.closed(1000)


def test_7_an_unfinished_message_is_dropped_by_a_close(client: RawSocket) -> None:
    client.send(frame(TEXT, b"half", final=False), frame(CLOSE, (1000).to_bytes(2, "big")))
    client.closed(1000)


def test_7_a_close_behind_much(client: RawSocket) -> None:
    client.send(frame(TEXT, b"BAsd7&jh23" * 26_000), frame(CLOSE))
    assert len(client.message()) == 260_000
    client.closed(1005)


@pytest.mark.parametrize("reason", [b"", b"Hello World!", b"*" * 123], ids=len)
def test_7_reasons(client: RawSocket, reason: bytes) -> None:
    client.send(frame(CLOSE, (1000).to_bytes(2, "big") + reason))
    client.closed(1000)


@pytest.mark.parametrize(
    "payload", [b"\x03", b"\x03\xe8\xce\xba\xe1\xed\xa0\x80", b"\x03\xe8" + b"*" * 124]
)
def test_7_malformed_closes(client: RawSocket, payload: bytes) -> None:
    client.send(frame(CLOSE, payload))
    client.closed(1002)


GOOD_CODES = (1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)
BAD_CODES = (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535)


@pytest.mark.parametrize("code", GOOD_CODES)
def test_7_codes(client: RawSocket, code: int) -> None:
    client.send(frame(CLOSE, code.to_bytes(2, "big")))
    client.closed(code)


@pytest.mark.parametrize("code", BAD_CODES)
def test_7_codes_that_nobody_may_send(client: RawSocket, code: int) -> None:
    client.send(frame(CLOSE, code.to_bytes(2, "big")))
    client.closed(1002)


# --- 9, 10: large and many ----------------------------------------------------------------------


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
@pytest.mark.parametrize("fragment_bytes", [64, 4096, 1 << 20, 1 << 22])
def test_9_large_messages(client: RawSocket, opcode: int, fragment_bytes: int) -> None:
    data = b"*" * (1 << 22)
    pieces = range(0, len(data), fragment_bytes)
    client.send(
        *[
            frame(
                CONTINUATION if at else opcode,
                data[at : at + fragment_bytes],
                final=at + fragment_bytes >= len(data),
            )
            for at in pieces
        ]
    )
    got = client.message()
    assert (got if isinstance(got, bytes) else got.encode()) == data


@pytest.mark.parametrize("piece_bytes", [64, 2048])
def test_9_large_messages_in_pieces(client: RawSocket, piece_bytes: int) -> None:
    client.send(frame(BINARY, b"\xfe" * (1 << 20)), piece_bytes=piece_bytes)
    assert client.message() == b"\xfe" * (1 << 20)


@pytest.mark.parametrize("size", [0, 16, 1024])
def test_9_many_messages(client: RawSocket, size: int) -> None:
    for _ in range(1000):
        client.send(frame(BINARY, b"x" * size))
    assert set(client.messages(1000)) == {b"x" * size}


def test_10_fragments_like_packets(client: RawSocket) -> None:
    data = b"*" * 65536
    cuts = [*range(0, len(data), 1300), len(data)]
    client.send(
        *[
            frame(CONTINUATION if start else TEXT, data[start:end], final=end == len(data))
            for start, end in itertools.pairwise(cuts)
        ]
    )
    assert client.message() == data.decode()


# --- 12, 13: compression ------------------------------------------------------------------------

OFFERS = {
    "permessage-deflate": 15,
    "permessage-deflate; client_no_context_takeover; client_max_window_bits": 15,
    "permessage-deflate; server_no_context_takeover": 15,
    "permessage-deflate; client_max_window_bits=9; server_max_window_bits=9": 9,
    "permessage-deflate; server_max_window_bits=15; server_no_context_takeover": 15,
    "permessage-deflate; server_max_window_bits=8, permessage-deflate": 15,
}


def documents() -> Iterator[bytes]:
    """Text that compresses well, badly and not at all."""
    dice = random.Random(12)
    words = [
        bytes(dice.choices(b"abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(400)
    ]
    yield b'{"id": 17, "name": "somebody", "tags": ["a", "b"]}' * 2700
    yield b" ".join(dice.choices(words, k=22_000))
    yield bytes(dice.choices(range(128), k=131_072))


@pytest.mark.parametrize("offer", OFFERS)
def test_12_and_13_compressed_messages(server: Server, offer: str) -> None:
    client = RawSocket(server, sec_websocket_extensions=offer).accepted()
    agreed = client.reply.headers["sec-websocket-extensions"]
    bits = OFFERS[offer]
    assert ("server_max_window_bits=9" in agreed) == (bits == 9)
    assert "server_no_context_takeover" in agreed
    assert "client_no_context_takeover" in agreed
    for document in documents():
        for size in (16, 64, 256, 1024, 4096, 8192, 16384, 32768, 65536, 131072):
            data = document[:size]
            client.send(frame(TEXT, deflated(data), rsv=4))
            got = client.frame()
            if got.is_compressed:
                # A window of fewer bits is all that was agreed on.
                got.payload = zlib.decompressobj(-bits).decompress(got.payload + TAIL)
            assert got.payload == data
    # Fragments of a compressed message, cut anywhere, with a ping between (case 12.5).
    packed = deflated(document)
    cut = len(packed) // 3
    client.send(
        frame(TEXT, packed[:cut], rsv=4, final=False),
        frame(PING, b"between"),
        frame(CONTINUATION, packed[cut:]),
    )
    assert client.frame().payload == b"between"
    assert client.message() == document.decode()
    goodbye(client)


@pytest.mark.parametrize(
    "offer",
    ["x-unknown", "permessage-deflate; server_max_window_bits=8", "permessage-deflate; x=1"],
)
def test_13_offers_that_are_declined(server: Server, offer: str) -> None:
    client = RawSocket(server, sec_websocket_extensions=offer).accepted()
    assert "sec-websocket-extensions" not in client.reply.headers
    client.send(frame(TEXT, b"x", rsv=4))
    client.closed(1002)
