"""Requests over HTTP/2, beside servers that keep to the protocol, and such that do not."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import hpack
import pytest
import trustme
from citius.http import errors
from h2peer import (
    END_HEADERS,
    END_STREAM,
    HEADERS,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    frame,
)
from http_peer import Peer, Talk, get, run, server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from citius.http.transport import Pool


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


class Barren:
    """A server that takes no request on a connection until ``admits`` is set, and refuses those before."""

    def __init__(self) -> None:
        self.admits = threading.Event()

    def __call__(self, talk: Talk) -> None:
        data = b""
        while len(data) < 24:
            data += talk.socket.recv(24 - len(data))
        talk.say(frame(SETTINGS, 0, 0, struct.pack("!HI", 3, 0)))
        waits = threading.Thread(target=self._admit, args=(talk,), daemon=True)
        waits.start()
        decoder = hpack.Decoder()
        while (head := talk.socket.recv(9, socket.MSG_WAITALL)) and len(head) == 9:
            size, kind, _, stream = int.from_bytes(head[:3], "big"), head[3], head[4], head[5:9]
            payload = talk.socket.recv(size, socket.MSG_WAITALL) if size else b""
            number = int.from_bytes(stream, "big")
            if kind == HEADERS:
                decoder.decode(payload)
                if self.admits.is_set():
                    block = hpack.Encoder().encode([(":status", "204")])
                    talk.say(frame(HEADERS, END_HEADERS | END_STREAM, number, block))
                else:
                    talk.say(frame(RST_STREAM, 0, number, struct.pack("!I", REFUSED_STREAM)))

    def _admit(self, talk: Talk) -> None:
        if self.admits.wait(20):
            talk.say(frame(SETTINGS, 0, 0, struct.pack("!HI", 3, 100)))


def test_a_server_that_takes_no_requests_gets_no_further_connection() -> None:
    """RFC 9113 §5.1.2: requests wait for what it says next, as long as for a connection."""
    act = Barren()
    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin()
            short = (5.0, 5.0, 5.0, 0.3, 10.0)
            found = await asyncio.gather(
                *(get(pool, origin, deadlines=short) for _ in range(50)), return_exceptions=True
            )
            assert {type(one) for one in found} == {errors.PoolTimeout}
            assert "SETTINGS_MAX_CONCURRENT_STREAMS is 0" in str(found[0])
            assert peer.accepted == 1
            calls = [asyncio.ensure_future(get(pool, origin)) for _ in range(20)]
            await asyncio.sleep(0)
            act.admits.set()
            assert {(await one).status for one in calls} == {204}
            assert peer.accepted == 1

        run(work, h2="prior")


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


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_that_waited_for_its_first_request_is_one_that_was_idle(method: str) -> None:
    """The call for which it was made was given up; the server closes it when the next one has come."""
    seen: list[int] = []

    def leave(speaker: Speaker, stream: int, fields: dict[bytes, bytes], body: bytes) -> None:
        seen.append(speaker.talk.number)
        if speaker.talk.number == 1:
            raise ConnectionAbortedError
        tell(speaker, stream, fields, body)

    with Peer(lambda talk: Speaker(leave)(talk)) as peer:

        async def work(pool: Pool) -> None:
            given_up = asyncio.ensure_future(get(pool, peer.origin()))
            while pool.stats()["connecting"] == 0:
                await asyncio.sleep(0)
            given_up.cancel()
            while pool.stats()["open"] == 0:
                await asyncio.sleep(0.001)
            if method == "POST":
                with pytest.raises(errors.ReadError):
                    await get(pool, peer.origin(), method=method)
            assert (await get(pool, peer.origin(), "/a", method=method)).body == b"/a 0"

        run(work, h2="prior")
    assert seen == [1, 2]


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
