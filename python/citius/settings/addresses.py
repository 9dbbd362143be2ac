"""Addresses as options write them: ``HOST:PORT``, ``unix:PATH``, ``fd://NUMBER``, with marks around them.

Only text is looked at; ``serving/bind.py`` makes sockets of it. Tests: ``tests/unit/test_listeners.py``.
"""

from __future__ import annotations

from citius.errors import ConfigError
from citius.settings.option import Option
from citius.settings.texts import http_versions

RPC = "rpc+"
"""What the text of an address of ``--rpc`` begins with."""

REDIRECT = "redirect+"
"""What stands before an address in clear text whose requests are redirected to HTTPS."""

PROXY = "proxy+"
"""What stands before an address whose connections begin with a header of the PROXY protocol."""

TLS = "tls://"
"""What an address begins with where TLS is spoken."""

HTTP = "?http="
"""What stands before the versions of HTTP at the end of an address."""

PORT = Option("port", "int", 8000, "Port to listen on.", minimum=0, maximum=65535)
"""What a port of an address may be, and which it is where none is given."""


def marks_of(text: str) -> str:
    """What the text of an address begins with that is no part of it."""
    marks = ""
    for mark in (RPC, REDIRECT, PROXY, TLS):
        if text.startswith(marks + mark):
            marks += mark
    return marks


def bare(text: str) -> str:
    """The address alone."""
    return text.removeprefix(marks_of(text)).partition(HTTP)[0]


def split(text: str) -> tuple[str, int]:
    """``host:port``, ``:port``, ``host``, ``[v6]:port``; without a host all of them, as in gunicorn."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, ""
    number = PORT.parse(port, "--bind") if port else PORT.default
    return host.strip("[]") or "0.0.0.0", number


def check_address(text: str, option: str = "bind") -> None:
    """Refuse what cannot be an address, before anything is bound.

    Raises:
        ConfigError: The port is none, or something is missing.
    """
    if option == "bind":
        text, http = bare(text), text.partition(HTTP)[2]
        if http:
            http_versions(http, "bind")
    is_tcp = not text.startswith(("unix:", "fd://"))
    if text in ("", "unix:", "fd://") or (is_tcp and "/" in text):
        raise ConfigError(
            f"{option}: expected HOST:PORT, unix:PATH, fd://NUMBER or fd://NAME, got {text!r}"
        )
    if is_tcp:
        split(text)
