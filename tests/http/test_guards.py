"""Which addresses may be connected to."""

from __future__ import annotations

import ipaddress

import pytest
from citius.errors import ConfigError
from citius.http import Client
from citius.http.guards import is_public, rule

SPECIAL: dict[str, bool] = {
    # The registry of IPv4, whole: whether another's host on the internet is reached.
    "0.0.0.0/8": False,
    "10.0.0.0/8": False,
    "100.64.0.0/10": False,
    "127.0.0.0/8": False,
    "169.254.0.0/16": False,
    "172.16.0.0/12": False,
    "192.0.0.0/24": False,
    "192.0.0.0/29": False,
    "192.0.0.8/32": False,
    "192.0.0.9/32": False,  # reachable, and one's own router (PCP)
    "192.0.0.10/32": False,  # reachable, and one's own relay (TURN)
    "192.0.0.170/31": False,
    "192.0.2.0/24": False,
    "192.31.196.0/24": True,
    "192.52.193.0/24": True,
    "192.88.99.0/24": False,
    "192.88.99.2/32": False,
    "192.168.0.0/16": False,
    "192.175.48.0/24": True,
    "198.18.0.0/15": False,
    "198.51.100.0/24": False,
    "203.0.113.0/24": False,
    "224.0.0.0/4": False,  # of the registry of multicast
    "240.0.0.0/4": False,
    "255.255.255.255/32": False,
    # That of IPv6; what wraps an address of IPv4 has a test of its own.
    "::1/128": False,
    "::/128": False,
    "64:ff9b:1::/48": False,
    "100::/64": False,
    "100:0:0:1::/64": False,
    "2001::/23": False,
    "2001:1::1/128": False,  # as 192.0.0.9
    "2001:1::2/128": False,
    "2001:1::3/128": False,  # reachable, and one's own registrar (SRP)
    "2001:2::/48": False,
    "2001:3::/32": True,
    "2001:4:112::/48": True,
    "2001:10::/28": False,
    "2001:20::/28": False,  # identifiers, not addresses
    "2001:30::/28": False,
    "2001:db8::/32": False,
    "2620:4f:8000::/48": True,
    "3fff::/20": False,
    "5f00::/16": False,
    "fc00::/7": False,
    "fe80::/10": False,
    "fec0::/10": False,  # site-local, of before that registry
    "ff00::/8": False,
    # What no registry has given out.
    "::/96": False,
    "::ffff:0:0:0/96": False,
    "200::/7": False,
    "4000::/3": False,
    "e000::/4": False,
}
"""https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry."""
PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1", "2400:cb00::1"]


@pytest.mark.parametrize("network", SPECIAL)
def test_the_registries_of_special_addresses(network: str) -> None:
    found = ipaddress.ip_network(network)
    for address in (found[0], found[-1]):
        assert is_public(str(address)) == SPECIAL[network], address


@pytest.mark.parametrize(
    "beside",
    [
        "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0",
        "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
        "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
        "2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "3ffe:ffff::", "3fff:1000::",
    ],
)  # fmt: skip
def test_what_is_beside_them_is_public(beside: str) -> None:
    assert is_public(beside)


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "inner",
    [
        ("8.8.8.8", True), ("127.0.0.1", False), ("10.0.0.1", False), ("169.254.169.254", False),
        ("100.64.0.1", False), ("192.88.99.1", False), ("0.0.0.0", False), ("255.255.255.255", False),
    ],
)  # fmt: skip
def test_an_address_is_what_it_wraps(inner: tuple[str, bool]) -> None:
    """Mapped, NAT64, 6to4, and Teredo with the address as its server and, inverted, as its client."""
    text, expected = inner
    number = int(ipaddress.IPv4Address(text))
    public = int(ipaddress.IPv4Address("8.8.8.8"))
    teredo = 0x20010000 << 96
    wrapped = {
        "mapped": 0xFFFF << 32 | number,
        "NAT64": 0x64FF9B << 96 | number,
        "6to4": 0x2002 << 112 | number << 80 | 1,
        "Teredo, server": teredo | number << 64 | public ^ 0xFFFFFFFF,
        "Teredo, client": teredo | public << 64 | number ^ 0xFFFFFFFF,
    }
    for way, address in wrapped.items():
        assert is_public(str(ipaddress.IPv6Address(address))) == expected, way
    for never in (f"::{text}", f"::ffff:0:{text}", f"64:ff9b:1::{text}"):
        assert not is_public(never), never


@pytest.mark.parametrize(
    "address", ["fe80::1%eth0", "fd00:ec2::254", "", "localhost", "1.2.3", "0x7f.1", "2130706433"]
)
def test_not_public(address: str) -> None:
    assert not is_public(address)


def test_rules() -> None:
    networks = rule(["10.0.0.0/8", "fd00::/8"])
    assert networks is not None
    assert networks.is_allowed("10.1.1.1", 80)
    assert networks.is_allowed("::ffff:10.1.1.1", 80)
    assert networks.is_allowed("fd00::1", 80)
    assert not networks.is_allowed("11.1.1.1", 80)
    function = rule(lambda address, port: port == 443)
    assert function is not None
    assert function.is_allowed("10.1.1.1", 443)
    assert not function.is_allowed("10.1.1.1", 80)
    assert rule(None) is None


def test_what_is_no_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("private", ["10.0.0.1/8"], ["x"]):
        with pytest.raises(ConfigError, match="allow="):
            Client(allow=wrong)
    with pytest.raises(ConfigError, match="proxy resolves"):
        Client(allow="public", proxy="http://proxy:3128")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    with pytest.raises(ConfigError, match="trust_env=False"):
        Client(allow="public")
    with pytest.raises(ConfigError, match="unix_path"):
        Client(allow="public", unix_path="/x", trust_env=False)
    with pytest.raises(ConfigError, match="make none"):
        Client(allow="public", app=lambda environ, start: [], trust_env=False)
