"""Cookies of a client (RFC 6265bis): which are kept, and which are sent with a request.

A client keeps none without ``cookies=``: one that serves several users would mix them. There is no list of
public suffixes in the package, so a cookie with a ``Domain`` other than its host is kept for its host only,
unless ``is_public_suffix`` says which domains are registries. Tests: ``tests/http/test_cookies.py``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    _Key: TypeAlias = tuple[str, str | None, bool, str]

COOKIE_BYTES_MAX: Final = 4096
"""Name and value together (RFC 6265bis §5.6)."""
ATTRIBUTE_BYTES_MAX: Final = 1024
"""The value of one attribute."""
COOKIES_PER_HOST_MAX: Final = 180
COOKIES_MAX: Final = 3000
LIFETIME_MAX_S: Final = 400 * 24 * 3600
_EPOCH_END: Final = 253_402_300_799.0


@dataclass(slots=True)
class Cookie:
    """One cookie."""

    name: str
    value: str
    domain: str | None
    """Hosts that get it; ``None``: all that are called, for one that the application has set for no host."""
    path: str = "/"
    is_host_only: bool = True
    """Not hosts below the domain."""
    is_secure: bool = False
    is_http_only: bool = False
    same_site: str | None = None
    expires_at: float | None = None
    """Seconds since the epoch; ``None``: as long as the client."""
    number: int = 0
    """Order in which they came."""

    def is_for(self, host: str, path: str, is_secure: bool) -> bool:
        """Whether it is sent with a request."""
        if self.is_secure and not (is_secure or host in ("localhost", "127.0.0.1", "::1")):
            return False
        if self.domain is not None and host != self.domain and (
            self.is_host_only or not _is_below(host, self.domain)
        ):  # fmt: skip
            return False
        return _is_within(path, self.path)


class CookieJar(MutableMapping[str, str]):
    """The cookies of a client: a mapping of names and values.

    Args:
        cookies: Names and values to begin with, sent to every host that is called: with a ``base_url`` to its
            origin, and to none that a redirect leads to at another origin.
        is_public_suffix: Whether a domain is one under which others register theirs, such as ``co.uk``; for
            instance ``lambda domain: psl.publicsuffix(domain) == domain`` of the package publicsuffixlist.
            Without it a cookie is only kept for the host that has set it.
    """

    def __init__(
        self,
        cookies: MutableMapping[str, str] | Iterable[tuple[str, str]] = (),
        *,
        is_public_suffix: Callable[[str], bool] | None = None,
    ) -> None:
        self._kept: dict[_Key, Cookie] = {}
        self._is_public_suffix = is_public_suffix
        self._number = 0
        self._lock = threading.Lock()
        for name, value in dict(cookies).items():
            self[name] = value

    def receive(
        self, line: str, host: str, path: str, is_secure: bool, *, is_own: bool = True
    ) -> None:
        """Take one ``Set-Cookie`` of a response to a request for ``path`` of ``host``.

        ``is_own``: cookies that the application has set for no host are sent there.

        Bytes that are not UTF-8 are in ``line`` as by ``surrogateescape``: they are sent as they came.
        """
        cookie = self._read(line, host, path, is_secure)
        if cookie is None:
            return
        key = (cookie.name, cookie.domain, cookie.is_host_only, cookie.path)
        with self._lock:
            if not is_secure and self._hides_secure(cookie):
                return
            if is_own:  # the application's own one gives way
                self._kept.pop((cookie.name, None, False, "/"), None)
            self._number += 1
            before = self._kept.pop(key, None)
            cookie.number = self._number if before is None else before.number
            if cookie.expires_at is None or cookie.expires_at > time.time():
                self._kept[key] = cookie
                self._evict(cookie.domain)

    def _hides_secure(self, cookie: Cookie) -> bool:
        """Whether a cookie of a connection without TLS would stand in for a secure one (§5.7 step 15)."""
        return any(
            one.is_secure
            and one.name == cookie.name
            and _overlap(one.domain, cookie.domain)
            and _is_within(cookie.path, one.path)
            for one in self._kept.values()
        )

    def _evict(self, domain: str | None) -> None:
        of_host = [key for key, one in self._kept.items() if one.domain == domain]
        if len(of_host) > COOKIES_PER_HOST_MAX:
            del self._kept[self._least(of_host)]
        if len(self._kept) > COOKIES_MAX:
            del self._kept[self._least(self._kept)]

    def _least(self, keys: Iterable[_Key]) -> _Key:
        """The one that goes first (§5.7): one that has expired, one that is not secure, the oldest."""
        now = time.time()

        def rank(key: _Key) -> tuple[bool, bool]:
            one = self._kept[key]
            is_over = one.expires_at is not None and one.expires_at <= now
            return not is_over, one.is_secure

        return min(keys, key=rank)

    def _read(self, line: str, host: str, path: str, is_secure: bool) -> Cookie | None:
        if any((c < " " and c != "\t") or c == "\x7f" for c in line):
            return None
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        if not equals:
            name, value = "", pair
        name, value = name.strip(" \t"), value.strip(" \t")
        if not (name or value) or len(octets(name + value)) > COOKIE_BYTES_MAX:
            return None
        said = _attributes(attributes)
        cookie = Cookie(
            name, value, host, is_secure="secure" in said, is_http_only="httponly" in said
        )
        if cookie.is_secure and not is_secure:
            return None
        if not self._take_domain(cookie, said.get("domain", ""), host):
            return None
        at = said.get("path", "")
        cookie.path = at if at.startswith("/") else _directory_of(path)
        cookie.expires_at = _expiry(said)
        if (same := said.get("samesite", "").lower()) in ("strict", "lax", "none"):
            cookie.same_site = same
        return cookie if _keeps_prefix(cookie, has_path=at == "/") else None

    def _take_domain(self, cookie: Cookie, said: str, host: str) -> bool:
        domain = said.removeprefix(".").lower()
        if not domain or domain == host:
            # Its host, and with a Domain those below; an address has none below.
            is_registry = self._is_public_suffix is not None and self._is_public_suffix(host)
            cookie.is_host_only = not domain or _is_address(host) or is_registry
            return True
        if not _is_below(host, domain) or _is_address(host):
            return False
        if self._is_public_suffix is None:
            return True  # for its host only
        if self._is_public_suffix(domain):
            return False
        cookie.domain, cookie.is_host_only = domain, False
        return True

    def header(self, host: str, path: str, is_secure: bool, *, is_own: bool = True) -> str:
        """``Cookie`` of a request; empty if there is none to be sent.

        ``is_own``: credentials of the application are for its origin, and so are cookies for no host.
        """
        if not self._kept:
            return ""
        now = time.time()
        with self._lock:
            for key in [k for k, c in self._kept.items() if c.expires_at and c.expires_at <= now]:
                del self._kept[key]
            sent = [
                one
                for one in self._kept.values()
                if (is_own or one.domain is not None) and one.is_for(host, path, is_secure)
            ]
        # Longer paths first, then older ones (§5.8.3).
        sent.sort(key=lambda one: (-len(one.path), one.number))
        return "; ".join(f"{one.name}={one.value}" if one.name else one.value for one in sent)

    def set(self, name: str, value: str, *, domain: str | None = None, path: str = "/") -> None:
        """Keep a cookie of the application's: for one host, or for all that are called.

        Raises:
            ValueError: It cannot be sent.
        """
        if (
            any(c <= " " or c in ';,"\\' or c >= "\x7f" for c in name + value)
            or "=" in name
            or not name
        ):
            raise ValueError(
                f"no cookie can be {name!r}={value!r}: encode what is not a letter or digit"
            )
        with self._lock:
            self._number += 1
            key = (name, domain, domain is not None, path)
            self._kept[key] = Cookie(
                name, value, domain, path, is_host_only=domain is not None, number=self._number
            )

    def all(self) -> list[Cookie]:
        """The cookies with their attributes."""
        with self._lock:
            return list(self._kept.values())

    def __getitem__(self, name: str) -> str:
        for cookie in self.all():
            if cookie.name == name:
                return cookie.value
        raise KeyError(name)

    def __setitem__(self, name: str, value: str) -> None:
        self.pop(name, None)
        self.set(name, value)

    def __delitem__(self, name: str) -> None:
        with self._lock:
            keys = [key for key in self._kept if key[0] == name]
            for key in keys:
                del self._kept[key]
        if not keys:
            raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(cookie.name for cookie in self.all()))

    def __len__(self) -> int:
        return len({cookie.name for cookie in self.all()})

    def __repr__(self) -> str:
        return f"CookieJar({list(self)!r})"


def _attributes(attributes: list[str]) -> dict[str, str]:
    said: dict[str, str] = {}
    for attribute in attributes:
        name, _, value = attribute.partition("=")
        name, value = name.strip(" \t").lower(), value.strip(" \t")
        if len(value) <= ATTRIBUTE_BYTES_MAX:
            said[name] = value
    return said


def octets(text: str) -> bytes:
    """The bytes that a text was read from, as it is sent again."""
    return text.encode("utf-8", "surrogateescape")


def _is_within(path: str, of_cookie: str) -> bool:
    """Whether a path is that of a cookie, or below it (§5.1.4)."""
    return path == of_cookie or (
        path.startswith(of_cookie) and (of_cookie.endswith("/") or path[len(of_cookie)] == "/")
    )


def _is_below(host: str, domain: str) -> bool:
    return host.endswith("." + domain)


def _overlap(one: str | None, other: str | None) -> bool:
    """Whether hosts of one domain are hosts of the other."""
    if one is None or other is None:
        return False
    return one == other or _is_below(one, other) or _is_below(other, one)


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def _directory_of(path: str) -> str:
    """The path of a cookie that names none (§5.1.4)."""
    return path.partition("?")[0].rpartition("/")[0] or "/"


def _keeps_prefix(cookie: Cookie, *, has_path: bool) -> bool:
    """Whether the attributes are those that the name promises (§4.1.3), in any case of letters."""
    name = (cookie.name or cookie.value).lower()
    if cookie.same_site == "none" and not cookie.is_secure:
        return False
    if name.startswith("__host-"):
        return bool(cookie.name) and cookie.is_secure and cookie.is_host_only and has_path
    if name.startswith("__secure-"):
        return bool(cookie.name) and cookie.is_secure
    return True


def _expiry(said: dict[str, str]) -> float | None:
    latest = time.time() + LIFETIME_MAX_S
    age = said.get("max-age", "")
    if age.removeprefix("-").isdecimal() and age.isascii():
        seconds = -1 if age.startswith("-") else int(age[:12])
        return min(time.time() + seconds, latest) if seconds > 0 else 0.0
    if "expires" in said and (date := cookie_date(said["expires"])) is not None:
        return min(date, latest)
    return None


_MONTHS: Final = (
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
)


def cookie_date(text: str) -> float | None:
    """A date as servers write them (§5.1.1), in seconds since the epoch; ``None`` if it is none."""
    clock: list[int] | None = None
    day: int | None = None
    month: int | None = None
    year: int | None = None
    for token in _tokens(text):
        parts = token.split(":")
        digits = token[: len(token) - len(token.lstrip("0123456789"))]
        if clock is None and len(parts) == 3 and all(_digits(p) for p in parts):
            clock = [int(_digits(p)) for p in parts]
        elif day is None and 1 <= len(digits) <= 2 and ":" not in token:
            day = int(digits)
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and 2 <= len(digits) <= 4:
            year = int(digits)
    if clock is None or day is None or month is None or year is None:
        return None
    if year <= 99:
        year += 1900 if year >= 70 else 2000
    try:
        return datetime(year, month, day, *clock, tzinfo=UTC).timestamp() if year >= 1601 else None
    except ValueError:
        return None


def _digits(text: str) -> str:
    """The one or two digits that a part of a time begins with."""
    count = 0
    while count < len(text) and text[count] in "0123456789":
        count += 1
    return text[:count] if 1 <= count <= 2 else ""


def _tokens(text: str) -> list[str]:
    """Runs of what is no delimiter of dates."""
    return "".join(c if c.isalnum() or c == ":" or c > "\x7f" else " " for c in text).split()
