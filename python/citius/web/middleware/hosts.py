"""Trusted hosts: requests for other hosts than ours are refused.

Whatever builds absolute addresses from ``request.host`` (links in mails, redirects, cache keys) relies on it.
Tests: tests/middleware/test_hosts.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius._core import Response
from citius.errors import ConfigError
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import listed

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
            bare = host.removeprefix("*.")
            if not bare or "*" in bare or "/" in bare or not bare.isascii():
                raise ConfigError(
                    f"TrustedHosts: expected a host such as shop.example or *.shop.example, got {host!r}"
                )
        names = [_without_port(host).lower() for host in given]
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


def _without_port(host: str) -> str:
    if host.startswith("["):  # an IPv6 address
        return host.partition("]")[0] + "]"
    name, separator, port = host.rpartition(":")
    return name if separator and port.isdecimal() else host
