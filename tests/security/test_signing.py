"""Signed values: what is accepted, and every way to forge one that is not."""

from __future__ import annotations

import base64
import time

import pytest
from citius import ConfigError
from citius.web.security import Signer

SECRET = "0123456789abcdef-secret"


def test_what_was_signed_comes_back() -> None:
    signer = Signer(SECRET, "test")
    for payload in (b"", b"x", bytes(range(256))):
        token = signer.sign(payload, 60)
        assert signer.verify(token) == payload
        assert all(c.isalnum() or c in "-_." for c in token)


def test_forgeries() -> None:
    signer = Signer(SECRET, "test")
    token = signer.sign(b"user 1", 60)
    payload, expires_at, mac = token.split(".")
    other = base64.urlsafe_b64encode(b"user 2").decode().rstrip("=")
    forged = [
        f"{other}.{expires_at}.{mac}",
        f"{payload}.{int(expires_at, 16) + 1:x}.{mac}",
        f"{payload}{expires_at}.{mac}",
        f"{payload}.{expires_at}.",
        f"{payload}.{expires_at}",
        f".{token}",
        f"{token}.",
        token + "A",
        token[:-1],
        token.upper(),
        "",
        ".",
        "..",
        "ä" * 50,
        "\0",
        "A" * 1_000_000,
        Signer("another secret, long enough", "test").sign(b"user 1", 60),
        Signer(SECRET, "other purpose").sign(b"user 1", 60),
    ]
    for one in forged:
        assert signer.verify(one) is None, one[:80]


def test_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = Signer(SECRET, "test")
    token = signer.sign(b"x", 60)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 59)
    assert signer.verify(token) == b"x"
    monkeypatch.setattr(time, "time", lambda: now + 61)
    assert signer.verify(token) is None


def test_secrets_can_be_changed() -> None:
    old, new = "old secret of 16 bytes", b"new secret of 16 bytes"
    token = Signer(old, "test").sign(b"x", 60)
    both = Signer([new, old], "test")
    assert both.verify(token) == b"x"
    assert Signer(new, "test").verify(both.sign(b"y", 60)) == b"y"
    assert Signer(new, "test").verify(token) is None


@pytest.mark.parametrize("secret", ["short", b"", [], ["long enough, 16 bytes", "short"]])
def test_a_weak_secret_ends_the_start(secret: str) -> None:
    with pytest.raises(ConfigError, match="at least 16 bytes"):
        Signer(secret, "test")
