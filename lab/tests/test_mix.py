"""Requests that differ, requests in the background, and a server that is 40 ms away."""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from citius_lab.definitions import workloads
from citius_lab.definitions.workloads import contract
from citius_lab.errors import DefinitionError, LabError
from citius_lab.judge import verdict
from citius_lab.processes import exclusive, relay

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
    for _ in range(2):  # the first connection is the probe that waits until the relay listens
        peer, _ = listener.accept()
        with peer:
            while data := peer.recv(1024):
                peer.sendall(data)


def test_the_relay_adds_the_round_trip_to_each_way_of_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        with (
            relay.to(listener.getsockname()[1], 60.0, ()) as port,
            socket.create_connection(("127.0.0.1", port), timeout=10) as client,
        ):
            for text in (b"first", b"second"):
                started_at = time.monotonic()
                client.sendall(text)
                assert client.recv(1024) == text
                assert time.monotonic() - started_at >= 0.06


def test_no_round_trip_takes_no_relay() -> None:
    with relay.to(12345, 0.0, ()) as port:
        assert port == 12345


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
