"""A server that says what a test wants it to say, byte by byte, on threads of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any, Self

from citius._core import HttpOrigin
from citius.http.transport import Pool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import trustme

FIVE = (5.0, 5.0, 5.0, 5.0, 10.0)
"""Limits of time that no test comes to."""
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Talk:
    """One connection of a peer."""

    def __init__(self, made: socket.socket, number: int) -> None:
        self.socket, self.number = made, number
        self._buffer = b""

    def request(self) -> tuple[str, bytes] | None:
        """The next request's first line and content; ``None`` at the end of the connection."""
        while b"\r\n\r\n" not in self._buffer:
            if not self._more():
                return None
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        fields = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])
        }
        self.fields = fields
        body = b""
        if b"content-length" in fields:
            size = int(fields[b"content-length"])
            taken = bytearray(self._buffer[:size])
            self._buffer = self._buffer[size:]
            while len(taken) < size:
                if not self._more(size - len(taken)):
                    return None
                taken += self._buffer
                self._buffer = b""
            body = bytes(taken)
        elif fields.get(b"transfer-encoding") == b"chunked":
            while True:
                line = self._line()
                if line is None:
                    return None
                size = int(line, 16)
                if size == 0:
                    break
                while len(self._buffer) < size + 2:
                    if not self._more():
                        return None
                body, self._buffer = body + self._buffer[:size], self._buffer[size + 2 :]
            self.trailers: list[bytes] = []
            while line := self._line():
                self.trailers.append(line)
        return head.split(b"\r\n")[0].decode(), body

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self) -> bytes:
        """Some bytes; none at the end of the connection."""
        try:
            return self.socket.recv(65536)
        except OSError:
            return b""

    def _line(self) -> bytes | None:
        while b"\r\n" not in self._buffer:
            if not self._more():
                return None
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _more(self, most: int = 65536) -> bool:
        try:
            data = self.socket.recv(min(most, 65536))
        except OSError:
            return False
        self._buffer += data
        return bool(data)


class Peer:
    """A server on a free port; ``act`` is called with each connection, which is closed behind it."""

    def __init__(
        self,
        act: Callable[[Talk], object],
        *,
        tls: ssl.SSLContext | None = None,
        path: str = "",
        port: int = 0,
    ) -> None:
        self._act, self._tls = act, tls
        if path:
            self._listener = socket.create_server(path, family=socket.AF_UNIX)
        else:
            self._listener = socket.create_server(("127.0.0.1", port))
        self.port = 0 if path else int(self._listener.getsockname()[1])
        self.accepted = 0
        self.open = 0
        self.errors: list[BaseException] = []
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def origin(self, **options: Any) -> HttpOrigin:
        scheme = "http" if self._tls is None else "https"
        return HttpOrigin(scheme, options.pop("host", "127.0.0.1"), self.port or 80, **options)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for made in list(self._open):
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                made, _ = self._listener.accept()
            except OSError:
                return
            if made.family != socket.AF_UNIX:
                # Bytes that were written are sent before a reset.
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.accepted += 1
                self.open += 1
                self._open.add(made)
            threading.Thread(target=self._talk, args=(made, self.accepted), daemon=True).start()

    def _talk(self, made: socket.socket, number: int) -> None:
        plain = made
        try:
            if self._tls is not None:
                made = self._tls.wrap_socket(made, server_side=True)
            self._act(Talk(made, number))
        except (OSError, ssl.SSLError):
            pass
        except BaseException as error:
            self.errors.append(error)
        finally:
            made.close()
            with self._lock:
                self.open -= 1
                self._open.discard(plain)


def answering(response: bytes = OK) -> Callable[[Talk], object]:
    """What answers each request with the same bytes."""

    def act(talk: Talk) -> None:
        while talk.request() is not None:
            talk.say(response)

    return act


def server(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """The rules of a server with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def run(work: Callable[[Pool], Awaitable[object]], **options: Any) -> None:
    """Do something with a pool on a loop of its own."""

    async def main() -> None:
        pool = Pool(**options)
        try:
            await work(pool)
        finally:
            await pool.close()

    asyncio.run(main())


def get(pool: Pool, origin: HttpOrigin, target: str = "/", **options: Any) -> Any:
    """A request; a GET without fields unless something else is said."""
    options.setdefault("deadlines", FIVE)
    return pool.send(
        origin, options.pop("method", "GET"), target, options.pop("fields", []), **options
    )
