"""TLS for the client for threads: an object with the methods of a socket.

``ssl.SSLSocket`` cannot be used: one thread must not read it while another one writes, and it does not work
with gevent's patched sockets. So TLS runs on memory buffers (``ssl.MemoryBIO``) under a lock that is never
held while a thread waits; the socket is read and written outside of it.

No close_notify is sent: messages have their lengths, so truncation can only remove whole messages, as without
TLS.
"""

from __future__ import annotations

import ssl
from _thread import allocate_lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_PIECE_BYTES_MAX = 64 * 1024
"""Bytes that are encrypted at once: about what a socket accepts."""


class Secured:
    """A connected socket after its TLS handshake; reads and writes like a non-blocking socket.

    Args:
        made: The socket, connected; closed by the caller if this raises.
        context: The client's TLS settings.
        server_name: The name that the certificate must have.
        deadline: When the handshake has to be over, on the monotonic clock.

    Raises:
        OSError: The handshake failed, as ``ssl.SSLError`` where TLS is why.
    """

    def __init__(
        self,
        made: socket.socket,
        context: ssl.SSLContext,
        server_name: str,
        deadline: float | None,
    ) -> None:
        self._socket = made
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self._lock = allocate_lock()
        # Encrypted bytes that the socket has not accepted, and how many bytes of the caller they are.
        self._unsent = memoryview(b"")
        self._covers = 0
        self._shake_hands(deadline)
        made.setblocking(False)

    def _shake_hands(self, deadline: float | None) -> None:
        while True:
            try:
                self._tls.do_handshake()
                is_done = True
            except ssl.SSLWantReadError:
                is_done = False
            except ssl.SSLError:
                self._say_why()
                raise
            if deadline is not None:
                self._socket.settimeout(max(0.001, deadline - monotonic()))
            if said := self._outgoing.read():
                self._socket.sendall(said)
            if is_done:
                return
            data = self._socket.recv(_PIECE_BYTES_MAX)
            if not data:
                raise ConnectionResetError("the server closed the connection in the TLS handshake")
            self._incoming.write(data)

    def _say_why(self) -> None:
        """Send the TLS alert to the server, if the connection is still open."""
        try:
            self._socket.sendall(self._outgoing.read())
        except OSError:
            return

    def recv(self, size: int) -> bytes:
        """Receive and decrypt; empty at the end.

        Raises:
            BlockingIOError: There is nothing yet.
            OSError: The connection failed.
        """
        while True:
            data = self._socket.recv(size)
            with self._lock:
                if not data:
                    return b""
                self._incoming.write(data)
                if plain := self._deciphered():
                    return plain

    def _deciphered(self) -> bytes:
        pieces: list[bytes] = []
        try:
            while piece := self._tls.read(_PIECE_BYTES_MAX):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            # The end: the next read of the socket reports it, after the data before it.
            pass
        return b"".join(pieces)

    def send(self, data: memoryview) -> int:
        """Send; returns how many bytes of ``data`` were sent. Call it again with the rest.

        Raises:
            BlockingIOError: The socket accepts nothing. Some of ``data`` may be encrypted already, so the
                next call must begin with the same bytes.
            OSError: The connection failed.
        """
        if not self._unsent:
            with self._lock:
                self._covers = self._tls.write(data[:_PIECE_BYTES_MAX])
                self._unsent = memoryview(self._outgoing.read())
        while self._unsent:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        return self._covers

    def shutdown(self, how: int) -> None:
        """End it; see ``socket.socket``."""
        self._socket.shutdown(how)

    def fileno(self) -> int:
        """What to poll."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
