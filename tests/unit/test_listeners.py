"""Addresses, and giving a socket up without resetting who waits in its queue."""

from __future__ import annotations

import os
import select
import socket
from pathlib import Path
from typing import Any

import pytest
from citius.errors import ConfigError
from citius.process.startup import HANDOVER_ENV
from citius.serving import sockets
from citius.serving.bind import addresses, bind
from citius.serving.sockets import stop_accepting
from citius.settings.config import Config


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["127.0.0.1:8000"]),
        ({"host": "::1", "port": 1}, ["[::1]:1"]),
        ({"uds": "/x"}, ["unix:/x"]),
        ({"fd": 3, "uds": "/x"}, ["fd://3"]),
        ({"bind": (":1", "unix:/x"), "port": 5}, [":1", "unix:/x"]),
    ],
)
def test_addresses(options, expected: list[str]) -> None:
    assert addresses(Config(**options)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unix:",
        "fd://",
        "host:port",
        "host:70000",
        ":80?http=4",
        ":80?h2",
        "tls://:port",
        "http://:80",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="bind: expected"):
        Config(bind=(text,), ssl_dev=True)


def test_tls_without_a_certificate() -> None:
    with pytest.raises(ConfigError, match="bind: tls://:8443 needs a certificate"):
        Config(bind=(":80", "tls://:8443"))


def test_only_listeners_of_the_application_say_what_they_speak() -> None:
    with pytest.raises(ConfigError, match="expected"):
        Config(management="tls://127.0.0.1:0")


def test_a_socket_of_systemds_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="passed no socket of that name .*; it has passed: none"):
        bind(Config(bind=("fd://web",)), 1)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        ("\u00b2", "expected the number of sockets"),
        ("-1", "expected the number of sockets"),
        ("", "expected the number of sockets"),
        ("1000000000", r"1000000000 sockets are announced, but descriptor \d+ is not open"),
    ],
)
def test_what_systemd_would_not_say(
    monkeypatch: pytest.MonkeyPatch, count: str, message: str
) -> None:
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    monkeypatch.setenv("LISTEN_FDS", count)
    # Descriptors that are open already do not count.
    monkeypatch.setattr("citius.process.systemd.LISTEN_FDS_START", 1_000_000)
    with pytest.raises(ConfigError, match=f"LISTEN_FDS: {message}.*; unset it"):
        bind(Config(), 1)


def test_systemds_words_for_another_process_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_PID", "garbage")
    monkeypatch.setenv("LISTEN_FDS", "garbage")
    assert addresses(Config()) == ["127.0.0.1:8000"]


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "[]",
        '{"listeners": {"a": 3}}',
        '{"listeners": {"a": [1000000]}}',
        '{"ready": "x"}',
    ],
)
def test_what_no_process_before_us_would_hand_over(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(HANDOVER_ENV, text)
    with pytest.raises(
        ConfigError, match="not what a Citius process hands to the next one .*; unset"
    ):
        bind(Config(port=0), 1)


def test_slots_have_sockets_of_their_own_or_share_one(tmp_path: Path) -> None:
    listeners = bind(Config(bind=("127.0.0.1:0", f"unix:{tmp_path}/s")), 2, by_port=True)
    slots = [listeners.of_slot(index, 2) for index in range(2)]
    try:
        ports = {made.getsockname() for slot in slots for made in slot[:1]}
        assert len(ports) == 1
        assert slots[0][0] is not slots[1][0]
        assert all(slot[1].getsockname() == f"{tmp_path}/s" for slot in slots)
        assert (tmp_path / "s").exists()
    finally:
        for slot in slots:
            for made in slot:
                made.close()
        listeners.close()
    assert not (tmp_path / "s").exists()


def test_more_sockets_than_slots_go_round() -> None:
    listeners = bind(Config(port=0), 3, by_port=True)
    slots = [listeners.of_slot(index, 2) for index in range(2)]
    try:
        assert sorted(len(slot) for slot in slots) == [1, 2]
        assert {id(made) for slot in slots for made in slot} == {
            id(made) for made in listeners.all[0].sockets
        }
    finally:
        listeners.close()


def test_a_silenced_listener_keeps_its_queue_and_hears_no_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as early:
            stop_accepting(listener)
            with socket.socket() as late:
                late.setblocking(False)
                assert late.connect_ex(address) != 0
                accepted, _ = listener.accept()
                with accepted:
                    early.sendall(b"x")
                    assert accepted.recv(1) == b"x"
                listener.setblocking(False)
                with pytest.raises(BlockingIOError):
                    listener.accept()
                assert select.select([], [late], [], 0)[1] == []


def test_a_port_that_the_kernel_chooses_is_free_for_http3_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bound = sockets.tcp_socket
    # Held for TCP from here on: another process must not take the number in between.
    (taken,) = sockets.tcp_sockets("127.0.0.1", 0, 0, beside_udp=True)
    with taken, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(taken.getsockname())
        chosen = iter([taken])  # what the kernel chooses at first

        def tcp_socket(family: int, address: Any, *, reuse_port: bool) -> socket.socket:
            return next(chosen, None) or bound(family, address, reuse_port=reuse_port)

        monkeypatch.setattr(sockets, "tcp_socket", tcp_socket)
        (made,) = sockets.tcp_sockets("127.0.0.1", 0, 0, beside_udp=True)
        with made:
            assert made.getsockname()[1] not in (0, other.getsockname()[1])
