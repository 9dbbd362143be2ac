"""HTTP/2, TLS and RPC: who is asked by them, with which words, and whether answers are still checked."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any

import h2.config
import h2.connection
import h2.events
import msgpack
import pytest
from synthetic import own_experiments
from websockets.sync import server as websocket_server

from citius_lab import paths
from citius_lab.definitions import certificate, contestants, experiments, wires
from citius_lab.definitions.contestants import DefinitionError
from citius_lab.definitions.protocols import Load, Series
from citius_lab.definitions.workloads import WrongResponse, contract
from citius_lab.measure import plan
from citius_lab.measure.drive import Shot
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from websockets.sync.server import ServerConnection

    from citius_lab.definitions.workloads import Case

HELLO = contract().cases["hello"]
ECHO = contract().cases["echo-16"]


class Http2Server:
    """Answers every request on one port with ``body``, over HTTP/2, by an independent library."""

    def __init__(self, body: bytes, context: ssl.SSLContext | None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._body, self._context = body, context
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            if self._context is not None:
                peer = self._context.wrap_socket(peer, server_side=True)
            with peer:
                self._talk(peer)

    def _talk(self, peer: socket.socket) -> None:
        config = h2.config.H2Configuration(client_side=False)
        state = h2.connection.H2Connection(config)
        state.initiate_connection()
        peer.sendall(state.data_to_send())
        while data := peer.recv(65_536):
            for event in state.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    fields = [(":status", "200"), ("content-type", "text/plain")]
                    state.send_headers(event.stream_id, fields)
                    state.send_data(event.stream_id, self._body, end_stream=True)
            peer.sendall(state.data_to_send())


@pytest.fixture(params=[wires.H2C, wires.H2])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serving(wire: str, tmp_path: Path) -> Iterator[dict[bytes, int]]:
    context = None
    if wires.is_tls(wire):
        if shutil.which("openssl") is None:
            pytest.skip("no openssl here, which makes the certificate")
        certificate.make(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate.paths(tmp_path))
        context.set_alpn_protocols(["h2"])
    servers = {body: Http2Server(body, context) for body in (b"Welcome!\n", b"Something else")}
    yield {body: server.port for body, server in servers.items()}
    for server in servers.values():
        server.close()


def test_answers_over_http2_are_checked(wire: str, serving: dict[bytes, int]) -> None:
    chance = random.Random(1)
    answer = session.verify_case(serving[b"Welcome!\n"], HELLO, chance, wire=wire)
    assert (answer.status, answer.content_type, answer.body) == (200, "text/plain", b"Welcome!\n")
    with pytest.raises(WrongResponse, match="Something else"):
        session.verify_case(serving[b"Something else"], HELLO, chance, wire=wire)


class CountingServer(Http2Server):
    """Answers with the number of bytes that came, and opens its windows when it has counted them."""

    def _talk(self, peer: socket.socket) -> None:
        config = h2.config.H2Configuration(client_side=False)
        state = h2.connection.H2Connection(config)
        state.initiate_connection()
        peer.sendall(state.data_to_send())
        n_bytes = 0
        while data := peer.recv(65_536):
            for event in state.receive_data(data):
                if isinstance(event, h2.events.DataReceived):
                    n_bytes += len(event.data)
                    state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, h2.events.StreamEnded):
                    fields = [(":status", "200"), ("content-type", "text/plain")]
                    state.send_headers(event.stream_id, fields)
                    state.send_data(event.stream_id, b"%d" % n_bytes, end_stream=True)
            peer.sendall(state.data_to_send())


def test_content_waits_for_the_windows_of_http2() -> None:
    server = CountingServer(b"", None)
    case = contract().cases["upload"]
    answer = session.verify_case(server.port, case, random.Random(1), wire=wires.H2C, timeout_s=5)
    assert (len(case.body), answer.body) == (100_000, b"100000")
    server.close()


@pytest.mark.parametrize(
    ("wire", "case", "response", "why"),
    [
        (wires.H2C, HELLO, b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "not HTTP/2"),
        (wires.WS, ECHO, b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404"),
    ],
    ids=["http2", "websockets"],
)
def test_a_server_without_a_protocol_is_told_so(
    wire: str, case: Case, response: bytes, why: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65_536)
                peer.sendall(response)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(WrongResponse, match=why):
            session.verify_case(
                listener.getsockname()[1], case, random.Random(1), wire=wire, timeout_s=5
            )
        thread.join(5)


@contextlib.contextmanager
def answering(*messages: object) -> Iterator[int]:
    """A port where each connection's only call is answered by one of these in turn."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for message in messages:
                peer, _ = listener.accept()
                with peer:
                    assert msgpack.unpackb(peer.recv(65_536)) == [0, 1, "hello", []]
                    peer.sendall(message if isinstance(message, bytes) else msgpack.packb(message))

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(5)


def test_results_of_procedures_are_checked() -> None:
    chance = random.Random(1)
    wrong = {
        "Something else": [1, 1, None, "Something else"],
        "expected a text": [1, 1, None, b"Welcome!\n"],
        "the call failed: .*no such": [1, 1, {"message": "no such procedure"}, None],
        "not the answer": [1, 2, None, "Welcome!\n"],
        "not MessagePack": b"\xc1",
        "closed the connection": b"\x94\x01",
    }
    with answering([1, 1, None, "Welcome!\n"], *wrong.values()) as port:
        answer = session.verify_case(port, HELLO, chance, wire=wires.RPC, timeout_s=5)
        # The generator compares the result as it is sent.
        assert (answer.body, answer.encoded) == (b"Welcome!\n", b"\xa9Welcome!\n")
        for why in wrong:
            with pytest.raises(WrongResponse, match=why):
                session.verify_case(port, HELLO, chance, wire=wires.RPC, timeout_s=5)


def test_procedures_are_asked_where_there_are_any() -> None:
    found = contestants.load([paths.lab_root() / "contestants"])
    (part,) = plan.make(
        "rpc", experiments.named("rpc", own_experiments()), list(found.values()),
        budget_s=None, random=random.Random(1), seed=1,
    ).parts  # fmt: skip
    callable_ = {
        block.contestant
        for block in part.blocks
        for cell in block.cells
        if part.series_of(cell).load.rpc
    }
    assert callable_ == {"citius", "citius-quic"}
    assert {block.manner for block in part.blocks} == {"plain", "rpc", "tls"}
    command = found["citius"].command(port=4711, workers=1, manner="rpc")
    assert command[command.index("--rpc") + 1] == "127.0.0.1:4711"
    series = next(one for one in part.series if one.id == "rpc")
    shot = Shot.of(series, contract().cases["parse-msgpack"], window_s=1.0, warmup_s=0.0, rate=None)
    assert f"{shot.scheme}://host{shot.target}" == "rpc://host/parse-msgpack"
    assert "--pipeline 64" in " ".join(shot.words(()))
    assert series.load.text() == "closed loop, 1 connections, MessagePack-RPC, 64 calls on each"
    series = next(one for one in part.series if one.id == "rpc-quic-loss")
    assert found["citius-quic"].manner_of(series.load.wire) == "tls"
    shot = Shot.of(series, HELLO, window_s=1.0, warmup_s=0.0, rate=None)
    assert f"{shot.scheme}://host{shot.target}" == "quic://host/hello"
    assert "--pipeline 8" in " ".join(shot.words(()))
    assert series.load.text() == (
        "closed loop, 8 connections, MessagePack-RPC over QUIC, 8 calls on each, 20 ms away, "
        "1.0% of the packets lost"
    )


@contextlib.contextmanager
def echoing(change: Callable[[str], str | bytes]) -> Iterator[int]:
    """A port where each message of a WebSocket comes back, changed."""

    def serve(peer: ServerConnection) -> None:
        for message in peer:
            assert isinstance(message, str)
            peer.send(change(message))

    with websocket_server.serve(serve, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join(5)


def test_messages_that_come_back_are_checked() -> None:
    case, chance = contract().cases["echo-1024"], random.Random(1)
    assert case.body == b"0123456789abcdef" * 64
    with echoing(str) as port:
        answer = session.verify_case(port, case, chance, wire=wires.WS, timeout_s=5)
        assert (answer.status, answer.body) == (101, case.body)
    for change, why in ((str.upper, "the message that came back"), (str.encode, "expected a text")):
        with echoing(change) as port, pytest.raises(WrongResponse, match=why):
            session.verify_case(port, case, chance, wire=wires.WS, timeout_s=5)


def test_the_generator_is_told_to_send_messages() -> None:
    series = {one.id: one for one in own_experiments()["websockets"].series}
    echo = Shot.of(series["echo-by-8"], ECHO, window_s=1.0, warmup_s=0.0, rate=None)
    assert f"{echo.scheme}://host{echo.target}" == "ws://host/echo"
    assert "--connections 32 --pipeline 8" in " ".join(echo.words(()))
    assert "--expect-status" not in echo.words(())
    assert echo.load.text() == "closed loop, 32 connections, WebSocket, 8 messages on each"
    case = contract().cases["broadcast-64"]
    broadcast = Shot.of(series["broadcast"], case, window_s=1.0, warmup_s=0.0, rate=None)
    assert "--pipeline 1 --broadcast --senders 4" in " ".join(broadcast.words(()))
    assert not case.is_stable


def test_each_contestant_is_asked_by_what_it_speaks() -> None:
    found = contestants.load([paths.lab_root() / "contestants"])
    (part,) = plan.make(
        "h2", experiments.named("h2", own_experiments()), list(found.values()),
        budget_s=None, random=random.Random(1), seed=1,
    ).parts  # fmt: skip
    asked: dict[str, set[str]] = {}
    for block in part.blocks:
        for cell in block.cells:
            wire = part.series_of(cell).load.wire
            asked.setdefault(block.contestant, set()).add(wire)
            assert found[block.contestant].manner_of(wire) == block.manner
    assert asked["nghttpd"] == {wires.H2C, wires.H2}
    assert asked["citius"] == {wires.HTTP1, wires.H2C, wires.HTTPS, wires.H2}


def test_the_generator_is_told_to_speak_http3() -> None:
    load = Load(connections=16, http="3", tls=True, streams=20)
    series = Series("h3", "h3", "a title", load, ("hello",))
    shot = Shot.of(series, HELLO, window_s=1.0, warmup_s=0.0, rate=None)
    words = " ".join(shot.words(()))
    assert "--http3 --streams 20" in words
    assert "--pipeline" not in words
    assert load.wire == wires.H3
    assert load.depth == 20
    assert load.text() == "closed loop, 16 connections, HTTP/3, 20 streams on each"
    found = contestants.load([paths.lab_root() / "contestants"])
    (part,) = plan.make(
        "http3", experiments.named("http3", own_experiments()), list(found.values()),
        budget_s=None, random=random.Random(1), seed=1,
    ).parts  # fmt: skip
    asked = {part.series_of(cell).load.wire for block in part.blocks for cell in block.cells}
    assert asked == {wires.H2, wires.H3}


def test_answers_over_http3_are_checked(tmp_path: Path) -> None:
    pytest.importorskip("aioquic")
    certificate.make(tmp_path)
    chance = random.Random(1)
    with Http3Server(b"Welcome!\n", certificate.paths(tmp_path)) as port:
        answer = session.verify_case(port, HELLO, chance, wire=wires.H3)
        assert (answer.status, answer.content_type) == (200, "text/plain")
        assert answer.body == b"Welcome!\n"
    with (
        Http3Server(b"Something else", certificate.paths(tmp_path)) as port,
        pytest.raises(WrongResponse, match="Something else"),
    ):
        session.verify_case(port, HELLO, chance, wire=wires.H3)


class Http3Server:
    """A server of one body, by aioquic, in a thread with an event loop of its own."""

    def __init__(self, body: bytes, files: tuple[Path, Path]) -> None:
        self._body = body
        self._files = files
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> int:
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(10)

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> int:
        from aioquic.asyncio import QuicConnectionProtocol
        from aioquic.asyncio.server import serve
        from aioquic.h3.connection import H3Connection
        from aioquic.h3.events import HeadersReceived
        from aioquic.quic.configuration import QuicConfiguration

        body = self._body

        class Answering(QuicConnectionProtocol):
            http: Any = None

            def quic_event_received(self, event: Any) -> None:
                self.http = self.http or H3Connection(self._quic)
                for happened in self.http.handle_event(event):
                    if isinstance(happened, HeadersReceived):
                        fields = [(b":status", b"200"), (b"content-type", b"text/plain")]
                        self.http.send_headers(happened.stream_id, fields)
                        self.http.send_data(happened.stream_id, body, end_stream=True)
                self.transmit()

        configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        configuration.load_cert_chain(*self._files)
        self._server = await serve(
            "127.0.0.1", 0, configuration=configuration, create_protocol=Answering
        )
        return self._server._transport.get_extra_info("sockname")[1]

    async def _close(self) -> None:
        self._server.close()
        await asyncio.sleep(0)  # the transport closes its socket in the next iteration


def test_the_generator_is_told_what_to_speak() -> None:
    load = Load(connections=32, http="2", tls=True, streams=50)
    series = Series("h2", "h2", "a title", load, ("hello",))
    shot = Shot.of(series, HELLO, window_s=1.0, warmup_s=0.0, rate=None)
    words = " ".join(shot.words(()))
    assert "--http2 --streams 50" in words
    assert "--pipeline" not in words
    assert load.text() == "closed loop, 32 connections, HTTP/2 over TLS, 50 streams on each"
    assert Series.from_record(series.as_record()) == series


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('wires = ["http/3"]', r"wires\[0\]: expected one of .*, got 'http/3'"),
        ('wires = ["http/1.1", "https"]', "wires over TLS and start_tls go together"),
        ('start_tls = ["server"]', "wires over TLS and start_tls go together"),
        ('wires = ["http/1.1", "rpc"]', "the wire rpc and start_rpc go together"),
        ('start_rpc = ["server"]', "the wire rpc and start_rpc go together"),
        ('start_tls = ["server"]\nwires = ["h3"]', "not encrypted and start go together"),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(
    tmp_path: Path, more: str, message: str
) -> None:
    folder = tmp_path / "probe"
    folder.mkdir()
    (folder / "contestant.toml").write_text(f"""
name = "probe"
language = "Python"
label = "a probe"
note = "for tests"
json = "none"
records = "none"
start = ["server"]
workloads = ["hello"]
{more}
""")
    with pytest.raises(DefinitionError, match=message):
        contestants.load([tmp_path])
