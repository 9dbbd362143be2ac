"""WebTransport: whether messages that come back are checked, by the lab and by its load generator."""

# pyright: basic

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from synthetic import own_experiments

from citius_lab.definitions import certificate, wires
from citius_lab.definitions.workloads import WrongResponse, contract
from citius_lab.errors import LoadError
from citius_lab.measure import drive
from citius_lab.measure.drive import Shot
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CASE = contract().cases["wt-echo-1024"]
BOTH = [wires.WT_STREAMS, wires.WT_DATAGRAMS]
aioquic = pytest.importorskip("aioquic")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here, which makes the certificate")
    root = tmp_path_factory.mktemp("tls")
    certificate.make(root)
    return certificate.paths(root)


@contextmanager
def echoing(
    files: tuple[Path, Path], change: Callable[[bytes], bytes | None], **options: Any
) -> Iterator[int]:
    """A port where each message comes back changed, or not at all for ``None``."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(_serve(files, change, **options), loop).result(10)
    try:
        yield server._transport.get_extra_info("sockname")[1]
    finally:
        asyncio.run_coroutine_threadsafe(_close(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serve(
    files: tuple[Path, Path],
    change: Callable[[bytes], bytes | None],
    *,
    status: int = 200,
    has_sessions: bool = True,
) -> Any:
    from aioquic.asyncio import QuicConnectionProtocol
    from aioquic.asyncio.server import serve
    from aioquic.h3.connection import H3Connection
    from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Echo(QuicConnectionProtocol):
        http: Any = None

        def quic_event_received(self, event: Any) -> None:
            if self.http is None:
                self.http = H3Connection(self._quic, enable_webtransport=has_sessions)
                self.messages: dict[int, bytes] = {}
            for happened in self.http.handle_event(event):
                if isinstance(happened, HeadersReceived):
                    self.http.send_headers(happened.stream_id, [(b":status", b"%d" % status)])
                elif isinstance(happened, DatagramReceived):
                    if (changed := change(happened.data)) is not None:
                        self.http.send_datagram(happened.stream_id, changed)
                elif isinstance(happened, WebTransportStreamDataReceived):
                    message = self.messages.pop(happened.stream_id, b"") + happened.data
                    self.messages[happened.stream_id] = message
                    if happened.stream_ended and (changed := change(message)) is not None:
                        self._quic.send_stream_data(happened.stream_id, changed, end_stream=True)
            self.transmit()

    configuration = QuicConfiguration(
        is_client=False, alpn_protocols=["h3"], max_datagram_frame_size=65536
    )
    configuration.load_cert_chain(*files)
    return await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Echo)


async def _close(server: Any) -> None:
    server.close()
    await asyncio.sleep(0)  # the transport closes its socket in the next iteration


def same(message: bytes) -> bytes:
    return message


def other_end(message: bytes) -> bytes:
    return message[:-1] + b"!"


def shorter(message: bytes) -> bytes:
    return message[:-1]


@pytest.mark.parametrize("wire", BOTH)
def test_messages_that_come_back_are_checked(wire: str, files: tuple[Path, Path]) -> None:
    chance = random.Random(1)
    with echoing(files, same) as port:
        answer = session.verify_case(port, CASE, chance, wire=wire, timeout_s=5)
        assert (answer.status, answer.body) == (200, CASE.body)
    for change in (other_end, shorter):
        with (
            echoing(files, change) as port,
            pytest.raises(WrongResponse, match="the message that came back"),
        ):
            session.verify_case(port, CASE, chance, wire=wire, timeout_s=5)


@pytest.mark.parametrize("wire", BOTH)
def test_a_session_that_is_refused_is_told(wire: str, files: tuple[Path, Path]) -> None:
    chance = random.Random(1)
    with (
        echoing(files, same, status=404) as port,
        pytest.raises(WrongResponse, match="/echo: no session, but status 404"),
    ):
        session.verify_case(port, CASE, chance, wire=wire, timeout_s=5)
    with (
        echoing(files, same, has_sessions=False) as port,
        pytest.raises(WrongResponse, match="the settings allow no session"),
    ):
        session.verify_case(port, CASE, chance, wire=wire, timeout_s=5)


def load(port: int, wire: str, words: str) -> dict[str, Any]:
    """What the load generator writes of some messages of 32 bytes."""
    try:
        command = drive.load_command()
    except LoadError as error:
        pytest.skip(str(error))
    more = ["--datagrams"] if wire == wires.WT_DATAGRAMS else []
    done = subprocess.run(
        [*command, *more, *words.split(), "--json", "-", "-q", f"wt://127.0.0.1:{port}/echo"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("wire", BOTH)
def test_the_generator_counts_messages_that_are_right(wire: str, files: tuple[Path, Path]) -> None:
    words = "-c 2 -p 4 -n 200 --check-every 1 -b 0123456789abcdefghijklmnopqrstuv"
    with echoing(files, same) as port:
        record = load(port, wire, words)
        assert record["completed"] == record["bodies_compared"] == 200
        assert not any(record["errors"].values())
    with echoing(files, other_end) as port:
        record = load(port, wire, words)
        assert (record["completed"], record["errors"]["content"]) == (0, 200)
    with echoing(files, shorter) as port:
        record = load(port, wire, words)
        assert (record["completed"], record["errors"]["length"]) == (0, 200)


def test_a_datagram_that_is_lost_is_an_error_of_its_own(files: tuple[Path, Path]) -> None:
    def every_other(message: bytes) -> bytes | None:
        return message if message[7] % 2 else None

    with echoing(files, every_other) as port:
        record = load(port, wires.WT_DATAGRAMS, "-c 1 -p 8 -n 8")
        assert (record["completed"], record["errors"]["timeout"]) == (4, 4)
        assert record["connections_opened"] == 1


def test_a_datagram_that_answers_none_ends_the_connection(files: tuple[Path, Path]) -> None:
    def another(message: bytes) -> bytes:
        return bytes([message[0] ^ 1]) + message[1:]

    with echoing(files, another) as port:
        record = load(port, wires.WT_DATAGRAMS, "-c 1 -n 2 -d 2s")
        assert record["completed"] == 0
        assert record["connections_opened"] > 1


@pytest.mark.parametrize("options", [{"status": 404}, {"has_sessions": False}], ids=str)
def test_the_generator_takes_no_session_for_granted(
    options: dict[str, Any], files: tuple[Path, Path]
) -> None:
    with echoing(files, same, **options) as port:
        record = load(port, wires.WT_STREAMS, "-c 1 -d 200ms")
        assert record["completed"] == 0
        assert record["errors"]["protocol"] > 0


def test_the_generator_is_told_to_send_messages() -> None:
    series = {one.id: one for one in own_experiments()["webtransport"].series}
    shots = {
        name: Shot.of(one, CASE, window_s=1.0, warmup_s=0.0, rate=None)
        for name, one in series.items()
    }
    streams, datagrams = shots["streams-by-8"], shots["datagrams"]
    assert f"{streams.scheme}://host{streams.target}" == "wt://host/echo"
    assert "--connections 8 --pipeline 8" in " ".join(streams.words(()))
    assert "--datagrams" not in streams.words(())
    assert "--connections 32 --pipeline 1" in " ".join(datagrams.words(()))
    assert "--datagrams" in datagrams.words(())
    assert "--expect-status" not in datagrams.words(())
    assert streams.load.text() == (
        "closed loop, 8 connections, WebTransport, a stream for each message, 8 messages on each"
    )
