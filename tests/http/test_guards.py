"""Which addresses may be connected to."""

from __future__ import annotations

import pytest
from citius.errors import ConfigError
from citius.http import Client
from citius.http.guards import is_public, rule


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.9.1", "0.0.0.0", "0.1.2.3", "10.1.2.3", "172.16.0.1", "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "::1", "::",
        "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "::ffff:127.0.0.1",
        "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::",
        "2002:a9fe:a9fe::", "2001:db8::1", "100::1", "", "localhost", "1.2.3",
    ],
)  # fmt: skip
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
