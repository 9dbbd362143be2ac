"""Who carries a connection's bytes: the reactor that serves on this thread, in Rust, or the client's home.

Sessions of PostgreSQL, links of Redis and those to HTTP servers are ``Carried``. Tests:
``tests/pg/test_sessions.py``, ``tests/redis/test_client.py``, ``tests/http/``.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from citius.process import reactors

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import Reactor

    Callback = Callable[[], object]

READ_BYTES = 64 * 1024


class Core(Protocol):
    """The protocol's side of a connection."""

    def receive(self, data: bytes, /) -> None:
        """Take what has come."""

    def take_output(self) -> bytes:
        """What is to be sent."""
        ...

    def end(self, why: str, /) -> None:
        """The connection has ended."""

    def attach(self, reactor: Reactor, fd: int) -> None:
        """Have a reactor carry the bytes."""

    def detach(self, reactor: Reactor, wake: Callable[[], None]) -> None:
        """Have Python carry them again: ``wake`` is called when there is something to send."""


class Home(Protocol):
    """What watches the socket while no reactor carries its bytes."""

    def watch(
        self, made: socket.socket, on_readable: Callback | None, on_writable: Callback | None
    ) -> None:
        """Call these when the socket is ready, in place of those before."""


_Core = TypeVar("_Core", bound=Core)
_Home = TypeVar("_Home", bound=Home)


class Carried(Generic[_Core, _Home]):
    """A connection whose socket is there. All methods are called on its home's thread.

    A subclass makes ``core``. The home carries the bytes until ``_follow`` is called, and again whenever no
    reactor serves on the thread.
    """

    closed_by_peer = "the server has closed the connection"
    """Why the connection has ended when nothing more comes."""
    core: _Core

    def __init__(self, home: _Home, made: socket.socket) -> None:
        self._home = home
        self._socket: socket.socket | None = made
        self._reactor: Reactor | None = None
        self._unsent = _NOTHING
        self._watches = (False, False)

    def leave(self) -> None:
        """Close the socket where the home is gone: in a forked child, and where its loop has ended."""
        self._reactor = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _wants_input(self) -> bool:
        """Whether the home is to read."""
        return True

    def _may_be_carried(self) -> bool:
        """Whether a reactor may carry the bytes."""
        return True

    def _wake(self) -> None:
        """Have ``_flush`` called soon, from any thread: there is something to send."""
        raise NotImplementedError

    def _follow(self) -> None:
        """Have the thread's reactor carry the bytes, now and whenever there is one."""
        reactors.follow(self._move)
        self._move(reactors.current())

    def _move(self, reactor: Reactor | None) -> None:
        """Have ``reactor`` carry the bytes, or the home."""
        if self._socket is None or reactor is self._reactor:
            return
        if reactor is not None and not self._may_be_carried():
            return
        before, self._reactor = self._reactor, None
        if before is not None:
            self.core.detach(before, self._wake)
        # A login or a handshake does not fill a socket; with one that is full the home goes on.
        if reactor is not None and not self._unsent and self._attach(reactor, self._socket):
            return
        self._watch()
        self._flush()

    def _attach(self, reactor: Reactor, made: socket.socket) -> bool:
        """Have ``reactor`` carry the bytes; whether it could have its copy of the descriptor."""
        self._home.watch(made, None, None)
        self._watches = (False, False)
        try:
            self.core.attach(reactor, made.fileno())
        except OSError:
            return False
        self._reactor = reactor
        return True

    def _release(self) -> socket.socket | None:
        """Stop reading and sending, and return the socket, which the caller closes."""
        reactors.unfollow(self._move)
        made, self._socket = self._socket, None
        if made is None:
            return None
        before, self._reactor = self._reactor, None
        if before is not None:
            self.core.detach(before, _nothing)
        else:
            self._home.watch(made, None, None)
        return made

    def _watch(self) -> None:
        """Have the home watch the socket for what is to be read and sent."""
        if self._socket is None or self._reactor is not None:
            return
        watches = (self._wants_input(), bool(self._unsent))
        if watches != self._watches:
            self._watches = watches
            reads, writes = watches
            self._home.watch(
                self._socket, self._read if reads else None, self._flush if writes else None
            )

    def _read(self) -> None:
        """Hand the core what has come, or why nothing comes any more."""
        if self._socket is None:
            return
        try:
            data = self._socket.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            return self.core.end(error.strerror or str(error))
        if data:
            self.core.receive(data)
            self._watch()
        else:
            self._read_end()

    def _read_end(self) -> None:
        """Tell the core that the peer sends no more."""
        self.core.end(self.closed_by_peer)

    def _flush(self) -> None:
        """Send what was left and what there is now; the home waits for the socket where it is full."""
        if self._socket is None or self._reactor is not None:
            return
        try:
            if self._unsent:
                self._send(self._socket, self._unsent)
            # What is not taken waits in the core, which does not copy it behind the rest.
            if not self._unsent:
                self._send(self._socket, memoryview(self.core.take_output()))
        except OSError as error:
            return self.core.end(error.strerror or str(error))
        self._watch()

    def _send(self, made: socket.socket, output: memoryview) -> None:
        """Send what the socket takes, and keep the rest."""
        sent = 0
        with suppress(BlockingIOError, InterruptedError):
            sent = made.send(output) if output else 0
        self._unsent = output[sent:] if sent < len(output) else _NOTHING


_NOTHING = memoryview(b"")


def _nothing() -> None:
    """Wake nothing: the connection is closed."""
