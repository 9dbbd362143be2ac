"""Messages between a worker and a process of an executor: a kind, and data of any length.

A message is received into one piece of memory. ``multiprocessing``'s connection allocates as much as is left
of it for each piece that a socket holds, and a debug allocator fills all of that each time.
Tests: ``tests/unit/test_messages.py``, ``tests/server/test_executors.py``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import socket

    from typing_extensions import Buffer

CALL: Final = b"X"
"""To a process: a function, its arguments and keywords, by pickle."""
CANCEL: Final = b"C"
RESULT: Final = b"R"
"""From a process: a value, by pickle."""
ERROR: Final = b"E"
"""From a process: an exception and the text of its traceback, by pickle."""
REPORT: Final = b"P"
"""From a process: a report of :mod:`citius.web.execution.progress`."""
READY: Final = b"H"
"""From a process, once: it takes calls."""

_HEAD = struct.Struct("!cQ")
_SHORT_BYTES = 16 * 1024
"""Of a message that is sent with its head by one call, copied once."""


class Link:
    """One end of the socket of a process. One thread sends at a time, and one receives."""

    def __init__(self, made: socket.socket) -> None:
        self._socket = made

    def fileno(self) -> int:
        """Its descriptor."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def send(self, kind: bytes, data: Buffer = b"") -> None:
        """Send a message.

        Raises:
            OSError: The other side has ended.
        """
        view = memoryview(data).cast("B")
        head = _HEAD.pack(kind, len(view))
        if len(view) <= _SHORT_BYTES:
            return self._socket.sendall(head + view)
        self._socket.sendall(head)
        self._socket.sendall(view)

    def receive(self) -> tuple[bytes, bytearray]:
        """The next message: its kind and its data.

        Raises:
            EOFError: The other side has ended.
            OSError: In the middle of a message.
        """
        head = bytearray(_HEAD.size)
        self._fill(head)
        kind, length = _HEAD.unpack(head)
        data = bytearray(length)
        self._fill(data)
        return kind, data

    def _fill(self, data: bytearray) -> None:
        with memoryview(data) as view:
            filled = 0
            while filled < len(view):
                count = self._socket.recv_into(view[filled:])
                if not count:
                    raise EOFError("the other side has ended")
                filled += count
