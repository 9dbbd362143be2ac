"""Trusted hosts: requests for other hosts than ours are refused.

Whatever builds absolute addresses from ``request.host`` (links in mails, redirects, cache keys) relies on it.
Tests: tests/middleware/test_hosts.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius._core import Response
from citius.errors import ConfigError
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import is_host, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius._core import Request
    from citius.web.middleware.base import Socket


class TrustedHosts(Middleware):
    """Respond with 421 (RFC 9110 §15.5.20) to requests for hosts that are not ours.

    Args:
        hosts: Names such as ``shop.example``, ``*.shop.example`` (every name below it, not itself),
            addresses. Their ports do not matter.

    Raises:
        ConfigError: There is none, or one is no host.
    """

    def __init__(self, hosts: str | Iterable[str]) -> None:
        given = listed(hosts)
        if not given:
            raise ConfigError("TrustedHosts: expected at least one host")
        for host in given:
            if not is_host(_bracketed(host.removeprefix("*.")).removesuffix(".")):
                raise ConfigError(
                    f"TrustedHosts: expected a host such as shop.example or *.shop.example, got {host!r}"
                )
        names = [_name_of(_bracketed(host)) for host in given]
        self._exact = frozenset(name for name in names if not name.startswith("*."))
        self._suffixes = tuple(name[1:] for name in names if name.startswith("*."))

    def connect(self, socket: Socket) -> Response | None:
        """Refuse a WebSocket for another host."""
        return self.before(socket.request)

    def before(self, request: Request) -> Response | None:
        """Refuse a host that is not ours."""
        host = _without_port(request.host).lower()
        if len(host) > 1 and host.endswith("."):
            host = host[:-1]  # the root of the DNS: the same name
        if host in self._exact:
            return None
        if self._suffixes and host.endswith(self._suffixes) and not host.startswith("."):
            return None
        return Response("this server does not serve that host", 421)


def _name_of(host: str) -> str:
    """A host as all spellings of it are compared: without its port and the dot of the DNS's root."""
    name = _without_port(host).lower()
    return name[:-1] if len(name) > 1 and name.endswith(".") else name


def _bracketed(host: str) -> str:
    """An IPv6 address as a host of requests has it: an application may name it without brackets."""
    return f"[{host}]" if host.count(":") > 1 and not host.startswith("[") else host


def _without_port(host: str) -> str:
    if host.startswith("["):  # an IPv6 address
        return _shortest(host.partition("]")[0][1:])
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdecimal() else host


def _shortest(address: str) -> str:
    """An IPv6 address in brackets, in the one spelling of RFC 5952."""
    import socket

    try:
        packed = socket.inet_pton(socket.AF_INET6, address)
    except OSError:
        return f"[{address}]"
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]"
