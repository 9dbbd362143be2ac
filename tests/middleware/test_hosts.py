"""Trusted hosts: which requests get through, and which names are refused at the start."""

from __future__ import annotations

import pytest
from citius import App, ConfigError
from citius.testing import Client
from citius.web.middleware import TrustedHosts


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("shop.example", 200),
        ("SHOP.example:8443", 200),
        ("shop.example.", 200),
        ("a.api.example", 200),
        ("a.b.api.example:80", 200),
        ("[::1]:8000", 200),
        ("127.0.0.1", 200),
        ("api.example", 421),
        (".api.example", 421),
        ("evil.example", 421),
        ("shop.example.evil.example", 421),
        ("evilshop.example", 421),
        ("evilapi.example", 421),
        ("[::2]:8000", 421),
    ],
)
def test_hosts(host: str, status: int) -> None:
    app = App()
    app.middleware(TrustedHosts(["shop.example", "*.api.example:8000", "[::1]", "127.0.0.1"]))
    app.get("/")(lambda: "x")
    with Client(app) as client:
        assert client.get("/", headers={"host": host}).status_code == status
        assert client.get("/nowhere", headers={"host": host}).status_code == (
            404 if status == 200 else 421
        )


@pytest.mark.parametrize(
    "hosts",
    [
        [], ["*"], ["*."], ["a*.example"], ["https://a.example"], ["a.example:x"], [" a.example"], ["a,b"],
        ["a b"], ["me@a.example"], ["a.example\n"], ["[::1"], ["a..example"], [".a.example"],
    ],
)  # fmt: skip
def test_what_is_no_host_ends_the_start(hosts: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"TrustedHosts \(.*test_hosts\.py:\d+\): expected"):
        TrustedHosts(hosts)


@pytest.mark.parametrize(
    ("allowed", "host", "status"),
    [
        ("::1", "[::1]:8000", 200),
        ("::1", "[0:0:0:0:0:0:0:1]", 200),
        ("[2001:DB8:0::1]", "[2001:db8::1]", 200),
        ("::1", "[::2]", 421),
        ("shop.example.", "shop.example", 200),
        ("*.shop.example.", "a.shop.example", 200),
        ("*.shop.example.", "shop.example", 421),
    ],
)
def test_spellings_of_one_host(allowed: str, host: str, status: int) -> None:
    app = App()
    app.middleware(TrustedHosts([allowed]))
    app.get("/")(lambda: "x")
    with Client(app) as client:
        assert client.get("/", headers={"host": host}).status_code == status
