"""Where a server listens: addresses in, bound sockets out; who owns them, and how they are given up.

An address has one socket for each worker slot (``SO_REUSEPORT``: the kernel spreads the connections) or,
where that cannot be (Unix sockets, inherited ones), one that all slots share. Sockets come from three
places: made here, inherited by number (``--fd``, systemd, see systemd.py), or handed over by the process
before us (``HANDOVER_ENV``: a reload, or USR2). What is not ours alone keeps accepting and is never
unlinked.

Giving up: a connection that the kernel has completed and that no process has accepted is reset when its
socket closes. ``stop_accepting`` stops new ones first (a packet filter that drops SYN, or the removal of the
path), so that none is lost when the rest is accepted; a later client tries again and is refused.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.process.paths import SocketPath, reason
from citius.process.privileges import Identity, are_split
from citius.process.startup import HANDOVER_ENV
from citius.settings.addresses import HTTP, RPC, TLS, bare, marks_of, split

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius.settings.config import Config

"""What the process before hands to the next one: JSON with ``listeners`` (descriptors by address) and, for
USR2, ``ready`` (a descriptor to write a byte to); for a reload, ``life`` (a descriptor that hangs up when the
reloader ends)."""


@dataclass(frozen=True, slots=True)
class Speaks:
    """What is spoken with those who connect to an address, as far as its text says."""

    is_rpc: bool = False
    """Procedures are called; HTTP otherwise."""
    is_tls: bool | None = None
    """Over TLS, or not; ``None``: as the options say."""
    http: str | None = None
    """The versions of HTTP; ``None``: as the options say."""


class ListeningSocket(socket.socket):
    """A socket that knows what is spoken there; so do its copies."""

    __slots__ = ("speaks",)

    speaks: Speaks

    def dup(self) -> ListeningSocket:
        """Another descriptor for the same socket."""
        return _speaking(super().dup(), self.speaks)


def speaks_of(made: socket.socket) -> Speaks:
    """What is spoken with those who connect to a socket."""
    return made.speaks if isinstance(made, ListeningSocket) else Speaks()


def _speaking(made: socket.socket, speaks: Speaks) -> ListeningSocket:
    known = ListeningSocket(fileno=made.detach())
    known.speaks = speaks
    return known


@dataclass(slots=True)
class Listener:
    """One address and its sockets."""

    text: str
    """The address as configured; what a successor finds it by."""
    sockets: list[socket.socket]
    is_ours: bool = True
    """Nobody else accepts from it: it may stop accepting, and its path removed."""
    path: SocketPath | None = None
    """Of a Unix socket that we, or the process before us, have made."""
    scheme: str = "http"

    @property
    def is_by_port(self) -> bool:
        """Every slot has a socket of its own; otherwise they share one."""
        first = self.sockets[0]
        return first.family != socket.AF_UNIX and bool(
            first.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)
        )

    @property
    def url(self) -> str:
        """The address for people."""
        name = self.sockets[0].getsockname()
        if self.sockets[0].family == socket.AF_UNIX:
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
        made = _tcp_socket(first.family, first.getsockname(), reuse_port=True)
        made = _speaking(made, speaks_of(first))
        self.sockets.append(made)
        return made

    def speak(self, speaks: Speaks, config: Config) -> None:
        """Have this spoken at the address."""
        is_tls = config.is_tls if speaks.is_tls is None else speaks.is_tls
        self.scheme = "https" if is_tls else "http"
        self.sockets = [_speaking(made, speaks) for made in self.sockets]

    def close(self) -> None:
        """Close all, and remove the path of our own Unix socket."""
        if self.path is not None and self.is_ours:
            self.path.remove()
        for made in self.sockets:
            made.close()


@dataclass(slots=True)
class Listeners:
    """All addresses of a server."""

    all: list[Listener] = field(default_factory=list[Listener])
    ready_fd: int = -1
    """The process before us waits for a byte here."""
    life_fd: int = -1
    """Hangs up when the reloader, which has started us, ends."""

    @property
    def urls(self) -> str:
        """The addresses for people."""
        return " and ".join(listener.url for listener in self.all)

    def of_slot(self, index: int, slots: int) -> list[socket.socket]:
        """The sockets of one slot of so many; what is shared is copied, what is left over goes round.

        Sockets that were handed over may be more than the slots: none may be without an acceptor.
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
        """Let the kernel queue connections from now on.

        Raises:
            ConfigError: One of the sockets cannot.
        """
        for listener in self.all:
            for made in listener.sockets:
                listen(made, backlog, listener.text)

    def stop_accepting(self) -> None:
        """Let no new connection arrive at what is ours."""
        for listener in self.all:
            if listener.is_ours:
                for made in listener.sockets:
                    if made.fileno() >= 0:
                        stop_accepting(made)
                if listener.path is not None:
                    listener.path.remove()

    def take_over(self) -> None:
        """We are ready: tell the process before us, and own what it has handed over."""
        if self.ready_fd >= 0:
            os.write(self.ready_fd, b"r")
            os.close(self.ready_fd)
            self.ready_fd = -1
            for listener in self.all:
                listener.is_ours = not bare(listener.text).startswith("fd://")

    def disown(self) -> None:
        """Somebody else serves here from now on."""
        for listener in self.all:
            listener.is_ours = False

    def close(self) -> None:
        """Close all."""
        for listener in self.all:
            listener.close()


def bind(config: Config, slots: int, *, by_port: bool = False) -> Listeners:
    """Bound sockets for so many slots, not listening yet; with ``by_port`` one for each of them.

    Raises:
        ConfigError: An address cannot be had; the message says why and what to do.
    """
    handed = _handed_over()
    listeners = Listeners(ready_fd=handed.pop("ready", -1))
    if listeners.ready_fd >= 0:
        os.set_inheritable(listeners.ready_fd, False)
    listeners.life_fd = handed.pop("life", -1)
    if listeners.life_fd >= 0:
        os.set_inheritable(listeners.life_fd, False)
    inherited: dict[str, list[int]] = handed.get("listeners", {})
    try:
        for text in dict.fromkeys(addresses(config, inherited)):
            fds = inherited.pop(text, None)
            listeners.all.append(
                _adopt(text, fds, config) if fds else _bind(text, slots if by_port else 0, config)
            )
        for listener in listeners.all:
            listener.speak(_said(listener.text, config), config)
        # Whoever waits behind an address that is no longer served is refused, not left waiting.
        for fd in (fd for fds in inherited.values() for fd in fds):
            os.close(fd)
    except ConfigError:
        listeners.close()
        raise
    return listeners


def addresses(config: Config, inherited: Iterable[str] = ()) -> list[str]:
    """What to listen on, in the form of ``--bind``; sockets passed to us go before the default."""
    from citius.process.systemd import named_sockets

    beside = [RPC + text for text in config.rpc]
    if config.fd is not None:
        return [f"fd://{config.fd}", *beside]
    if config.uds is not None:
        return [f"unix:{config.uds}", *beside]
    if config.bind:
        return [*config.bind, *beside]
    passed = [f"fd://{fd}" for fd, _ in named_sockets()]
    if passed := passed or [text for text in inherited if text.startswith("fd://")]:
        return [*passed, *beside]
    host = f"[{config.host}]" if ":" in config.host else config.host
    return [f"{host}:{config.port}", *beside]


def _said(text: str, config: Config) -> Speaks:
    """What the text of an address says is spoken there; once one says tls://, the others are clear text."""
    is_rpc, is_tls = text.startswith(RPC), marks_of(text).endswith(TLS)
    http = text.partition(HTTP)[2] or None
    says_tls = is_rpc or any(other.startswith(TLS) for other in config.bind)
    return Speaks(is_rpc, is_tls if says_tls else None, http)


def handover(
    listeners: Listeners, *, ready_fd: int | None = None, life_fd: int | None = None
) -> tuple[str, list[int]]:
    """The value of ``HANDOVER_ENV`` for the next process, and the descriptors it has to inherit."""
    import json

    by_text = {
        listener.text: [made.fileno() for made in listener.sockets if made.fileno() >= 0]
        for listener in listeners.all
    }
    value: dict[str, Any] = {"listeners": by_text}
    fds = [fd for fds in by_text.values() for fd in fds]
    for name, fd in (("ready", ready_fd), ("life", life_fd)):
        if fd is not None:
            value[name] = fd
            fds.append(fd)
    return json.dumps(value), fds


def listen(made: socket.socket, backlog: int, text: str) -> None:
    """Let the kernel queue connections, if it does not yet.

    Raises:
        ConfigError: The socket cannot.
    """
    try:
        if not made.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            made.listen(backlog)
    except OSError as error:
        raise ConfigError(_cannot_listen(text, error)) from None


def stop_accepting(listener: socket.socket) -> None:
    """Drop every SYN that reaches a TCP listener; handshakes under way still end in its queue.

    The filter belongs to the socket, so it holds for every process that has it. A client tries again
    after a second, and then finds the port closed or another worker's socket.
    """
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return
    import ctypes
    import struct

    program = b"".join(
        struct.pack("=HBBI", *instruction)
        for instruction in (
            (0x30, 0, 0, 13),  # A = the flags of the TCP header (RFC 9293 §3.1)
            (0x54, 0, 0, 0x12),  # A &= ACK | SYN
            (0x15, 0, 1, 0x02),  # if A is SYN alone
            (0x06, 0, 0, 0),  # drop
            (0x06, 0, 0, 0xFFFF_FFFF),  # otherwise keep all of it
        )
    )
    memory = ctypes.create_string_buffer(program, len(program))
    try:
        listener.setsockopt(
            socket.SOL_SOCKET, _SO_ATTACH_FILTER,
            struct.pack("HP", len(program) // 8, ctypes.addressof(memory)),
        )  # fmt: skip
    except OSError:
        return  # a kernel without it: a connection of this very moment may be reset


def _handed_over() -> dict[str, Any]:
    text = os.environ.pop(HANDOVER_ENV, "")
    if not text:
        return {}
    import json

    try:
        handed = json.loads(text)
        listeners = handed.get("listeners", {})
        fds = [
            handed.get("ready", -1),
            handed.get("life", -1),
            *(fd for fds in listeners.values() for fd in fds),
        ]
        for fd in fds:
            if fd != -1:
                os.fstat(fd)
    except (ValueError, TypeError, AttributeError, OSError) as error:
        raise ConfigError(
            f"{HANDOVER_ENV}: not what a Citius process hands to the next one ({error}); unset it"
        ) from None
    return handed


def _adopt(text: str, fds: list[int], config: Config) -> Listener:
    sockets: list[socket.socket] = []
    for fd in fds:
        try:
            os.set_inheritable(fd, False)
            sockets.append(socket.socket(fileno=fd))
        except OSError as error:
            raise ConfigError(_cannot_listen(f"fd://{fd}", error)) from None
    # Until we are ready the process before is the owner (`take_over`).
    address = bare(text)
    path = None
    if address.startswith("unix:"):
        with suppress(OSError):
            path = SocketPath.of(address.removeprefix("unix:"), guarded=are_split(config))
    return Listener(text, sockets, is_ours=False, path=path)


def _bind(text: str, slots: int, config: Config) -> Listener:
    if (address := bare(text)) != text:
        made = _bind(address, slots, config)
        made.text = text
        return made
    try:
        if text.startswith("fd://"):
            return Listener(text, [_inherited(text.removeprefix("fd://"))], is_ours=False)
        if text.startswith("unix:"):
            made, path = _bind_uds(text.removeprefix("unix:").replace("//", "/"), config)
            return Listener(text, [made], path=path)
        return Listener(text, _bind_tcp(*split(text), slots))
    except (OSError, UnicodeError) as error:
        raise ConfigError(_cannot_listen(text, error)) from None


def bind_beside(text: str, config: Config, *, takes_over: bool) -> Listener:
    """A socket at an address besides those of the application.

    Args:
        text: The address.
        config: Says whom the path of a Unix socket belongs to.
        takes_over: The server before us still holds the address.

    Raises:
        ConfigError: The address cannot be had.
    """
    if not takes_over or text.startswith("fd://"):
        return _bind(text, 1, config)
    try:
        if text.startswith("unix:"):
            with suppress(FileNotFoundError):
                path = text.removeprefix("unix:")
                SocketPath.of(path, guarded=are_split(config)).remove()
            return _bind(text, 1, config)
        host, port = split(text)
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return Listener(text, [_tcp_socket(family, address, reuse_port=True)])
    except OSError as error:
        raise ConfigError(_cannot_listen(text, error)) from None


def _inherited(name: str) -> socket.socket:
    """The socket with this number, or with this name among systemd's."""
    if name.isdigit():
        return socket.socket(fileno=os.dup(int(name)))
    from citius.process.systemd import named_sockets

    names = named_sockets()
    for fd, known in names:
        if known == name:
            return socket.socket(fileno=os.dup(fd))
    have = ", ".join(known for _, known in names) or "none"
    raise ConfigError(
        f"--bind fd://{name}: systemd has passed no socket of that name (FileDescriptorName=); "
        f"it has passed: {have}"
    )


def _bind_tcp(host: str, port: int, slots: int) -> list[socket.socket]:
    """So many sockets on one port; 0: one that has it for itself."""
    # As bytes, because the resolver would import the whole of IDNA for a str.
    encoded = host.encode("ascii" if host.isascii() else "idna")
    family, *_, address = socket.getaddrinfo(
        encoded or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # The first socket goes without SO_REUSEPORT: with it, a second server of the same user would
    # bind the port as well and take half of the connections.
    first = _tcp_socket(family, address, reuse_port=False)
    if slots == 0:
        return [first]
    address = (address[0], first.getsockname()[1], *address[2:])
    first.close()
    return [_tcp_socket(family, address, reuse_port=True) for _ in range(slots)]


def _tcp_socket(family: int, address: Any, *, reuse_port: bool) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def _bind_uds(path: str, config: Config) -> tuple[socket.socket, SocketPath]:
    """A Unix socket at ``path``, given to the workers' user; one that no process listens on is replaced."""
    guarded = are_split(config)
    with suppress(FileNotFoundError):
        _remove_abandoned(path, guarded)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # There is no bind(2) relative to a directory: what it has made is looked at from there.
        made.bind(path)
        found = SocketPath.of(path, guarded=guarded)
        if config.user is not None or config.group is not None:
            identity = Identity.of(config)
            found.give(identity.uid, identity.gid)
    except BaseException:
        made.close()
        raise
    return made, found


def _remove_abandoned(path: str, guarded: bool) -> None:
    try:
        found = SocketPath.of(path, guarded=guarded)
    except OSError as error:
        if error.errno == errno.ENOTSOCK:
            return  # bind says that the path is taken
        raise
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # A full queue would make connect wait, and is a sign of a listener as well.
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            found.remove()
        except BlockingIOError:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)) from None
        else:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _cannot_listen(text: str, error: Exception) -> str:
    if text.startswith("fd://"):
        return (
            f"cannot listen on descriptor {text.removeprefix('fd://')}: {_reason(error)}; "
            "--fd and fd:// want an inherited, bound socket"
        )
    number = getattr(error, "errno", None)
    message = f"cannot listen on {text.removeprefix('unix:')}: {_reason(error)}"
    if number == errno.EADDRINUSE and not text.startswith("unix:"):
        port = text.rpartition(":")[2]
        message += (
            f"; stop what listens there (`ss -ltnp 'sport = :{port}'` shows it) or choose "
            "another port with --port"
        )
    elif number == errno.EACCES and not text.startswith("unix:"):
        message += "; ports below 1024 need the capability CAP_NET_BIND_SERVICE"
    elif number == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        message += "; --host wants an address of this machine"
    return message


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return reason(error)
    return (getattr(error, "strerror", None) or str(error)).lower()


_SO_ATTACH_FILTER = 26  # asm-generic/socket.h; the socket module does not name it
