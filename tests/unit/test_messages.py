"""Messages of executors' processes: whole, whatever pieces they come in, and in one piece of memory."""

from __future__ import annotations

import os
import socket
import threading
from typing import Any

import pytest
from citius.web.execution.messages import CANCEL, REPORT, RESULT, Link


class Pieces:
    """A socket that gives at most some bytes at a time, and keeps where they went."""

    def __init__(self, made: socket.socket, most: int) -> None:
        self._made, self._most = made, most
        self.memories: list[object] = []

    def recv_into(self, view: memoryview) -> int:
        self.memories.append(view.obj)
        return self._made.recv_into(view[: self._most])


@pytest.mark.parametrize("most", [1, 7, 65536])
def test_messages_come_as_they_were_sent(most: int) -> None:
    ours, its = socket.socketpair()
    with ours, its:
        sending, receiving = Link(ours), Link(Pieces(its, most))  # type: ignore[arg-type]
        for kind, data in [(CANCEL, b""), (REPORT, b"x"), (RESULT, os.urandom(20_000))]:
            sending.send(kind, data)
            assert receiving.receive() == (kind, data)


def test_a_long_message_is_received_into_one_piece_of_memory() -> None:
    """What is allocated grows with its length, not with that and the number of pieces."""
    ours, its = socket.socketpair()
    data = os.urandom(1 << 20)
    with ours, its:
        pieces: Any = Pieces(its, 4096)
        thread = threading.Thread(target=Link(ours).send, args=(RESULT, memoryview(data)))
        thread.start()
        kind, received = Link(pieces).receive()
        thread.join()
    assert (kind, received) == (RESULT, data)
    assert len(pieces.memories) > 256
    head, *rest = pieces.memories
    assert {id(memory) for memory in rest} - {id(head)} == {id(received)}


@pytest.mark.parametrize("cut", [0, 3, 12])
def test_the_end_of_the_other_side(cut: int) -> None:
    ours, its = socket.socketpair()
    with its:
        with ours:
            ours.sendall(b"R" + (10).to_bytes(8, "big") + b"xxx"[: max(0, cut - 9)])
        if cut < 9:
            its.recv(9 - cut)
        with pytest.raises(EOFError):
            Link(its).receive()
