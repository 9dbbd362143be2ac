"""The client that checks responses reads them strictly: what it accepts, it has read in one way."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from citius_lab.definitions.workloads import WrongResponse
from citius_lab.verify import session

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = b"\r\n\r\nWelcome!\n"


@contextlib.contextmanager
def asking(response: bytes) -> Iterator[session.Connection]:
    """A connection to a server whose only answer to everything that arrives is this one."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):  # the other side may have read enough
                while peer.recv(4096):
                    peer.sendall(response)

        thread = threading.Thread(target=serve)
        thread.start()
        with contextlib.closing(session.Connection(listener.getsockname()[1])) as peer:
            yield peer
        thread.join(10)


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"Content-Length: +9", "expected one number as content length"),
        (b"Content-Length: -9", "expected one number as content length"),
        (b"Content-Length: 9\r\nContent-Length: 8", "expected one number as content length"),
        (b"Content-Length: 9\r\nTransfer-Encoding: chunked", "a transfer coding and a content"),
        (b"Server: none", "without content length"),
        (b"Content-Length: 3", "expected a status line"),
    ],
)
def test_a_response_with_another_length_is_refused(head: bytes, said: str) -> None:
    with (
        asking(b"HTTP/1.1 200 OK\r\n" + head + BODY) as peer,
        pytest.raises(WrongResponse, match=said),
    ):
        _ = peer.ask("/"), peer.ask("/")


@pytest.mark.parametrize(
    ("start", "is_over"),
    [
        (b"HTTP/1.1 200 OK\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n", True),
        (b"HTTP/1.0 200 OK\r\n", True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", False),
    ],
)
def test_a_response_says_whether_the_connection_goes_on(start: bytes, is_over: bool) -> None:
    with asking(start + b"Content-Length: 9" + BODY) as peer:
        assert peer.ask("/").body == b"Welcome!\n"
        assert peer.is_over is is_over
