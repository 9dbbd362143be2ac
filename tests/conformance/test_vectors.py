"""Plays the transcripts of vectors/h1 over a real socket, to an application that echoes.

What needs another limit, virtual time or an application that misbehaves is played in memory only
(crates/citius-testkit); here it is about everything between the socket and the parser.
"""

from __future__ import annotations

import select
import socket
from pathlib import Path

import pytest
from rig import Peer, Server, application
from transcript import Block, fits_socket, parse, variants

VECTORS = Path(__file__).parents[2] / "vectors/h1"
TRANSCRIPTS = {
    path.relative_to(VECTORS).as_posix() + variant: parsed
    for path in sorted(VECTORS.rglob("*.t"))
    for variant, text in variants(path.read_text()).items()
    if fits_socket(*(parsed := parse(text)))
}

# What the echo application of the testkit does: any method, any target.
ECHO = application("echo_app")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    directory = tmp_path_factory.mktemp("echo")
    # What HTTP/2 begins with is a fault in HTTP/1.1, and these are its rules.
    options = ["--http", "1", "--no-access-log", "--no-server-header", "--no-date-header"]
    made = Server([str(ECHO), "--port", "0", *options], {}, directory).wait_ready()
    try:
        yield made
        assert made.get("/").body == b"GET / 0\n", "a transcript ended the server"
    finally:
        made.kill()


def play(peer: Peer, block: Block, *, by_byte: bool) -> None:
    for kind, what in block.steps:
        if kind == "!":
            peer.socket.shutdown(socket.SHUT_WR)
            continue
        pieces = [what[at : at + 1] for at in range(len(what))] if by_byte else [what]
        for piece in pieces:
            try:
                peer.send(piece)
            except (BrokenPipeError, ConnectionResetError):
                assert block.closes, "the server hung up too early"
                break
    check_output(peer, block)


def check_output(peer: Peer, block: Block) -> None:
    if block.output_is_open:
        head = block.output
        got = peer.read(len(head))
        assert got == head
        if not got.endswith(b"\r\n\r\n"):
            peer.read_until(b"\r\n\r\n")
        if block.closes:
            assert b"HTTP/1.1 " not in peer.read_to_end(), "more than one answer"
        return
    if block.closes:
        assert peer.read_to_end() == block.output
        return
    assert peer.read(len(block.output)) == block.output


@pytest.mark.parametrize("by_byte", [False, True], ids=["whole", "bytes"])
@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcript(server: Server, name: str, by_byte: bool) -> None:
    _, blocks = TRANSCRIPTS[name]
    if by_byte and sum(len(what) for block in blocks for _, what in block.steps) > 4096:
        by_byte = False  # the memory runner cuts these at every place
    with server.connect() as peer:
        peer.socket.settimeout(5)
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for block in blocks:
            play(peer, block, by_byte=by_byte)
        if not blocks[-1].closes and not blocks[-1].output_is_open:
            readable, _, _ = select.select([peer.socket], [], [], 0.005)
            assert not readable, f"more than the transcript says: {peer.socket.recv(1000)!r}"


def test_there_are_transcripts() -> None:
    assert len(TRANSCRIPTS) > 100
