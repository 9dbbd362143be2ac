"""Which addresses a client may connect to: ``allow="public"`` against requests forged by users (SSRF).

The check is made with each address that a name has been resolved to, right before connecting to that very
address: a name cannot lead elsewhere in between. Tests: ``tests/http/test_guards.py``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from citius.errors import ConfigError
from citius.http.options import AddressRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    Network: TypeAlias = IPv4Network | IPv6Network
    Allow: TypeAlias = Literal["public"] | Iterable[str] | Callable[[str, int], bool]


_NOT_PUBLIC_V4: Final = (
    "0.0.0.0/8",  # this network
    "10.0.0.0/8",  # private
    "100.64.0.0/10",  # shared with a provider
    "127.0.0.0/8",  # loopback
    "169.254.0.0/16",  # link-local
    "172.16.0.0/12",  # private
    "192.0.0.0/24",  # protocol assignments; PCP and TURN by anycast are those of one's own network
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays of 6to4, deprecated
    "192.168.0.0/16",  # private
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and the broadcast address
)
_PUBLIC_V6: Final = "2000::/3"
"""The unicast addresses that are given out; what lies outside is reserved, private or local."""
_ASSIGNMENTS_V6: Final = "2001::/23"
"""Protocol assignments: benchmarks; PCP, TURN and SRP by anycast, which are those of one's own network;
ORCHIDs and entity tags of drones, which are no addresses."""
_PUBLIC_ASSIGNMENTS_V6: Final = ("2001:3::/32", "2001:4:112::/48")
"""What of them is another's host: multicast tunnels (AMT) and AS112."""
_NOT_PUBLIC_V6: Final = (
    "2001:db8::/32",  # documentation
    "3fff::/20",  # documentation
)


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, whatever it is wrapped in.

    By IANA's registries of special-purpose addresses (RFC 6890), without those that are reachable and are no
    other host's: services of one's own network by anycast, and identifiers. Which addresses the standard
    library calls global differs between its versions.
    """
    import ipaddress

    try:
        found: IPv4Address | IPv6Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        wrapped = _wrapped(found)
        return all(map(_is_public_v4, wrapped)) if wrapped else _is_public_v6(found)
    return _is_public_v4(found)


def _is_public_v4(address: IPv4Address) -> bool:
    return not _is_in(address, _NOT_PUBLIC_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if _is_in(address, (_ASSIGNMENTS_V6,)):
        return _is_in(address, _PUBLIC_ASSIGNMENTS_V6)
    return _is_in(address, (_PUBLIC_V6,)) and not _is_in(address, _NOT_PUBLIC_V6)


def _is_in(address: IPv4Address | IPv6Address, networks: tuple[str, ...]) -> bool:
    return any(address in network for network in _parsed(networks))


@cache
def _parsed(texts: tuple[str, ...]) -> list[Network]:
    import ipaddress

    return [ipaddress.ip_network(text) for text in texts]


def _wrapped(address: IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to: mapped, 6to4, NAT64, Teredo (server and client)."""
    import ipaddress

    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if address.sixtofour is not None:
        return [address.sixtofour]
    if address.teredo is not None:
        return list(address.teredo)
    if _is_in(address, ("64:ff9b::/96",)):
        return [ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)]
    return []


def rule(allow: Allow | None) -> AddressRule | None:
    """What ``allow=`` of a client says.

    Raises:
        ConfigError: It is no rule.
    """
    if allow is None:
        return None
    if allow == "public":
        return AddressRule(lambda address, _: is_public(address), "public addresses")
    if callable(allow):
        return AddressRule(allow, getattr(allow, "__name__", "the rule of allow="))
    if isinstance(allow, str):
        raise ConfigError(
            f'allow= is "public", networks such as ["10.0.0.0/8"], or a function; got {allow!r}'
        )
    return _networks(list(allow))


def _networks(texts: list[str]) -> AddressRule:
    import ipaddress

    try:
        networks: list[Network] = [ipaddress.ip_network(text) for text in texts]
    except ValueError as error:
        raise ConfigError(f"allow=: {error}") from None

    def is_allowed(address: str, _port: int) -> bool:
        found: IPv4Address | IPv6Address = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        return any(found in network for network in networks if network.version == found.version)

    return AddressRule(is_allowed, ", ".join(texts))
