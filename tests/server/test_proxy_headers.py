"""What proxies say of their clients, through real sockets, for each interface; the parsing's cases are in
crates/citius-forwarded."""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rig import Server, application, wait_for

EVERYTHING = (
    "x-forwarded-for,x-forwarded-proto,x-forwarded-host,x-forwarded-port,x-forwarded-prefix"
)

Serve = Callable[..., Server]


@pytest.fixture(params=["native", "asgi", "wsgi"])
def behind(request: pytest.FixtureRequest, serve: Serve) -> Serve:
    """Serve an application that says whom it sees: ``behind("--option", …)``."""
    return partial(serve, application(f"proxy_headers_{request.param}_app"))


def seen(server: Server, **headers: str) -> dict[str, Any]:
    reply = server.get("/", **headers)
    assert reply.status == 200
    return json.loads(reply.body)


def test_a_proxy_on_the_same_machine_is_believed(behind: Serve) -> None:
    server = behind("--access-log-format", "common")
    said = seen(server, x_forwarded_for="6.6.6.6, 192.0.2.7:4711", x_forwarded_proto="https")
    assert (said["client"], said["scheme"]) == (["192.0.2.7", 4711], "https")
    said = seen(server, forwarded='for=6.6.6.6, for="[2001:db8::1]";proto=https;host=shop.example')
    assert (said["client"], said["scheme"]) == (["2001:db8::1", 0], "https")
    assert said["host"] != "shop.example"  # hostile 15: a client's own Forwarded may have it
    said = seen(server, forwarded="for=unknown")
    assert said["client"] is None
    said = seen(server)
    assert said["client"][0] == "127.0.0.1"
    assert said["scheme"] == "http"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    clients = [line.split()[0] for line in server.out.splitlines() if "GET /" in line]
    assert clients == ["192.0.2.7", "2001:db8::1", "-", "127.0.0.1"]


def test_a_host_in_forwarded_is_believed_by_its_name(behind: Serve) -> None:
    server = behind("--forwarded-headers", "forwarded,forwarded-host")
    said = seen(server, forwarded="for=192.0.2.7;proto=https;host=shop.example")
    assert said["host"] == "shop.example"
    assert said.get("server", ["shop.example", 443]) == ["shop.example", 443]
    assert said.get("server_name", ["shop.example", "443"]) == ["shop.example", "443"]


@pytest.mark.parametrize("name", ["FORWARDED_ALLOW_IPS", "CITIUS_FORWARDED_ALLOW_IPS"])
def test_an_empty_variable_trusts_no_one(behind: Serve, name: str) -> None:
    """Servers D14."""
    server = behind(env={name: ""})
    said = seen(server, x_forwarded_for="6.6.6.6", x_forwarded_proto="https")
    assert (said["client"][0], said["scheme"]) == ("127.0.0.1", "http")


def test_each_request_of_a_connection_has_its_own_client(behind: Serve) -> None:
    server = behind()
    with server.connect() as peer:
        clients = [
            json.loads(peer.request("GET", "/", **headers).body)["client"][0]
            for headers in ({"x_forwarded_for": "192.0.2.1"}, {}, {"x_forwarded_for": "192.0.2.2"})
        ]
    assert clients == ["192.0.2.1", "127.0.0.1", "192.0.2.2"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--no-proxy-headers",),
        ("--forwarded-allow-ips", "192.0.2.0/24,unix"),
        ("--forwarded-allow-ips", ""),
        ("--forwarded-headers", "x-forwarded-host"),
    ],
)
def test_nobody_else_is(behind: Serve, arguments: tuple[str, ...]) -> None:
    server = behind(*arguments)
    said = seen(server, x_forwarded_for="192.0.2.7", x_forwarded_proto="https", forwarded="for=x")
    assert said["client"][0] == "127.0.0.1"
    assert said["scheme"] == "http"


def test_garbage_is_as_good_as_nothing(behind: Serve) -> None:
    server = behind()
    for garbage in ("shop.example", "1.2.3.4, 1.2.3", "[::1", "1.2.3.4:99999", ",", '"1.2.3.4"'):
        assert seen(server, x_forwarded_for=garbage)["client"][0] == "127.0.0.1"
    for garbage in ("for=1.2.3.4;for=1.2.3.5", "for=1.2.3.4;proto=gopher", "for=::1", "for"):
        said = seen(server, forwarded=garbage)
        assert (said["client"][0], said["scheme"]) == ("127.0.0.1", "http")


def test_a_host_is_only_believed_where_it_is_asked_for(behind: Serve) -> None:
    headers = {
        "x_forwarded_host": "shop.example", "x_forwarded_port": "8443", "x_forwarded_prefix": "/a%20b/",
        "x_forwarded_proto": "https",
    }  # fmt: skip
    plain = seen(behind(), **headers)
    assert plain["host"] != "shop.example"
    assert (plain["root"], plain["path"]) == ("", "/")
    said = seen(behind("--forwarded-headers", EVERYTHING), **headers)
    assert (said["host"], said["root"]) == ("shop.example:8443", "/a b")
    if "server" in said:
        assert said["server"] == ["shop.example", 8443]
        assert (said["path"], said["raw_path"]) == ("/a b/", "/a%20b/")
    else:
        assert said["path"] == "/"


def test_networks_come_from_the_environment_too(behind: Serve) -> None:
    server = behind(env={"FORWARDED_ALLOW_IPS": "192.0.2.1, 127.0.0.0/8"})
    assert seen(server, x_forwarded_for="192.0.2.7")["client"] == ["192.0.2.7", 0]
    server = behind(env={"FORWARDED_ALLOW_IPS": "*"})
    assert seen(server, x_forwarded_for="192.0.2.7, 8.8.8.8")["client"] == ["192.0.2.7", 0]


def test_a_unix_socket_is_a_proxy_on_the_same_machine(behind: Serve, tmp_path: Path) -> None:
    for option, client in ((), ["192.0.2.7", 0]), (("--forwarded-allow-ips", "127.0.0.1"), None):
        path = tmp_path / f"{len(option)}.sock"
        behind("--uds", str(path), *option)
        wait_for(path.exists, "the socket")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(path))
            peer.sendall(
                b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.7\r\nConnection: close\r\n\r\n"
            )
            answer = b"".join(iter(lambda: peer.recv(65536), b""))
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["client"] == client


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("--forwarded-allow-ips", "10.0.0.0/33"),
            "expected an address, a network such as 10.0.0.0/8",
        ),
        (("--forwarded-allow-ips", "localhost"), "got 'localhost'"),
        (("--forwarded-headers", "x-real-ip"), "got 'x-real-ip'"),
    ],
)
def test_what_is_no_network_and_no_header_is_refused(
    serve: Serve, arguments: tuple[str, ...], message: str
) -> None:
    server = serve("", *arguments, ready=False)
    assert server.wait() == 2
    assert message in server.err
