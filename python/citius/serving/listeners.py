"""The listening sockets of a server: addresses, the sockets of each, and which process owns them.

An address has one socket for each worker slot (``SO_REUSEPORT``: the kernel spreads the connections) or,
where that is impossible (Unix sockets, inherited ones), one that all slots share. bind.py makes them of a
configuration. Only the owner of a socket stops accepting on it and removes its path; an inherited socket
stays open for the process that passed it. Tests: ``tests/unit/test_listeners.py``, ``tests/supervisor/``.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING

from citius.records import record
from citius.serving.sockets import is_unix, listen, stop_accepting, tcp_socket
from citius.settings.addresses import bare, marks_of

if TYPE_CHECKING:
    from citius.process.paths import SocketPath
    from citius.serving.datagrams import Datagrams
    from citius.settings.config import Config


@record(frozen=True, slots=True)
class Speaks:
    """The protocols of an address, as far as its text sets them."""

    is_rpc: bool = False
    """RPC; otherwise HTTP."""
    is_tls: bool | None = None
    """With TLS or in clear text; ``None``: as the options say."""
    http: str | None = None
    """The versions of HTTP; ``None``: as the options say."""
    is_proxied: bool = False
    """Connections begin with a header of the PROXY protocol."""
    redirect_port: int = 0
    """The port of HTTPS that requests are redirected to; 0: they are served."""


class ListeningSocket(socket.socket):
    """A socket with the protocols of its address; its copies have them too."""

    __slots__ = ("speaks",)

    speaks: Speaks

    def dup(self) -> ListeningSocket:
        """Another descriptor for the same socket."""
        return _speaking(super().dup(), self.speaks)


def speaks_of(made: socket.socket) -> Speaks:
    """The protocols of a listening socket."""
    return made.speaks if isinstance(made, ListeningSocket) else Speaks()


def _speaking(made: socket.socket, speaks: Speaks) -> ListeningSocket:
    known = ListeningSocket(fileno=made.detach())
    known.speaks = speaks
    return known


@record(slots=True)
class Listener:
    """One address and its sockets."""

    text: str
    """The address as configured, by which the next server finds it."""
    sockets: list[socket.socket]
    is_ours: bool = True
    """No other server accepts from it: this one may stop accepting and remove its path."""
    path: SocketPath | None = None
    """The path of a Unix socket that this or the previous process has made."""
    scheme: str = "http"

    @property
    def is_by_port(self) -> bool:
        """Whether each slot has a socket of its own; otherwise all share one."""
        first = self.sockets[0]
        return (
            sys.platform == "linux"
            and not is_unix(first)
            and bool(first.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))
        )

    @property
    def url(self) -> str:
        """The address for messages."""
        name = self.sockets[0].getsockname()
        if is_unix(self.sockets[0]):
            return f"{marks_of(self.text)}unix:{os.fsdecode(name)}"
        host = f"[{name[0]}]" if ":" in name[0] else name[0]
        speaks = speaks_of(self.sockets[0])
        if speaks.is_rpc:
            return f"{'rpc+tls' if speaks.is_tls else 'rpc'}://{host}:{name[1]}"
        return f"{self.scheme}://{host}:{name[1]}"

    def one_more(self) -> socket.socket:
        """A socket for another slot."""
        first = self.sockets[0]
        if not self.is_by_port:
            return first.dup()
        made = tcp_socket(first.family, first.getsockname(), reuse_port=True)
        made = _speaking(made, speaks_of(first))
        self.sockets.append(made)
        return made

    def speak(self, speaks: Speaks, config: Config) -> None:
        """Set the protocols of the address."""
        is_tls = config.is_tls if speaks.is_tls is None else speaks.is_tls
        self.scheme = "https" if is_tls else "http"
        self.sockets = [_speaking(made, speaks) for made in self.sockets]

    def close(self) -> None:
        """Close all sockets; remove the path of a Unix socket that this server owns."""
        if self.path is not None and self.is_ours:
            self.path.remove()
        for made in self.sockets:
            with suppress(OSError):  # the application has closed it
                made.close()


@record(slots=True)
class Listeners:
    """All addresses of a server."""

    all: list[Listener] = field(default_factory=list[Listener])
    datagrams: Datagrams | None = None
    """The UDP sockets of HTTP/3, if it is served."""
    ready_fd: int = -1
    """The previous server waits for a byte here."""
    life_fd: int = -1
    """Hangs up when the reloader that started this process ends."""

    @property
    def urls(self) -> str:
        """The addresses for messages."""
        return " and ".join(listener.url for listener in self.all)

    def of_slot(self, index: int, slots: int) -> list[socket.socket]:
        """The sockets of one of ``slots`` slots; shared sockets are duplicated.

        There may be more inherited sockets than slots: they are distributed, because each needs an acceptor.
        """
        found: list[socket.socket] = []
        for listener in self.all:
            if not listener.is_by_port:
                found.append(listener.sockets[0].dup())
                continue
            while len(listener.sockets) < slots:
                listener.one_more()
            found += listener.sockets[index::slots]
        return found

    def listen(self, backlog: int) -> None:
        """Have the kernel queue connections.

        Raises:
        ConfigError: ``listen`` failed for a socket.
        """
        for listener in self.all:
            for made in listener.sockets:
                listen(made, backlog, listener.text)

    def stop_accepting(self) -> None:
        """Stop accepting on the sockets that this server owns."""
        for listener in self.all:
            if listener.is_ours:
                for made in listener.sockets:
                    if made.fileno() >= 0:
                        stop_accepting(made)
                if listener.path is not None:
                    listener.path.remove()

    def take_over(self) -> None:
        """Tell the previous server that this one is ready, and own the sockets that it passed."""
        if self.ready_fd >= 0:
            os.write(self.ready_fd, b"r")
            os.close(self.ready_fd)
            self.ready_fd = -1
            for listener in self.all:
                listener.is_ours = not bare(listener.text).startswith("fd://")

    def disown(self) -> None:
        """Give up ownership: another server serves at these addresses now."""
        for listener in self.all:
            listener.is_ours = False

    def close(self) -> None:
        """Close all."""
        for listener in self.all:
            listener.close()
        if self.datagrams is not None:
            self.datagrams.close()
