"""The addresses of a host, and a socket that is connected to one of them."""

from __future__ import annotations

import functools
import ipaddress
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citius.process.homes import tune

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from citius.process.homes import HubHome, LoopHome

    Address = tuple[int, Any]

_KEPT_S = 10.0
"""How long the addresses of a name are kept: the system's resolver does not say how long they hold."""
_KEPT_MAX = 1000
_APART_S = 0.25
"""Between the beginnings of two tries (RFC 8305 §5)."""


class Refused(ConnectionError):
    """The name leads to addresses that must not be connected to."""

    kind = "AddressRefused"


@dataclass
class Way:
    """What connecting needs."""

    home: LoopHome | HubHome
    resolver: Callable[[str, int], Awaitable[list[Address]]] | None
    allow: Callable[[str, int], bool] | None
    kept: dict[tuple[str, int], tuple[float, list[Address]]] = field(default_factory=dict)


async def connect_to(
    way: Way, host: str, port: int, *, is_target: bool
) -> tuple[socket.socket, str]:
    """A socket that is connected to a host; all of its addresses are tried."""
    addresses = await resolve(way, host, port)
    if is_target:
        addresses = allowed(way, host, addresses)
    tries: list[Callable[[], Awaitable[socket.socket]]] = [
        functools.partial(way.home.connect_to, *one) for one in _interleaved(addresses)
    ]
    if len(tries) == 1:
        made = await tries[0]()
    else:
        made = await way.home.race(tries, _APART_S, socket.socket.close)
    try:
        tune(made)
        return made, _text(made)
    except BaseException:
        made.close()  # the peer may have reset it
        raise


async def resolve(way: Way, host: str, port: int) -> list[Address]:
    """The addresses of a host, which are kept for a while.

    Raises:
        OSError: It has none.
    """
    if (literal := _literal(host, port)) is not None:
        return [literal]
    now = time.monotonic()
    known = way.kept.get((host, port))
    if known is not None and now - known[0] < _KEPT_S:
        return known[1]
    if way.resolver is not None:
        found = list(await way.resolver(host, port))
    else:
        found = await way.home.resolve(host, port)
    if not found:
        raise OSError(f"the name {host} has no address")
    if len(way.kept) >= _KEPT_MAX:
        way.kept.clear()
    way.kept[host, port] = (now, found)
    return found


def allowed(way: Way, host: str, addresses: list[Address]) -> list[Address]:
    """The addresses that may be connected to.

    Raises:
        Refused: None may.
    """
    if way.allow is None:
        return addresses
    allow = way.allow
    kept = [one for one in addresses if allow(one[1][0].partition("%")[0], one[1][1])]
    if not kept:
        texts = ", ".join(str(one[1][0]) for one in addresses)
        raise Refused(f"the name {host} leads to {texts}, which is not allowed")
    return kept


def _literal(host: str, port: int) -> Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if address.version == 4:
        return socket.AF_INET, (str(address), port)
    scope = host.partition("%")[2]
    number = (int(scope) if scope.isdigit() else socket.if_nametoindex(scope)) if scope else 0
    return socket.AF_INET6, (str(address), port, 0, number)


def _interleaved(addresses: list[Address]) -> list[Address]:
    """One family after the other, that of the first address first (RFC 8305 §4)."""
    first = [one for one in addresses if one[0] == addresses[0][0]]
    others = [one for one in addresses if one[0] != addresses[0][0]]
    mixed: list[Address] = []
    while first or others:
        mixed += [part.pop(0) for part in (first, others) if part]
    return mixed


def _text(made: socket.socket) -> str:
    host, port = made.getpeername()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
