"""The UDP sockets of HTTP/3, and what a worker has to know to serve its own of them.

Each address that has TLS and HTTP/3 has one UDP socket on its port for each reactor of each worker slot
(``SO_REUSEPORT``), which outlives the workers as TCP listeners do. The order of the sockets is the number
that connection ids carry, encrypted; a packet filter on the group decrypts it and gives each packet to its
socket (``steering_program``, crates/citius-quic). Packets for a worker that was replaced, and drains, come to
the socket's new owner, which hands them on. Tests: ``tests/http3/``.
"""

from __future__ import annotations

import os
import select
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citius._core import steering_program
from citius.errors import ConfigError
from citius.observability import logging
from citius.serving.listeners import speaks_of
from citius.serving.sockets import attach_program, is_unix
from citius.settings.texts import http_versions

if TYPE_CHECKING:
    from citius._core import Reactor
    from citius.serving.listeners import Listeners
    from citius.settings.config import Config

RECEIVE_BYTES = 4 * 1024 * 1024
"""Bytes of datagrams that should wait in the kernel for one socket: 40 ms of 100 MB/s."""

RECEIVE_BYTES_MIN = 1024 * 1024
"""Less is warned about: a turn that takes long loses packets."""

_SO_ATTACH_REUSEPORT_CBPF = 51  # asm-generic/socket.h; the socket module does not name it


@dataclass(slots=True)
class Group:
    """The UDP sockets of one address."""

    text: str
    """The address as configured, by which the next server finds it."""
    sockets: list[socket.socket]
    family: int
    address: Any


@dataclass(slots=True)
class QuicPlace:
    """What one reactor serves of HTTP/3."""

    secret: bytes
    """What all workers derive the keys of connection ids, tokens and resets from."""
    sockets: list[socket.socket]
    slot: int
    generation: int = 0
    own: socket.socket | None = None
    """Where later workers of the slot hand on datagrams for this one; ``None`` without a supervisor."""
    back: tuple[socket.socket, socket.socket] | None = None
    """Where an older worker hands on what is not its own: to take, and to give."""
    older: list[tuple[int, int, socket.socket]] = field(
        default_factory=list["tuple[int, int, socket.socket]"]
    )
    """Slot and generation of older workers that may be alive, and where datagrams for them are handed on."""

    def serve(self, reactor: Reactor, qlog_dir: str | None) -> None:
        """Have a reactor serve HTTP/3 here, and write what happens to files of ``qlog_dir``.

        Raises:
            ConfigError: QUIC cannot have what TLS is configured with.
        """
        for made in self.sockets:
            try:
                reactor.listen_datagrams(
                    made.fileno(),
                    secret=self.secret,
                    slot=self.slot,
                    generation=self.generation,
                    receive_bytes=RECEIVE_BYTES,
                    qlog_dir=qlog_dir,
                )
            except ValueError as error:
                raise ConfigError(str(error)) from None
        if self.own is not None and self.back is not None:
            take, give = self.back
            reactor.join_workers(
                own=self.own.fileno(),
                back=(take.fileno(), give.fileno()),
                older=[(slot, number, made.fileno()) for slot, number, made in self.older],
            )


class Handings:
    """The workers of one slot, as far as they hand datagrams on to each other; the supervisor has it.

    Args:
        count: Reactors of a worker.
    """

    def __init__(self, count: int) -> None:
        self.generation = 0
        self.back = [_pair() for _ in range(count)]
        self.alive: list[tuple[int, list[socket.socket]]] = []
        """Generations of workers that have not ended, and where datagrams for them are handed on."""

    def enter(self, places: list[QuicPlace]) -> list[socket.socket]:
        """Give the places of a new worker what connects it; returns what is to be closed once it has it."""
        for generation in [number for number, gives in self.alive if all(map(_is_gone, gives))]:
            # A worker of the server before, which is no child of this one.
            self.leave(generation)
        owns: list[socket.socket] = []
        gives: list[socket.socket] = []
        for index, place in enumerate(places):
            own, give = _pair()
            owns.append(own)
            gives.append(give)
            place.generation = self.generation % 256
            place.own, place.back = own, self.back[index]
            place.older = [
                (place.slot, generation % 256, older[index]) for generation, older in self.alive
            ]
        self.alive.append((self.generation, gives))
        self.generation += 1
        return owns

    def leave(self, generation: int) -> None:
        """Forget a worker that has ended."""
        for number, gives in self.alive:
            if number == generation:
                for made in gives:
                    made.close()
        self.alive = [entry for entry in self.alive if entry[0] != generation]

    def close(self) -> None:
        """Close what connects them."""
        for _, gives in self.alive:
            for made in gives:
                made.close()
        for pair in self.back:
            for made in pair:
                made.close()


def _is_gone(give: socket.socket) -> bool:
    """Whether no process has the other end any more."""
    poll = select.poll()
    poll.register(give, 0)
    return any(events & select.POLLHUP for _, events in poll.poll(0))


def _pair() -> tuple[socket.socket, socket.socket]:
    """Messages in order, as many as fit the buffer: of datagrams a Unix socket keeps ten."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@dataclass(slots=True)
class Datagrams:
    """All UDP sockets of a server."""

    groups: list[Group]
    reactors: int
    """Reactors of a worker, each with sockets of its own."""
    secret: bytes = field(default_factory=lambda: os.urandom(32))
    alt_svc: str | None = None
    """The value of ``Alt-Svc``."""
    handings: dict[int, Handings] = field(default_factory=dict[int, "Handings"])
    """What workers of slots are connected by that have no worker of this server yet."""

    def places(self, slot: int) -> list[QuicPlace]:
        """What the reactors of a slot serve, one after the other; sockets that lack are made."""
        first = slot * self.reactors
        for group in self.groups:
            while len(group.sockets) < first + self.reactors:
                group.sockets.append(udp_socket(group.family, group.address, reuse_port=True))
        return [
            QuicPlace(self.secret, [group.sockets[number] for group in self.groups], number)
            for number in range(first, first + self.reactors)
        ]

    def close(self) -> None:
        """Close all."""
        for group in self.groups:
            for made in group.sockets:
                made.close()

    def close_all_but(self, slot: int) -> None:
        """Close, in a worker, what other slots have."""
        own = range(slot * self.reactors, (slot + 1) * self.reactors)
        for group in self.groups:
            for number, made in enumerate(group.sockets):
                if number not in own:
                    made.close()
        for handings in self.handings.values():
            handings.close()

    def steer(self, slots: int) -> None:
        """Have the kernel give each packet to its worker's socket, and new clients to the first ``slots``.

        Raises:
            ConfigError: The kernel cannot.
        """
        for group in self.groups:
            program = steering_program(
                self.secret, is_ipv6=group.family == socket.AF_INET6, sockets=slots * self.reactors
            )
            if len(group.sockets) > 1:
                try:
                    attach_program(group.sockets[0], _SO_ATTACH_REUSEPORT_CBPF, program)
                except OSError as error:
                    raise ConfigError(
                        f"http: this kernel cannot steer packets of HTTP/3 to workers ({error.strerror}); "
                        "use one worker, or --http 1,2"
                    ) from None


def bind_datagrams(
    listeners: Listeners, config: Config, slots: int, handed: dict[str, Any], *, by_port: bool
) -> Datagrams:
    """Bind a UDP socket beside each TCP socket with TLS whose address has HTTP/3.

    Args:
        listeners: The TCP sockets.
        config: Says which have it.
        slots: How many workers there are.
        handed: What the previous server has handed over (``hand_over``).
        by_port: Each slot has sockets of its own.

    Raises:
        ConfigError: An address cannot be bound; the message says why and what to do.
    """
    if config.quic_qlog_dir is not None and not os.path.isdir(config.quic_qlog_dir):
        raise ConfigError(f"quic_qlog_dir: {config.quic_qlog_dir} is no directory; make it first")
    groups: list[Group] = []
    inherited: dict[str, list[int]] = handed.get("sockets", {})
    for listener in listeners.all:
        first = listener.sockets[0]
        speaks = speaks_of(first)
        if speaks.is_rpc or is_unix(first) or "3" not in http_versions(speaks.http or config.http):
            continue
        if not (config.is_tls if speaks.is_tls is None else speaks.is_tls):
            continue
        address = first.getsockname()
        # One alone needs no group, unless there may be more later.
        count = (slots if by_port else 1) * config.reactors if by_port or config.reactors > 1 else 0
        try:
            if fds := inherited.pop(listener.text, None):
                sockets = [_inherited(fd) for fd in fds]
            else:
                sockets = _udp_sockets(first.family, address, count)
        except OSError as error:
            raise ConfigError(_cannot_bind(address, error)) from None
        groups.append(Group(listener.text, sockets, first.family, address))
    if not groups:
        raise ConfigError(
            "http: HTTP/3 is served where TLS is, and no address has it; see --bind tls://"
        )
    made = Datagrams(groups, config.reactors)
    if handed:
        if handed["reactors"] != config.reactors:
            raise ConfigError(
                f"reactor_threads: the server before had {handed['reactors']}, and HTTP/3 has a socket for "
                "each; use the same number, or restart the server"
            )
        _take_over(made, handed)
    for slot in range(slots if by_port else 1):
        made.places(slot)
    made.steer(slots if by_port else 1)
    close_handed({"sockets": inherited})
    made.alt_svc = _alt_svc(groups, config)
    _tell_buffer(groups[0].sockets[0])
    return made


def hand_over(datagrams: Datagrams, slots: dict[int, Handings]) -> tuple[dict[str, Any], list[int]]:
    """What the next server takes over from this one, and the descriptors in it.

    The secret goes through a descriptor, because an environment can be read for as long as its process lives.
    """
    secret = os.memfd_create("citius-quic")
    os.write(secret, datagrams.secret)
    fds = [secret]

    def given(made: socket.socket) -> int:
        fds.append(made.fileno())
        return fds[-1]

    value = {
        "secret": secret,
        "reactors": datagrams.reactors,
        "sockets": {group.text: [given(made) for made in group.sockets] for group in datagrams.groups},
        "slots": [
            [slot, one.generation, [[given(made) for made in pair] for pair in one.back],
             [[number, [given(made) for made in gives]] for number, gives in one.alive]]
            for slot, one in slots.items()
        ],
    }  # fmt: skip
    return value, fds


def close_handed(handed: dict[str, Any]) -> None:
    """Close the sockets of addresses that are served no longer: no client is to wait there."""
    for fds in handed.get("sockets", {}).values():
        for fd in fds:
            os.close(fd)


def _take_over(made: Datagrams, handed: dict[str, Any]) -> None:
    with open(handed["secret"], "rb") as file:
        file.seek(0)
        made.secret = file.read()
    for slot, generation, back, alive in handed["slots"]:
        one = Handings(0)
        one.generation = generation
        one.back = [(_inherited(take), _inherited(give)) for take, give in back]
        one.alive = [(number, [_inherited(fd) for fd in gives]) for number, gives in alive]
        made.handings[slot] = one


def _inherited(fd: int) -> socket.socket:
    os.set_inheritable(fd, False)
    return socket.socket(fileno=fd)


def udp_socket(family: int, address: Any, *, reuse_port: bool) -> socket.socket:
    """A bound UDP socket, IPv6 only if the address is one; raises ``OSError``."""
    made = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        if reuse_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def _udp_sockets(family: int, address: Any, count: int) -> list[socket.socket]:
    # The first goes without SO_REUSEPORT: with it, a second server of the same user would bind the port too.
    first = udp_socket(family, address, reuse_port=False)
    if count == 0:
        return [first]
    first.close()
    return [udp_socket(family, address, reuse_port=True) for _ in range(count)]


def _alt_svc(groups: list[Group], config: Config) -> str | None:
    if config.alt_svc == "off":
        return None
    if config.alt_svc != "auto":
        return config.alt_svc
    ports = {group.address[1] for group in groups}
    if len(ports) > 1:
        logging.warning(
            "alt_svc: HTTP/3 is served on several ports, so responses name none; give the value of Alt-Svc"
        )
        return None
    return f'h3=":{ports.pop()}"; ma=86400'


def _tell_buffer(made: socket.socket) -> None:
    """Say what the system allows UDP to keep, if that is little."""
    try:
        with open("/proc/sys/net/core/rmem_max", encoding="ascii") as file:
            allowed = int(file.read())
    except (OSError, ValueError):
        return
    if allowed < RECEIVE_BYTES_MIN:
        logging.warning(
            f"HTTP/3: net.core.rmem_max is {allowed} bytes, so the kernel drops packets when the server is "
            f"busy for long; `sysctl -w net.core.rmem_max={RECEIVE_BYTES}` on the host allows more"
        )


def _cannot_bind(address: Any, error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    port = address[1]
    return (
        f"cannot bind UDP port {port} of {address[0]} for HTTP/3: {reason}; stop what has it "
        f"(`ss -lunp 'sport = :{port}'` shows it), choose another port with --port, or leave 3 out of --http"
    )
