"""Which addresses a client may connect to: ``allow="public"`` against requests forged by users (SSRF).

The check is made with each address that a name has been resolved to, right before connecting to that very
address: a name cannot lead elsewhere in between. Tests: ``tests/http/test_guards.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from citius.errors import ConfigError
from citius.http.options import AddressRule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    Network: TypeAlias = IPv4Network | IPv6Network
    Allow: TypeAlias = Literal["public"] | Iterable[str] | Callable[[str, int], bool]


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, whatever it is wrapped in."""
    import ipaddress

    try:
        found: IPv4Address | IPv6Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if (inner := _wrapped(found)) is not None:
            return is_public(str(inner))
        # Site-local addresses are deprecated, and still routed within networks; ORCHIDs are no addresses.
        if found.is_site_local or found in ipaddress.IPv6Network("2001:20::/28"):
            return False
    return found.is_global and not found.is_multicast and not found.is_reserved


def _wrapped(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address leads to: mapped, compatible, 6to4, NAT64, Teredo."""
    import ipaddress

    number = int(address)
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    nat64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
    if any(address in one for one in nat64) or (number >> 32 == 0 and number > 1):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return None


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
