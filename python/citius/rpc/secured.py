"""A connection of the client for threads over TLS, in the place of its socket.

OpenSSL's own way with sockets will not do: one connection must not be read by one thread and written by
another at once, and greenlets' patched sockets are none of its. So TLS is spoken in memory, under a lock that
is held for as long as that takes and never while anybody waits, and the socket is read and written beside it.

Nothing is said at the end: messages know where they end, so cutting a connection can only remove whole
ones off, as without TLS.
"""

from __future__ import annotations

import ssl
from _thread import allocate_lock
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_PIECE_BYTES_MAX = 64 * 1024
"""Bytes that are enciphered at once: what a socket takes, more or less."""


class Secured:
    """A connected socket behind a handshake; reads and writes as one that never blocks.

    Args:
        made: The socket, connected; closed by the caller if this raises.
        context: The client's rules.
        server_name: What the certificate has to be for.
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
        # Enciphered and not taken by the socket, and how many bytes of the caller's it is.
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
        """Tell the server what is wrong with it, if it still listens."""
        try:
            self._socket.sendall(self._outgoing.read())
        except OSError:
            return

    def recv(self, size: int) -> bytes:
        """What has come, deciphered; empty at the end.

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
            # The end; the socket will say so itself, after what came before.
            pass
        return b"".join(pieces)

    def send(self, data: memoryview) -> int:
        """How much of ``data`` has been sent; to be called again with what is left.

        Raises:
            BlockingIOError: The socket takes nothing; some of ``data`` may be enciphered already, so that the
                next call has to begin with the same bytes.
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
        """Give the socket back."""
        self._socket.close()
