"""One connection: its socket, and who carries its bytes: the reactor on this thread, or the pool's home."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

from citius._core import HttpConnection
from citius.databases import forks
from citius.process.carrying import READ_BYTES, Carried

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import ClientTls, HttpOrigin, HttpPool
    from citius.process.homes import HubHome, LoopHome


class Link(Carried[HttpConnection, "LoopHome | HubHome"]):
    """A connection whose socket is there."""

    def __init__(
        self,
        home: LoopHome | HubHome,
        pool: HttpPool,
        links: set[Link],
        made: socket.socket,
        origin: HttpOrigin,
        lane: int,
        tls: ClientTls | None,
        remote: str,
    ) -> None:
        super().__init__(home, made)
        self._links = links
        self._has_heard_all = self._has_ended = False
        self._is_secured = tls is not None
        self._cancel: Callable[[], object] | None = None
        self.core = HttpConnection(
            pool,
            origin,
            lane,
            self._listen,
            self._wake,
            remote=remote,
            tls=None if tls is None else (tls, origin.server_name),
        )
        links.add(self)
        forks.hold(self)

    def open(self, left_s: float, timeout_s: float, *, is_shared: bool = False) -> None:
        """Take requests; with TLS when its handshake is done, which has ``left_s``.

        ``is_shared``: HTTP/2 is spoken without asking, where there is no TLS.
        """
        if not self._is_secured:
            self._follow()
            return self.core.open(is_shared)
        self._cancel = self._home.later(left_s, lambda: self._expire(timeout_s))
        self._watch()
        self._flush()

    def _expire(self, timeout_s: float) -> None:
        self._cancel = None
        self.core.fail("ConnectTimeout", f"no TLS handshake within {timeout_s:g} s")

    def _follow(self) -> None:
        super()._follow()
        self._watch()

    def _wants_input(self) -> bool:
        return self.core.wants_input

    # --- what the extension tells ---

    def _listen(self, kind: str, value: object) -> None:
        if self._home.is_here():
            self._act(kind)
        else:
            self._home.run(lambda: self._act(kind))

    def _act(self, kind: str) -> None:
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        if kind == "open":
            if self._is_secured:
                self._follow()
        else:
            self.close()

    def close(self) -> None:
        """Close the socket; what is under way is the caller's."""
        self._links.discard(self)
        made = self._release()
        if made is None:
            return
        # The peer is told what is wrong with its TLS, and that there is no more.
        if data := bytes(self._unsent) + (self.core.take_output() if self._is_secured else b""):
            with contextlib.suppress(OSError):
                made.send(data)
        # A forked child may hold the socket open.
        with contextlib.suppress(OSError):
            made.shutdown(socket.SHUT_RDWR)
        made.close()

    def _wake(self) -> None:
        self._home.run(self._flush)

    def _read_end(self) -> None:
        if not self._has_ended and self.core.finish():
            # What is to go there may go on.
            self._has_heard_all = True
            self._watch()
        else:
            super()._read_end()

    def _end_output(self) -> None:
        """Say that nothing more goes there; the server may still send."""
        assert self._socket is not None
        self._has_ended = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        if self._has_heard_all:
            self.core.end(self.closed_by_peer)

    def _flush(self) -> None:
        while self._socket is not None and self._reactor is None:
            if not self._unsent:
                # A connection that was idle may have been closed, and then takes nothing.
                if self.core.looks_first:
                    self._read()
                    if self._socket is None:  # pyright: ignore[reportUnnecessaryComparison]
                        return
                self._unsent = memoryview(self.core.take_output())
                if not self._unsent:
                    break
            try:
                self._send(self._socket, self._unsent)
            except OSError as error:
                # What the peer has said before it left says why.
                self._read_last(error.strerror or str(error))
                return
            if self._unsent:
                break
        is_carrier = self._socket is not None and self._reactor is None
        if is_carrier and not (self._unsent or self._has_ended) and self.core.has_sent_all:
            self._end_output()
        self._watch()

    def _read_last(self, why: str) -> None:
        for _ in range(16):
            made = self._socket
            if made is None:
                return
            try:
                data = made.recv(READ_BYTES)
            except OSError:
                break
            if not data:
                return self.core.end(self.closed_by_peer)
            self.core.receive(data)
        if self._socket is not None:
            self.core.end(why)
