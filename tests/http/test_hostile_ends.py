"""Ends that TLS does not announce, and responses that come before the request has been sent."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import h2.config
import h2.connection
import h2.events
import pytest
import trustme
from citius.http import errors
from http_peer import OK, Peer, Talk, get, run, server

if TYPE_CHECKING:
    from pathlib import Path

    from citius.http.transport import Pool

LINE = b"HTTP/1.1 200 OK\r\n"
# What is sent before the end, and whether it is a whole response: if the end is announced, and if not.
CONTENT: dict[str, tuple[bytes, bool, bool]] = {
    "until the end": (LINE + b"\r\nok", True, False),
    "until the end, nothing": (LINE + b"\r\n", True, False),
    "length, whole": (LINE + b"content-length: 2\r\n\r\nok", True, True),
    "length, in part": (LINE + b"content-length: 3\r\n\r\nok", False, False),
    "chunks, whole": (
        LINE + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        True,
        True,
    ),
    "chunks, without the last": (
        LINE + b"transfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        False,
        False,
    ),
    "head": (LINE, False, False),
    "nothing": (b"", False, False),
}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def with_reset(talk: Talk) -> None:
    """Have the connection reset when it is closed."""
    talk.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("end", ["announced", "cut", "reset"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CONTENT)
def test_an_end_that_tls_does_not_announce_completes_nothing(
    name: str, end: str, is_streamed: bool, authority: trustme.CA, bundle: str
) -> None:
    """What an attacker cuts off is no response (RFC 9112 §9.8)."""
    said, *whole = CONTENT[name]
    is_whole = whole[0] if end == "announced" else whole[1]

    def act(talk: Talk) -> None:
        if talk.number > 1:
            while talk.request() is not None:
                talk.say(OK)
            return
        talk.request()
        talk.say(said)
        made: Any = talk.socket
        if end == "announced":
            with contextlib.suppress(OSError):
                made.unwrap()
        elif end == "reset":
            with_reset(talk)

    with Peer(act, tls=server(authority.issue_cert("localhost"))) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin(host="localhost")

            async def call() -> bytes:
                reply = await get(pool, origin, method="POST", stream=is_streamed)
                body = b"" if is_streamed else reply.body
                while is_streamed and (piece := await reply.read()):
                    body += piece
                return body

            if is_whole:
                assert await call() == (b"" if "nothing" in name else b"ok")
            else:
                with pytest.raises(errors.ReadError):
                    await call()
            assert (await get(pool, origin, "/after")).body == b"ok"
            assert pool.stats() == {"open": 1, "idle": 1, "connecting": 0, "waiting": 0}

        run(work, verify=bundle, connections_per_origin_max=1)


EARLY: dict[str, tuple[bytes, int]] = {
    "200": (OK, 200),
    "200, close": (LINE + b"connection: close\r\ncontent-length: 2\r\n\r\nok", 200),
    "413": (b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nok", 413),
    "413, close": (
        b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        413,
    ),
    "401, chunked": (
        b"HTTP/1.1 401 No\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        401,
    ),
}
SIZE = 16_000_000


@pytest.mark.parametrize("way", ["bytes", "length", "chunks"])
@pytest.mark.parametrize("behind", ["stays", "closes", "resets"])
@pytest.mark.parametrize("is_secured", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("name", EARLY)
def test_a_response_before_the_request_has_been_sent(
    name: str, is_secured: bool, behind: str, way: str, authority: trustme.CA, bundle: str
) -> None:
    """It is the response; its connection, on which the rest would be another request, is given up."""
    said, status = EARLY[name]
    got: list[int] = []
    client_has_read = threading.Event()

    def act(talk: Talk) -> None:
        if talk.number > 1:
            while talk.request() is not None:
                talk.say(OK)
            return
        head = b""
        while b"\r\n\r\n" not in head:
            head += talk.read()
        talk.say(said)
        if behind == "stays":
            client_has_read.wait(10)
            # What comes still is content, and no request.
            while piece := talk.read():
                got.append(len(piece))
        elif behind == "resets":
            client_has_read.wait(10)
            with_reset(talk)

    tls = server(authority.issue_cert("localhost")) if is_secured else None
    with Peer(act, tls=tls) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin(host="localhost")
            if way == "bytes":
                body: Any = bytes(SIZE)
            else:
                body = pool.upload(SIZE if way == "length" else None)
            call = get(pool, origin, method="POST", body=body)
            if way != "bytes":
                call.start()
                await body.send(bytes(1000))
            reply = await call
            client_has_read.set()
            assert (reply.status, reply.body) == (status, b"ok")
            if way != "bytes":
                with contextlib.suppress(errors.RequestError):
                    await body.send(bytes(1000))
            reply = await get(pool, origin, "/after", method="POST")
            assert (reply.body, reply.connection_reused) == (b"ok", False)
            assert pool.stats() == {"open": 1, "idle": 1, "connecting": 0, "waiting": 0}

        run(work, verify=bundle, connections_per_origin_max=1)
        assert peer.accepted == 2
    assert sum(got) < SIZE
    assert not peer.errors


@pytest.mark.parametrize("way", ["bytes", "length", "unknown length"])
@pytest.mark.parametrize("behind", ["NO_ERROR", "CANCEL", "nothing"])
@pytest.mark.parametrize("status", ["200", "413"])
def test_a_response_over_http_2_before_the_request_has_been_sent(
    status: str, behind: str, way: str
) -> None:
    """It is the response; the rest of the request is not sent, and the connection goes on (RFC 9113 §8.1)."""

    def act(talk: Talk) -> None:
        config = h2.config.H2Configuration(client_side=False, header_encoding=None)
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        talk.say(connection.data_to_send())
        while data := talk.read():
            for event in connection.receive_data(data):
                if not isinstance(event, h2.events.RequestReceived):
                    continue
                number = event.stream_id
                connection.send_headers(number, [(":status", status if number == 1 else "200")])
                connection.send_data(number, b"ok", end_stream=True)
                if number == 1 and behind != "nothing":
                    connection.reset_stream(number, 0 if behind == "NO_ERROR" else 8)
            talk.say(connection.data_to_send())

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin()
            if way == "bytes":
                body: Any = bytes(SIZE)
            else:
                body = pool.upload(SIZE if way == "length" else None)
            call = get(pool, origin, method="POST", body=body)
            if way != "bytes":
                call.start()
                await body.send(bytes(1000))
            reply = await call
            assert (reply.status, reply.body) == (int(status), b"ok")
            reply = await get(pool, origin, "/after", method="POST")
            assert (reply.body, reply.connection_reused) == (b"ok", True)
            assert pool.stats()["open"] == 1

        run(work, h2="prior", connections_per_origin_max=1)
        assert peer.accepted == 1
    assert not peer.errors
