"""Cookies of the test client, as a browser keeps them (RFC 6265 §5): by name, domain and path.

``client.cookies["a"]`` is the value of the cookie of that name, and assigning to it makes one for every
path of every host. Tests: ``tests/interop/test_client.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class Cookie:
    """One cookie."""

    name: str
    value: str
    domain: str | None
    """Hosts that get it, ``None``: all of them."""
    is_host_only: bool
    """Not hosts below the domain."""
    path: str
    is_secure: bool

    def is_for(self, host: str, path: str, is_secure: bool) -> bool:
        """Whether it is sent with a request."""
        if self.is_secure and not is_secure:
            return False
        if self.domain is not None and host != self.domain:
            is_below = host.endswith("." + self.domain)
            if self.is_host_only or not is_below:
                return False
        prefix = self.path.rstrip("/")
        return path == self.path or path.startswith(prefix + "/") or not prefix


class Cookies(MutableMapping[str, str]):
    """The cookies of a client."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str | None, str], Cookie] = {}

    def receive(self, line: str, host: str, path: str) -> None:
        """Take the value of one ``Set-Cookie`` of a response to a request for ``path``."""
        pair, *attributes = line.split(";")
        name, _, value = pair.partition("=")
        said: dict[str, str] = {}
        for attribute in attributes:
            key, _, text = attribute.partition("=")
            said[key.strip().lower()] = text.strip()
        domain = said.get("domain", "").lstrip(".").lower()
        if domain and host != domain and not host.endswith("." + domain):
            return  # of another host
        at = said.get("path", "")
        cookie = Cookie(
            name=name.strip(),
            value=value.strip(),
            domain=domain or host,
            is_host_only=not domain,
            path=at if at.startswith("/") else _directory_of(path),
            is_secure="secure" in said,
        )
        # One that a test has set gives way, wherever the application puts its own.
        self._kept.pop((cookie.name, None, "/"), None)
        key = (cookie.name, cookie.domain, cookie.path)
        if _is_over(said):
            self._kept.pop(key, None)
        else:
            self._kept[key] = cookie

    def header(self, host: str, path: str, is_secure: bool) -> str:
        """``Cookie`` of a request; empty if there is none to be sent."""
        sent = [one for one in self._kept.values() if one.is_for(host, path, is_secure)]
        # Longer paths first; Python's sort keeps the order of those that are alike.
        sent.sort(key=lambda one: -len(one.path))
        return "; ".join(f"{one.name}={one.value}" for one in sent)

    def __getitem__(self, name: str) -> str:
        for cookie in self._kept.values():
            if cookie.name == name:
                return cookie.value
        raise KeyError(name)

    def __setitem__(self, name: str, value: str) -> None:
        self.pop(name, None)
        self._kept[name, None, "/"] = Cookie(name, value, None, False, "/", False)

    def __delitem__(self, name: str) -> None:
        keys = [key for key in self._kept if key[0] == name]
        if not keys:
            raise KeyError(name)
        for key in keys:
            del self._kept[key]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key[0] for key in self._kept))

    def __len__(self) -> int:
        return len({key[0] for key in self._kept})

    def __repr__(self) -> str:
        return f"Cookies({dict(self)!r})"


def _directory_of(path: str) -> str:
    """The path of a cookie that names none (RFC 6265 §5.1.4)."""
    path = path.partition("?")[0]
    return path.rpartition("/")[0] or "/"


def _is_over(said: dict[str, str]) -> bool:
    """Whether the cookie is to be forgotten."""
    if "max-age" in said:
        try:
            return int(said["max-age"]) <= 0
        except ValueError:
            return False
    if "expires" in said:
        try:
            return parsedate_to_datetime(said["expires"]).timestamp() <= time.time()
        except ValueError:
            return False
    return False
