"""Listeners that redirect to HTTPS, and HSTS."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

import pytest
from citius.errors import ConfigError
from citius.settings.config import Config
from pki import Pki, connect
from rig import TIMEOUT_S, Server


def port_of(server: Server) -> int:
    """The port of the address in clear text."""
    found = re.search(r"serves on .*\bhttp://127\.0\.0\.1:(\d+)", server.err)
    assert found, server.err
    return int(found[1])


def response_to(server: Server, request: str) -> str:
    with socket.create_connection(("127.0.0.1", port_of(server)), TIMEOUT_S) as peer:
        peer.sendall(request.encode())
        peer.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: peer.recv(65536), b"")).decode()


def get(server: Server, target: str, host: str) -> str:
    return response_to(server, f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")


def locations(response: str) -> list[str]:
    return re.findall(r"(?im)^location: (.*)\r$", response)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_requests_are_redirected_to_the_same_place(
    secured: Callable[..., Server], workers: str
) -> None:
    server = secured("--redirect-http", "0", "--workers", workers)
    https = f"https://localhost:{server.port}"
    for target, host, expected in [
        ("/", "localhost", f"{https}/"),
        ("/a%20b?c=%0d%0a&d", "localhost:80", f"{https}/a%20b?c=%0d%0a&d"),
        ("/?", "LOCALHOST", f"https://LOCALHOST:{server.port}/?"),
        ("//evil.example/", "localhost", f"{https}//evil.example/"),
        ("/", "127.0.0.1:80", f"https://127.0.0.1:{server.port}/"),
    ]:
        response = get(server, target, host)
        assert response.startswith("HTTP/1.1 308 "), response
        assert locations(response) == [expected]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "[::1]", "127.0.0.2", "localhost@evil.example"],
)
def test_no_request_makes_it_name_another_host(secured: Callable[..., Server], host: str) -> None:
    response = get(secured("--redirect-http", "0"), "/", host)
    assert re.match(r"HTTP/1\.1 (421|400) ", response), response
    assert locations(response) == []


def test_bodies_and_later_requests(secured: Callable[..., Server]) -> None:
    """308 keeps the method: the client sends the body again, to HTTPS."""
    server = secured("--redirect-http", "0")
    request = "POST /form HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
    responses = response_to(server, request + request)
    assert responses.count("HTTP/1.1 308 ") == 2
    assert len(locations(responses)) == 2


def test_a_port_that_clients_see_differs(secured: Callable[..., Server]) -> None:
    server = secured("--redirect-http", "127.0.0.1:0", "--redirect-port", "443")
    assert locations(get(server, "/x", "localhost")) == ["https://localhost/x"]


def test_a_mark_of_bind_is_the_same(secured: Callable[..., Server]) -> None:
    server = secured("--bind", "127.0.0.1:0", "--bind", "redirect+127.0.0.1:0")
    assert locations(get(server, "/x", "localhost")) == [f"https://localhost:{server.port}/x"]


def test_challenges_are_not_served_without_acme(secured: Callable[..., Server]) -> None:
    response = get(secured("--redirect-http", "0"), "/.well-known/acme-challenge/x", "localhost")
    assert response.startswith("HTTP/1.1 308 ")


def test_hsts_is_said_over_tls_alone(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--redirect-http", "0", "--hsts", "31536000; includesubdomains")
    with connect(server, pki.client()) as peer:
        reply = peer.request("GET", "/")
    assert reply.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    for host in ("localhost", "elsewhere.example", "no host"):
        response = get(server, "/", host).lower()
        assert "strict-transport-security" not in response
        assert "server: citius" in response
    with connect(server, pki.client()) as peer:
        reply = peer.request("GET", "/", host="no host")
    assert (reply.status, "strict-transport-security" in reply.headers) == (400, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"redirect_http": ("80",)}, "HTTPS, which is not served"),
        ({"redirect_port": 443}, "redirect_http names no address"),
        ({"redirect_http": ("80/x",), "ssl_dev": True}, "redirect_http: expected HOST:PORT"),
        ({"bind": ("redirect+tls://:80",), "ssl_dev": True}, "leave out tls://"),
        ({"hsts": "31536000"}, "HTTPS, which is not served"),
        ({"hsts": "a year", "ssl_dev": True}, "hsts: expected seconds"),
        ({"hsts": "1; preloaded", "ssl_dev": True}, "hsts: expected seconds"),
        ({"hsts": "1", "bind": ("tls://:443", ":80"), "ssl_dev": True}, "is in clear text"),
    ],
)
def test_what_cannot_be_redirected(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config(**options)  # pyright: ignore[reportArgumentType]


def test_there_must_be_a_port_to_redirect_to(
    secured: Callable[..., Server], tmp_path: object
) -> None:
    with pytest.raises(AssertionError, match="redirects to HTTPS, which no address with a port"):
        secured("--redirect-http", "0", "--uds", "sock")
