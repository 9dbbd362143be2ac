"""Requests that differ, requests in the background, and a server that is 40 ms away."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import struct
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from citius_lab.definitions import workloads
from citius_lab.definitions.workloads import contract
from citius_lab.errors import DefinitionError, LabError, LoadError
from citius_lab.judge import verdict
from citius_lab.processes import exclusive, packets, relay

if TYPE_CHECKING:
    from pathlib import Path

VARIED = """
[[case]]
id = "other"
target = "/"
connections = 1
title = "for tests"
is_varied = true
"""
NOTHING = """
[[case]]
id = "other"
target = "/"
connections = 1
title = "for tests"
mix = [{ target = "/", is_background = true }]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VARIED, r"case\[0\]\.is_varied: expected a function requests\(random\)"),
        (NOTHING, r"case\[0\]\.mix: nothing in it is to be measured"),
    ],
)
def test_a_mix_of_nothing_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "other.toml").write_text(text)
    with pytest.raises(DefinitionError, match=said):
        workloads.read(tmp_path / "other.toml")


def test_no_two_requests_of_browsers_are_alike() -> None:
    case = contract().cases["greet-varied"]
    found = case.requests(random.Random(1))
    assert len({(one.target, one.headers) for one in found}) == len(found) >= 1000
    assert {dict(one.headers)["User-Agent"] for one in found} == {
        dict(browser)["User-Agent"] for browser in case_browsers()
    }
    assert case.requests(random.Random(1)) == found


def case_browsers() -> tuple[tuple[tuple[str, str], ...], ...]:
    browsers: tuple[tuple[tuple[str, str], ...], ...] = contract().workloads["greet"].code.BROWSERS  # type: ignore[union-attr]
    return browsers


def test_one_request_in_fifty_is_in_the_background() -> None:
    case = contract().cases["beside-slow"]
    assert case.has_background
    slow, rest = (
        sum(one.weight for one in case.mix if one.is_background == is_slow)
        for is_slow in (True, False)
    )
    assert (slow, slow + rest) == (1, 50)
    assert not replace(case, mix=()).has_background


def test_a_rate_beside_slow_requests_is_no_capacity() -> None:
    assert verdict.BACKGROUND in verdict.NO_CAPACITY


def echo(listener: socket.socket) -> None:
    # The first connection may be the probe that waits until the relay listens; without one, the listener is
    # closed while the second is awaited.
    with contextlib.suppress(OSError):
        for _ in range(2):
            peer, _ = listener.accept()
            with peer:
                while data := peer.recv(1024):
                    peer.sendall(data)


def test_the_relay_adds_the_round_trip_to_each_way_of_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with (
            relay.to(listener.getsockname()[1], 60.0, 0.0, ()) as address,
            socket.create_connection(split(address), timeout=10) as client,
        ):
            for text in (b"first", b"second"):
                started_at = time.monotonic()
                client.sendall(text)
                assert client.recv(1024) == text
                assert time.monotonic() - started_at >= 0.06


def test_no_round_trip_takes_no_relay() -> None:
    with relay.to(12345, 0.0, 0.0, ()) as address:
        assert address == "127.0.0.1:12345"


def split(address: str) -> tuple[str, int]:
    host, _, port = address.partition(":")
    return host, int(port)


def test_packets_turn_around_with_the_same_checksum() -> None:
    """RFC 1071: the sum of 16-bit words, with what it carries."""

    def checksum(packet: bytes) -> int:
        return sum(struct.unpack(f">{len(packet) // 2}H", packet)) % 0xFFFF

    inet = socket.inet_aton
    begin, rest = b"\x45\0\0\x1c\0\0\0\0\x40\x11\xab\xcd", b"12345678"
    there = begin + inet(packets.OWN) + inet(packets.HOST) + rest
    back = begin + inet(packets.SERVER) + inet(packets.CLIENT) + rest
    for packet, turned in (
        (there, begin + inet(packets.CLIENT) + inet(packets.SERVER) + rest),
        (back, begin + inet(packets.HOST) + inet(packets.OWN) + rest),
    ):
        assert packets.turned(packet) == turned
        assert checksum(packet) == checksum(turned)
    # Packets between other addresses, such as multicasts of the kernel's, are not relayed.
    assert packets.turned(begin + inet(packets.OWN) + inet("224.0.0.1") + rest) is None
    assert packets.turned(b"") is None


def has_tun() -> bool:
    return os.geteuid() == 0 and os.path.exists("/dev/net/tun")


@pytest.mark.skipif(not has_tun(), reason="packets are lost by a TUN device, which root makes")
def test_lost_packets_are_repeated_by_the_kernel() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with (
            relay.to(listener.getsockname()[1], 20.0, 0.1, ()) as address,
            socket.create_connection(split(address), timeout=60) as client,
        ):
            for number in range(20):
                started_at = time.monotonic()
                client.sendall(b"%d" % number)
                assert client.recv(1024) == b"%d" % number
                assert time.monotonic() - started_at >= 0.02


def test_a_system_without_devices_says_so() -> None:
    if has_tun():
        # Of two measurements one has the device.
        with (
            relay.to(1, 0.0, 0.1, ()),
            pytest.raises(LoadError, match="packets cannot be lost here: OSError"),
            relay.to(1, 0.0, 0.1, ()),
        ):
            raise AssertionError
        return
    with (
        pytest.raises(LoadError, match=r"packets cannot be lost here: .*Error"),
        relay.to(1, 0.0, 0.1, ()),
    ):
        raise AssertionError


def test_two_measurements_at_once_on_one_machine_are_refused(tmp_path: Path) -> None:
    with (
        exclusive.measuring(tmp_path / "first"),
        pytest.raises(LabError, match=r"another citius lab measures.*into .*first\)"),
        exclusive.measuring(tmp_path / "second"),
    ):
        pass
    with exclusive.measuring(tmp_path / "third"):
        pass


def test_the_lock_is_one_for_all_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CITIUS_LAB_LOCK")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert str(exclusive.lock_path()) == "/tmp/citius-lab.lock"
    own = tmp_path / "lock"
    monkeypatch.setenv("CITIUS_LAB_LOCK", str(own))
    before = os.umask(0o077)
    try:
        with exclusive.measuring(tmp_path):
            assert own.stat().st_mode & 0o777 == 0o666
    finally:
        os.umask(before)


@pytest.mark.parametrize("kind", ["symlink", "hard link", "pipe"])
def test_a_lock_that_another_user_prepared_writes_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    victim, own = tmp_path / "victim", tmp_path / "lock"
    victim.write_text("mine")
    monkeypatch.setenv("CITIUS_LAB_LOCK", str(own))
    if kind == "symlink":
        own.symlink_to(victim)
    elif kind == "hard link":
        own.hardlink_to(victim)
    else:
        os.mkfifo(own)
    with pytest.raises(LabError, match="lock"), exclusive.measuring(tmp_path):
        pass
    assert victim.read_text() == "mine"
