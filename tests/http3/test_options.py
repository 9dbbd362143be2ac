"""What asks for HTTP/3 and cannot have it ends the start, with what to do."""

from __future__ import annotations

import socket

import pytest
from citius.errors import ConfigError
from citius.serving.bind import bind
from citius.serving.datagrams import Handings, QuicPlace
from citius.settings.config import Config
from rig import free_port

TLS = {"ssl_dev": True}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"http": "3"} | TLS, "HTTP/3 alone cannot be served"),
        ({"http": "4"}, "expected auto, or some of 1, 2 and 3"),
        ({"http": "1,2,"}, "expected auto, or some of 1, 2 and 3"),
        ({"http": "1,2,3"}, "HTTP/3 needs TLS"),
        ({"http": "1,2,3", "poller": "asyncio"} | TLS, "needs the poller epoll"),
        ({"bind": ("unix:/x?http=1+3",)} | TLS, "Unix sockets have none"),
        ({"bind": ("127.0.0.1:1?http=3",)} | TLS, "HTTP/3 alone"),
        ({"bind": ("127.0.0.1:1?http=1+3",)}, "HTTP/3 needs TLS"),
        ({"http": "1,2,3", "sandbox": True} | TLS, "add sandbox_connect udp"),
        ({"alt_svc": 'h3=":1"'}, "which is not served"),
        ({"http": "1,3", "alt_svc": "a\nb"} | TLS, "alt-svc"),
    ],
)
def test_refusals(options, says) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**options)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "over_tcp"),
    [("auto", "auto"), ("1,2,3", "auto"), ("2,3", "2"), ("3,1", "1"), ("2", "2")],
)
def test_versions_over_tcp(text, over_tcp) -> None:
    assert Config(http=text, ssl_dev=True).http_versions == over_tcp


def test_a_udp_port_that_is_taken() -> None:
    port = free_port()
    with socket.socket(type=socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        with pytest.raises(ConfigError) as caught:
            bind(Config(http="1,2,3", port=port, **TLS), 1)
    assert f"cannot bind UDP port {port}" in str(caught.value)
    assert "ss -lunp" in str(caught.value)


def test_only_addresses_with_tls_have_it() -> None:
    listeners = bind(
        Config(
            http="1,2,3",
            bind=("tls://127.0.0.1:0", "127.0.0.1:0", "tls://127.0.0.1:0?http=1"),
            **TLS,
        ),
        2,
        by_port=True,
    )
    assert listeners.datagrams is not None
    assert [len(group.sockets) for group in listeners.datagrams.groups] == [2]
    port = listeners.all[0].sockets[0].getsockname()[1]
    assert {made.getsockname()[1] for made in listeners.datagrams.groups[0].sockets} == {port}
    assert listeners.datagrams.alt_svc == f'h3=":{port}"; ma=86400'
    listeners.close()


def test_no_address_with_tls() -> None:
    with pytest.raises(ConfigError, match="no address has it"):
        bind(Config(http="1,2,3", bind=("tls://127.0.0.1:0?http=1", "127.0.0.1:0"), **TLS), 1)


def test_workers_that_have_ended_are_not_handed_anything() -> None:
    """Of the server before one: nobody says that they have ended."""
    handings = Handings(1)
    places = [QuicPlace(b"", [], 0)]
    owns = handings.enter(places)
    later = [QuicPlace(b"", [], 0)]
    for own in (*owns, *handings.enter(later)):
        assert later[0].generation == 1
        own.close()
    assert [generation for _, generation, _ in later[0].older] == [0]
    last = [QuicPlace(b"", [], 0)]
    for own in handings.enter(last):
        own.close()
    assert last[0].older == []
    handings.close()


def test_without_it_nothing_is_bound_or_imported() -> None:
    listeners = bind(Config(port=0, **TLS), 1)
    assert listeners.datagrams is None
    listeners.close()
