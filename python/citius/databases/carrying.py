"""A connection's bytes while an event loop or a thread carries them; a reactor does so in Rust.

Tests: ``tests/pg/test_sessions.py``, ``tests/redis/test_client.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import socket

_READ_BYTES = 64 * 1024


class _Core(Protocol):
    """The protocol's side of a connection."""

    def receive(self, data: bytes, /) -> None: ...
    def take_output(self) -> bytes: ...
    def end(self, why: str, /) -> None: ...


def receive(source: socket.socket, core: _Core, closed: str) -> None:
    """Hand ``core`` what has come; the end of the connection as ``closed``, or as the error that ended it."""
    try:
        data = source.recv(_READ_BYTES)
    except (BlockingIOError, InterruptedError):
        return
    except OSError as error:
        return core.end(error.strerror or str(error))
    if data:
        core.receive(data)
    else:
        core.end(closed)


def send(target: socket.socket, core: _Core, unsent: bytes) -> bytes | None:
    """Send what was left and what there is now; what is left, ``None`` where the connection has ended."""
    data = unsent + core.take_output()
    if not data:
        return data
    try:
        return data[target.send(data) :]
    except (BlockingIOError, InterruptedError):
        return data
    except OSError as error:
        core.end(error.strerror or str(error))
        return None
