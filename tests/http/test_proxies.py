"""Proxies of the environment and of the client."""

from __future__ import annotations

import pytest
from citius.errors import ConfigError
from citius.http import Proxy
from citius.http.proxies import chooser, read
from citius.http.urls import parse


def proxy_of(url: str, **environ: str) -> str | None:
    choose = chooser(None, True, environ)
    return None if choose is None else choose(parse(url))


def test_by_scheme() -> None:
    assert proxy_of("http://a/", http_proxy="http://p:1") == "http://p:1"
    assert proxy_of("https://a/", http_proxy="http://p:1") is None
    assert proxy_of("https://a/", HTTPS_PROXY="p:1") == "http://p:1"
    assert proxy_of("https://a/", ALL_PROXY="socks5://p:1") == "socks5://p:1"
    assert (
        proxy_of("http://a/", http_proxy="http://small:1", HTTP_PROXY="http://large:1")
        == "http://small:1"
    )
    assert proxy_of("http://a/", http_proxy="") is None


def test_a_field_of_a_request_is_no_proxy() -> None:
    """CGI programs get the field ``Proxy`` of their client as HTTP_PROXY."""
    assert proxy_of("http://a/", HTTP_PROXY="http://evil:1", REQUEST_METHOD="GET") is None
    assert proxy_of("http://a/", http_proxy="http://p:1", REQUEST_METHOD="GET") == "http://p:1"


@pytest.mark.parametrize(
    ("exceptions", "url", "is_direct"),
    [
        ("*", "http://a/", True),
        ("a.example", "http://a.example/", True),
        ("a.example", "http://b.a.example/", True),
        (".a.example", "http://a.example/", True),
        ("*.a.example", "http://b.a.example/", True),
        ("a.example", "http://xa.example/", False),
        ("a.example:81", "http://a.example/", False),
        ("a.example:81, b", "http://a.example:81/", True),
        ("x b", "http://b/", True),
        ("10.0.0.0/8", "http://10.1.2.3/", True),
        ("10.0.0.0/8", "http://11.1.2.3/", False),
        ("10.0.0.0/8", "http://a/", False),
        ("::1", "http://[::1]/", True),
        ("[::1]:81", "http://[::1]:81/", True),
        ("LOCALHOST", "http://localhost/", True),
        ("", "http://a/", False),
    ],
)
def test_exceptions(exceptions: str, url: str, is_direct: bool) -> None:
    found = proxy_of(url, all_proxy="http://p:1", no_proxy=exceptions)
    assert found == (None if is_direct else "http://p:1")


def test_of_a_client() -> None:
    choose = chooser(Proxy("http://user:w@p:1"), True, {"http_proxy": "http://q:1"})
    assert choose is not None
    assert choose(parse("http://a/")) == "http://user:w@p:1"
    assert chooser(None, False, {"http_proxy": "http://q:1"}) is None
    assert "w@" not in repr(Proxy("http://user:w@p:1"))


def test_what_is_no_proxy() -> None:
    with pytest.raises(ConfigError, match="HTTP_PROXY"):
        read({"HTTP_PROXY": "ftp://p"})
    with pytest.raises(ConfigError, match="socks5"):
        Proxy("p:1")
    # A connection to a proxy is not encrypted: it was refused by the first request only.
    with pytest.raises(ConfigError, match="https_proxy: .*TLS"):
        read({"https_proxy": "https://p:1"})
