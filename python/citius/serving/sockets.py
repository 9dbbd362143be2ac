"""Single sockets: made, bound, made to listen, and stopped.

In: a host and port, the path of a Unix socket, or the number of an inherited descriptor. Out: bound sockets,
and messages for the user where that fails. listeners.py has the sockets of a server.

A connection that the kernel has completed and that no process has accepted is reset when its socket closes.
``stop_accepting`` therefore stops new connections first (by a packet filter that drops SYN), so that the rest
can be accepted; a later client tries again and is refused.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from citius.errors import ConfigError
from citius.process.paths import SocketPath, reason
from citius.process.privileges import Identity, are_split

if TYPE_CHECKING:
    from citius.settings.config import Config


def listen(made: socket.socket, backlog: int, text: str) -> None:
    """Have the kernel queue connections, unless it does so already.

    Raises:
    ConfigError: ``listen`` failed.
    """
    try:
        if not made.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            made.listen(backlog)
    except OSError as error:
        raise ConfigError(cannot_listen(text, error)) from None


def name_of(listener: socket.socket) -> str:
    """Its address.

    Raises:
        ConfigError: The descriptor has been closed.
    """
    try:
        return str(listener.getsockname())
    except OSError as error:
        raise ConfigError(
            f"the application has closed descriptor {listener.fileno()}, on which the server listens "
            f"({_reason(error)}); a program that becomes a daemon and closes all descriptors has to do so "
            "before it starts the server"
        ) from None


def is_unix(made: socket.socket) -> bool:
    """Whether it is a Unix socket, which Windows does not have."""
    return made.family == getattr(socket, "AF_UNIX", None)


def stop_accepting(listener: socket.socket) -> None:
    """Drop every SYN that reaches a TCP listener; handshakes under way still end in its queue.

    The filter belongs to the socket, so it holds for every process that has it. A client tries again
    after a second, and then finds the port closed or another worker's socket.
    """
    if sys.platform != "linux" or listener.family not in (socket.AF_INET, socket.AF_INET6):
        return
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
    # A kernel without it: a connection of this very moment may be reset.
    with suppress(OSError):
        attach_program(listener, _SO_ATTACH_FILTER, program)


def attach_program(made: socket.socket, option: int, program: bytes) -> None:
    """Give a socket a packet filter of the classic kind; raises ``OSError``."""
    import array
    import struct

    # Not by ctypes, which an interpreter that was built without libffi lacks.
    memory = array.array("B", program)
    address, _ = memory.buffer_info()
    made.setsockopt(socket.SOL_SOCKET, option, struct.pack("HP", len(program) // 8, address))


class KeptOptions:
    """Options of listening sockets that a worker can set in the sandbox, and that its successors would have.

    Accepted connections have them too: with ``SO_LINGER``, say, each would be reset at its end.
    """

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[socket.socket, list[tuple[int, int, bytes]]] = (
            WeakKeyDictionary()
        )

    def restore(self, listener: socket.socket) -> None:
        """Give a socket the options back that it had when this was called first."""
        before = self._of.get(listener)
        if before is None:
            self._of[listener] = _options(listener)
            return
        for (level, option, now), (_, _, value) in zip(_options(listener), before, strict=True):
            if now != value:
                if (level, option) in _BUFFERS:  # the kernel doubles what it is told
                    value = (int.from_bytes(value, sys.byteorder) // 2).to_bytes(4, sys.byteorder)
                with suppress(OSError):
                    listener.setsockopt(level, option, value)


def _options(listener: socket.socket) -> list[tuple[int, int, bytes]]:
    found: list[tuple[int, int, bytes]] = []
    for level, option, size in _SETTABLE:
        with suppress(OSError):  # of another kind of socket
            found.append((level, option, listener.getsockopt(level, option, size)))
    return found


def inherited_socket(name: str) -> socket.socket:
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


def tcp_sockets(
    host: str, port: int, slots: int, *, beside_udp: bool = False
) -> list[socket.socket]:
    """One socket for each slot, on one port; with 0 slots one socket without SO_REUSEPORT.

    Args:
        host: A name or an address; empty for all.
        port: 0 for one that the kernel chooses.
        slots: How many.
        beside_udp: UDP has the port that is chosen free, too: HTTP/3 is served there.

    Raises:
        OSError: The address cannot be had.
    """
    # As bytes, because the resolver would import the whole of IDNA for a str.
    encoded = host.encode("ascii" if host.isascii() else "idna")
    family, *_, address = socket.getaddrinfo(
        encoded or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    # The first socket goes without SO_REUSEPORT: with it, a second server of the same user would
    # bind the port as well and take half of the connections.
    is_chosen = port == 0 and beside_udp
    first = (_beside_udp if is_chosen else tcp_socket)(family, address, reuse_port=False)
    if slots == 0:
        return [first]
    address = (address[0], first.getsockname()[1], *address[2:])
    first.close()
    return [tcp_socket(family, address, reuse_port=True) for _ in range(slots)]


def _beside_udp(family: int, address: Any, *, reuse_port: bool) -> socket.socket:
    """A bound socket on a port that the kernel chooses for TCP, and that UDP has free."""
    others: list[socket.socket] = []
    try:
        while True:
            made = tcp_socket(family, address, reuse_port=reuse_port)
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as probe:
                    probe.bind(made.getsockname())
                return made
            except OSError:
                others.append(made)  # held meanwhile, so that another port is chosen
                if len(others) == _PORTS_TRIED:
                    raise
    finally:
        for other in others:
            other.close()


_PORTS_TRIED = 16


def tcp_socket(family: int, address: Any, *, reuse_port: bool) -> socket.socket:
    """A bound socket, IPv6 only if the address is one; raises ``OSError``."""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        if sys.platform == "win32":
            # There SO_REUSEADDR would let a second server take half of the connections.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
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


def unix_socket(path: str, config: Config) -> tuple[socket.socket, SocketPath]:
    """A Unix socket at ``path``, given to the workers' user; one that no process listens on is replaced."""
    guarded = are_split(config)
    with suppress(FileNotFoundError):
        _remove_abandoned(path, guarded)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # There is no bind(2) relative to a directory: the socket is checked after it was made.
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
            return  # `bind` reports that the path is in use
        raise
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        # With a full queue `connect` would wait; a full queue also means that a process listens.
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            found.remove()
        except BlockingIOError:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE)) from None
        else:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def cannot_listen(text: str, error: Exception) -> str:
    """The message for an address that cannot be bound: why, and what to do."""
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
        message += "; --host, or HOST of --bind HOST:PORT, is a name or an address of this machine"
    return message


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.ELOOP:
        return reason(error)
    return (getattr(error, "strerror", None) or str(error)).lower()


_SO_ATTACH_FILTER = 26  # asm-generic/socket.h; the socket module does not name it

# Those of calls.rs that matter to a listening socket and what is accepted on it, with their sizes.
_SETTABLE = (
    *((socket.SOL_SOCKET, option, 4) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, socket.SO_KEEPALIVE)),
    (socket.SOL_SOCKET, socket.SO_LINGER, 8),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), 4)
        for name in ("TCP_NODELAY", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
        if hasattr(socket, name)
    ),
)  # fmt: skip
_BUFFERS = ((socket.SOL_SOCKET, socket.SO_SNDBUF), (socket.SOL_SOCKET, socket.SO_RCVBUF))
