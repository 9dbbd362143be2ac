"""Requests over HTTP/2, beside servers that keep to the protocol, and such that do not."""

from __future__ import annotations

import asyncio
import struct
import threading
from typing import TYPE_CHECKING, Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
import trustme
from citius.http import errors
from http_peer import Peer, Talk, get, run, server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from citius.http.transport import Pool

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class Speaker:
    """One connection of a server of HTTP/2: ``answer`` gets each request whole."""

    def __init__(
        self,
        answer: Callable[[Speaker, int, dict[bytes, bytes], bytes], object],
        settings: dict[Any, int] | None = None,
    ) -> None:
        self._answer, self._settings = answer, settings or {}
        self.together = self.most = 0

    def __call__(self, talk: Talk) -> None:
        config = h2.config.H2Configuration(client_side=False, header_encoding=None)
        self.talk, self.connection = talk, h2.connection.H2Connection(config)
        connection = self.connection
        connection.initiate_connection()
        if self._settings:
            connection.update_settings(self._settings)
        requests: dict[int, tuple[dict[bytes, bytes], bytearray]] = {}
        self.flush()
        while data := talk.socket.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    requests[event.stream_id] = (dict(event.headers), bytearray())
                    self.together += 1
                    self.most = max(self.most, self.together)
                elif isinstance(event, h2.events.DataReceived):
                    requests[event.stream_id][1].extend(event.data)
                    connection.acknowledge_received_data(
                        event.flow_controlled_length, event.stream_id
                    )
                elif isinstance(event, h2.events.StreamEnded):
                    fields, body = requests.pop(event.stream_id)
                    self.together -= 1
                    self._answer(self, event.stream_id, fields, bytes(body))
                elif isinstance(event, h2.events.StreamReset):
                    self.together -= 1
            self.flush()

    def flush(self) -> None:
        if data := self.connection.data_to_send():
            self.talk.say(data)

    def say(self, stream: int, body: bytes, *fields: tuple[str, str], status: str = "200") -> None:
        self.connection.send_headers(stream, [(":status", status), *fields], end_stream=not body)
        if body:
            self.connection.send_data(stream, body, end_stream=True)


def tell(speaker: Speaker, stream: int, fields: dict[bytes, bytes], body: bytes) -> None:
    path = fields[b":path"].decode()
    speaker.say(stream, f"{path} {len(body)}".encode(), ("x-seen", str(sorted(fields))))


def test_many_requests_share_a_connection() -> None:
    speaker = Speaker(tell)
    with Peer(speaker) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin()
            first = await get(pool, origin, "/a", fields=[("X-One", "1"), ("Host", "shop.example")])
            assert (first.status, first.http_version, first.body) == (200, "HTTP/2", b"/a 0")
            assert b"x-one" in first.field(b"x-seen")
            replies = await asyncio.gather(*(get(pool, origin, f"/{n}") for n in range(300)))
            assert [reply.body for reply in replies] == [f"/{n} 0".encode() for n in range(300)]
            assert pool.stats()["open"] == 1

        run(work, h2="prior", connections_per_origin_max=1)
        assert peer.accepted == 1
        assert not peer.errors, peer.errors


def test_a_server_says_how_many_streams_it_takes() -> None:
    speaker = Speaker(tell, {h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 3})
    with Peer(speaker) as peer:

        async def work(pool: Pool) -> None:
            await get(pool, peer.origin())
            await asyncio.gather(*(get(pool, peer.origin(), f"/{n}") for n in range(60)))

        run(work, h2="prior", connections_per_origin_max=1)
        assert not peer.errors, peer.errors
        assert peer.accepted == 1
    assert speaker.most <= 3


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 3_000_000])
def test_content_keeps_to_the_windows(size: int) -> None:
    def count(speaker: Speaker, stream: int, fields: dict[bytes, bytes], body: bytes) -> None:
        speaker.say(stream, str(len(body)).encode())

    with Peer(Speaker(count)) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(), method="POST", body=b"x" * size)
            assert reply.body == str(size).encode()
            upload = pool.upload()
            call = get(pool, peer.origin(), method="POST", body=upload)
            call.start()
            for at in range(0, size, 50_000):
                await upload.send(b"y" * min(50_000, size - at))
            await upload.end([("x-sum", "1")])
            assert (await call).body == str(size).encode()

        run(work, h2="prior")
        assert not peer.errors, peer.errors


def test_content_is_read_while_it_comes_and_no_more_than_a_window() -> None:
    sent = 0
    go = threading.Event()

    def act(talk: Talk) -> None:
        nonlocal sent
        begun: list[int] = []
        speaker = Speaker(lambda it, stream, fields, body: begun.append(stream))
        config = h2.config.H2Configuration(client_side=False, header_encoding=None)
        speaker.talk, speaker.connection = talk, h2.connection.H2Connection(config)
        connection = speaker.connection
        connection.initiate_connection()
        speaker.flush()
        stream, left = 0, 5_000_000
        while data := talk.socket.recv(65536):
            for event in connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    stream = event.stream_id
                    connection.send_headers(stream, [(":status", "200")])
            while stream and left:
                size = min(connection.local_flow_control_window(stream), 16_384, left)
                if size <= 0:
                    break
                connection.send_data(stream, b"x" * size, end_stream=size == left)
                sent, left = sent + size, left - size
            speaker.flush()
            if sent >= 256 * 1024:
                go.set()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(), stream=True)
            await asyncio.to_thread(go.wait, 10)
            assert sent <= 256 * 1024
            size = 0
            while data := await reply.read():
                size += len(data)
            assert size == 5_000_000

        run(work, h2="prior")
        assert not peer.errors, peer.errors


def test_what_is_given_up_is_reset_and_the_connection_goes_on() -> None:
    resets: list[int] = []

    def act(talk: Talk) -> None:
        speaker = Speaker(tell)
        config = h2.config.H2Configuration(client_side=False, header_encoding=None)
        speaker.talk, speaker.connection = talk, h2.connection.H2Connection(config)
        speaker.connection.initiate_connection()
        speaker.flush()
        while data := talk.socket.recv(65536):
            for event in speaker.connection.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    fields = dict(event.headers)
                    if fields[b":path"] != b"/silent":
                        tell(speaker, event.stream_id, fields, b"")
                elif isinstance(event, h2.events.StreamReset):
                    resets.append(int(event.error_code))
            speaker.flush()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            assert (await get(pool, peer.origin(), "/a")).body == b"/a 0"
            for _ in range(20):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(get(pool, peer.origin(), "/silent"), 0.01)
            deadlines = (None, 0.05, None, None, None)
            with pytest.raises(errors.ReadTimeout):
                await get(pool, peer.origin(), "/silent", deadlines=deadlines)
            assert (await get(pool, peer.origin(), "/b")).body == b"/b 0"

        run(work, h2="prior")
        assert peer.accepted == 1
    assert set(resets) == {8}
    assert len(resets) >= 20


def test_a_server_that_leaves_gets_no_more_and_loses_nothing() -> None:
    def leave(speaker: Speaker, stream: int, fields: dict[bytes, bytes], body: bytes) -> None:
        tell(speaker, stream, fields, body)
        if stream == 1:
            speaker.flush()
            # What comes behind this stream was not looked at.
            speaker.talk.say(struct.pack(">HBBBIII", 0, 8, 7, 0, 0, 1, 0))

    with Peer(lambda talk: Speaker(leave)(talk)) as peer:

        async def work(pool: Pool) -> None:
            for number in range(5):
                reply = await get(pool, peer.origin(), f"/{number}", method="POST", body=b"x")
                assert reply.body == f"/{number} 1".encode()

        run(work, h2="prior")
        assert peer.accepted >= 2


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


SETTINGS = frame(4, 0, 0)
HOSTILE: dict[str, tuple[bytes, type[Exception]]] = {
    "no settings": (frame(6, 0, 0, bytes(8)), errors.RemoteProtocolError),
    "HTTP/1.1": (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", errors.RemoteProtocolError),
    "push": (SETTINGS + frame(5, 4, 1, b"\0\0\0\2\x88"), errors.RemoteProtocolError),
    "frame too large": (SETTINGS + b"\1\0\0\0\0\0\0\0\1", errors.RemoteProtocolError),
    "unreadable fields": (
        SETTINGS + frame(1, 5, 1, b"\xff\xff\xff\xff\xff"),
        errors.RemoteProtocolError,
    ),
    "no status": (SETTINGS + frame(1, 5, 1, b"\0\1x\1y"), errors.RemoteProtocolError),
    "content before head": (SETTINGS + frame(0, 1, 1, b"ok"), errors.RemoteProtocolError),
    "content of no stream": (SETTINGS + frame(0, 1, 9, b"ok"), errors.RemoteProtocolError),
    "length": (
        SETTINGS + frame(1, 4, 1, b"\x88\x0f\x0d\x015") + frame(0, 1, 1, b"ok"),
        errors.RemoteProtocolError,
    ),
    "ping flood": (SETTINGS + frame(6, 0, 0, bytes(8)) * 3000, errors.RemoteProtocolError),
    "settings flood": (SETTINGS * 3000, errors.RemoteProtocolError),
    "endless section": (
        SETTINGS + frame(1, 0, 1, b"\x88") + frame(9, 0, 1) * 1000,
        errors.TooLarge,
    ),
    "reset": (SETTINGS + frame(3, 0, 1, b"\0\0\0\2"), errors.RemoteProtocolError),
    "cut": (SETTINGS + frame(1, 4, 1, b"\x88") + frame(0, 0, 1, b"half"), errors.ReadError),
    # RFC 9113 §6.9.1: a window does not exceed 2^31-1.
    "window overflow of the connection": (
        SETTINGS + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
        errors.RemoteProtocolError,
    ),
    "window overflow of a stream": (
        SETTINGS + frame(8, 0, 1, b"\x7f\xff\xff\xff") * 2,
        errors.RemoteProtocolError,
    ),
    "window of nothing": (SETTINGS + frame(8, 0, 0, bytes(4)), errors.RemoteProtocolError),
    "window of another size": (SETTINGS + frame(8, 0, 0, bytes(3)), errors.RemoteProtocolError),
    "initial window too large": (
        frame(4, 0, 0, b"\0\4\xff\xff\xff\xff"),
        errors.RemoteProtocolError,
    ),
    "frame size that there is not": (
        frame(4, 0, 0, b"\0\5\0\0\0\1"),
        errors.RemoteProtocolError,
    ),
    "push that is allowed": (frame(4, 0, 0, b"\0\2\0\0\0\2"), errors.RemoteProtocolError),
    "settings of a stream": (frame(4, 0, 1), errors.RemoteProtocolError),
    "settings in part": (frame(4, 0, 0, bytes(5)), errors.RemoteProtocolError),
    "acknowledgement with settings": (
        SETTINGS + frame(4, 1, 0, bytes(6)),
        errors.RemoteProtocolError,
    ),
    "ping of a stream": (SETTINGS + frame(6, 0, 1, bytes(8)), errors.RemoteProtocolError),
    "ping of another size": (SETTINGS + frame(6, 0, 0, bytes(7)), errors.RemoteProtocolError),
    "goodbye of a stream": (SETTINGS + frame(7, 0, 1, bytes(8)), errors.RemoteProtocolError),
    "reset of no stream": (SETTINGS + frame(3, 0, 9, bytes(4)), errors.RemoteProtocolError),
    "reset of another size": (SETTINGS + frame(3, 0, 1, bytes(3)), errors.RemoteProtocolError),
    "priority of another size": (SETTINGS + frame(2, 0, 1, bytes(4)), errors.RemoteProtocolError),
    "head of the connection": (SETTINGS + frame(1, 5, 0, b"\x88"), errors.RemoteProtocolError),
    "head of a stream of its own": (SETTINGS + frame(1, 5, 2, b"\x88"), errors.RemoteProtocolError),
    "content of the connection": (SETTINGS + frame(0, 1, 0, b"x"), errors.RemoteProtocolError),
    "continuation of nothing": (SETTINGS + frame(9, 4, 1, b"\x88"), errors.RemoteProtocolError),
    "continuation of another stream": (
        SETTINGS + frame(1, 0, 1, b"\x88") + frame(9, 4, 3),
        errors.RemoteProtocolError,
    ),
    "frame within a section": (
        SETTINGS + frame(1, 0, 1, b"\x88") + frame(6, 0, 0, bytes(8)),
        errors.RemoteProtocolError,
    ),
    "padding longer than its frame": (
        SETTINGS + frame(1, 0x0D, 1, b"\x09\x88"),
        errors.RemoteProtocolError,
    ),
    # RFC 7541 §6.1, §5.1, §4.2.
    "index of no field": (SETTINGS + frame(1, 5, 1, b"\x88\xfe"), errors.RemoteProtocolError),
    "index 0": (SETTINGS + frame(1, 5, 1, b"\x88\x80"), errors.RemoteProtocolError),
    "text that is cut": (SETTINGS + frame(1, 5, 1, b"\x88\0\5x"), errors.RemoteProtocolError),
    "Huffman padding": (SETTINGS + frame(1, 5, 1, b"\x88\0\x81\0\1y"), errors.RemoteProtocolError),
    "table larger than agreed": (
        SETTINGS + frame(1, 5, 1, b"\x3f\xe1\xff\3\x88"),
        errors.RemoteProtocolError,
    ),
    # RFC 9113 §8.1 to §8.3.
    "trailers with a pseudo-field": (
        SETTINGS + frame(1, 4, 1, b"\x88") + frame(1, 5, 1, b"\x88"),
        errors.RemoteProtocolError,
    ),
    "trailers that do not end": (
        SETTINGS + frame(1, 4, 1, b"\x88") + frame(1, 4, 1, b"\0\1x\1y"),
        errors.RemoteProtocolError,
    ),
    "two statuses": (SETTINGS + frame(1, 5, 1, b"\x88\x89"), errors.RemoteProtocolError),
    "status behind a field": (
        SETTINGS + frame(1, 5, 1, b"\0\1x\1y\x88"),
        errors.RemoteProtocolError,
    ),
    "status of two digits": (SETTINGS + frame(1, 5, 1, b"\x08\x0220"), errors.RemoteProtocolError),
    "pseudo-field of a request": (
        SETTINGS + frame(1, 5, 1, b"\x88\x82"),
        errors.RemoteProtocolError,
    ),
    "field of the connection": (
        SETTINGS + frame(1, 5, 1, b"\x88\0\x0aconnection\5close"),
        errors.RemoteProtocolError,
    ),
    "upper case": (SETTINGS + frame(1, 5, 1, b"\x88\0\1X\1y"), errors.RemoteProtocolError),
    "line break in a value": (
        SETTINGS + frame(1, 5, 1, b"\x88\0\1x\3a\r\n"),
        errors.RemoteProtocolError,
    ),
    "switching protocols": (SETTINGS + frame(1, 4, 1, b"\x08\x03101"), errors.RemoteProtocolError),
    "interim response that ends": (
        SETTINGS + frame(1, 5, 1, b"\x08\x03103"),
        errors.RemoteProtocolError,
    ),
    "two lengths": (
        SETTINGS + frame(1, 4, 1, b"\x88\x0f\x0d\x012\x0f\x0d\x013") + frame(0, 1, 1, b"ok"),
        errors.RemoteProtocolError,
    ),
    "length that is no number": (
        SETTINGS + frame(1, 4, 1, b"\x88\x0f\x0d\x02+2") + frame(0, 1, 1, b"ok"),
        errors.RemoteProtocolError,
    ),
    "more than its length": (
        SETTINGS + frame(1, 4, 1, b"\x88\x0f\x0d\x011") + frame(0, 1, 1, b"ok"),
        errors.RemoteProtocolError,
    ),
    # What a server may send without end.
    "interim responses": (SETTINGS + frame(1, 4, 1, b"\x08\x03103") * 200, errors.TooLarge),
    "too many fields": (
        SETTINGS + frame(1, 5, 1, b"\x88" + b"\0\1x\1y" * 500),
        errors.TooLarge,
    ),
    # A field of 4000 bytes in the table, named 16 000 times: 64 MB of fields.
    "fields out of the table": (
        SETTINGS
        + frame(1, 0, 1, b"\x88\x40\1x\x7f\xa1\x1e" + b"y" * 4000)
        + frame(9, 4, 1, b"\xbe" * 16_000),
        errors.TooLarge,
    ),
    "empty pieces": (
        SETTINGS + frame(1, 4, 1, b"\x88") + frame(0, 0, 1) * 3000,
        errors.RemoteProtocolError,
    ),
    "unknown frames": (SETTINGS + frame(77, 0, 0) * 3000, errors.RemoteProtocolError),
    "priorities": (SETTINGS + frame(2, 0, 1, bytes(5)) * 3000, errors.RemoteProtocolError),
    "windows": (SETTINGS + frame(8, 0, 0, b"\0\0\0\1") * 3000, errors.RemoteProtocolError),
    "nothing": (SETTINGS, errors.ReadError),
    "body too long": (
        SETTINGS + frame(1, 4, 1, b"\x88") + frame(0, 0, 1, b"x" * 16_000) * 4,
        errors.TooLarge,
    ),
}


# What looks like some of them, and is allowed.
ALLOWED: dict[str, bytes] = {
    "head": SETTINGS + frame(1, 5, 1, b"\x88"),
    "settings that are known and unknown": frame(4, 0, 0, b"\0\4\x7f\xff\xff\xff\0\x99\0\0\0\1")
    + frame(1, 5, 1, b"\x88"),
    "interim responses": SETTINGS + frame(1, 4, 1, b"\x08\x03103") * 3 + frame(1, 5, 1, b"\x88"),
    "padding and priority": SETTINGS + frame(1, 0x2D, 1, b"\x02" + bytes(5) + b"\x88\0\0"),
    "section in pieces": SETTINGS + frame(1, 1, 1) + frame(9, 0, 1, b"\x88") + frame(9, 4, 1),
    "trailers": SETTINGS + frame(1, 4, 1, b"\x88") + frame(1, 5, 1, b"\0\1x\1y"),
    "lengths that are the same": SETTINGS + frame(1, 5, 1, b"\x88\x0f\x0d\x010"),
    "unknown frames": SETTINGS + frame(77, 0, 0, b"x") * 9 + frame(1, 5, 1, b"\x88"),
}


def says(said: bytes) -> Callable[[Talk], None]:
    def act(talk: Talk) -> None:
        got = b""
        # Preface, settings, window and the request.
        while b"\x01" not in got[len(PREFACE) + 50 :]:
            got += talk.socket.recv(65536)
        talk.say(said)
        talk.socket.settimeout(0.3)
        while talk.socket.recv(65536):
            pass

    return act


@pytest.mark.parametrize("fault", HOSTILE)
def test_a_hostile_server(fault: str) -> None:
    said, expected = HOSTILE[fault]
    with Peer(says(said)) as peer:

        async def work(pool: Pool) -> None:
            with pytest.raises(expected):
                await get(pool, peer.origin(), method="POST")

        run(work, h2="prior", body_bytes_max=50_000)


@pytest.mark.parametrize("what", ALLOWED)
def test_a_server_that_is_not(what: str) -> None:
    with Peer(says(ALLOWED[what])) as peer:

        async def work(pool: Pool) -> None:
            assert (await get(pool, peer.origin(), method="POST")).status == 200

        run(work, h2="prior", body_bytes_max=50_000)


def test_idle_connections_are_closed_in_time() -> None:
    with Peer(Speaker(tell)) as peer:

        async def work(pool: Pool) -> None:
            await get(pool, peer.origin())
            async with asyncio.timeout(5):
                while pool.stats()["open"]:
                    await asyncio.sleep(0.01)

        run(work, h2="prior", keepalive_s=0.1)


@pytest.mark.parametrize(
    ("offered", "asked", "version"),
    [
        (["h2", "http/1.1"], "auto", "HTTP/2"),
        (["http/1.1"], "auto", "HTTP/1.1"),
        (None, "auto", "HTTP/1.1"),
        (["h2", "http/1.1"], "never", "HTTP/1.1"),
    ],
)
def test_tls_agrees_on_the_protocol(
    offered: list[str] | None, asked: str, version: str, tmp_path: Path
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = server(authority.issue_cert("localhost"))
    if offered:
        context.set_alpn_protocols(offered)

    def act(talk: Talk) -> None:
        made: Any = talk.socket
        if made.selected_alpn_protocol() == "h2":
            return Speaker(tell)(talk)
        while talk.request():
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none")
        return None

    with Peer(act, tls=context) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin(host="localhost")
            replies = await asyncio.gather(*(get(pool, origin) for _ in range(10)))
            assert {reply.http_version for reply in replies} == {version}
            if version == "HTTP/2":
                assert pool.stats()["open"] == 1

        run(work, verify=str(tmp_path / "ca.pem"), h2=asked)
