"""What several middleware say in the same way: ``Vary``, origins (RFC 6454), lists of tokens.

No regular expression and no ``urllib`` reads what clients send. Tests: tests/middleware/test_fields.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius._core import Request, Response

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}


def add_vary(response: Response, *names: str) -> None:
    """Say that the response depends on these fields of the request (RFC 9110 §12.5.5)."""
    headers = response.headers
    said = headers.get("vary")
    if said is None:
        headers.add("vary", ", ".join(names))
        return
    known = tokens(said)
    if "*" in known:
        return
    missing = [name for name in names if name not in known]
    if missing:
        headers["vary"] = ", ".join([said, *missing] if said else missing)


def tokens(value: str) -> list[str]:
    """The members of a list of tokens, in lower case."""
    return [part.strip().lower() for part in value.split(",") if part.strip()]


def listed(values: Iterable[str]) -> list[str]:
    """Values that an application gives; a text is a list of one, not of its characters."""
    return [values] if isinstance(values, str) else list(values)


class NamedRoutes:
    """Routes that a middleware names, by their paths as they are declared; a mount by its prefix."""

    __slots__ = ("option", "patterns")

    def __init__(self, option: str, patterns: Iterable[str]) -> None:
        """Take what the application gives to ``option``, such as ``CSRF(exempt=…)``."""
        self.option = option
        self.patterns = frozenset(listed(patterns))

    def __contains__(self, pattern: str | None) -> bool:
        return pattern is not None and self.name_of(pattern) is not None

    def name_of(self, pattern: str) -> str | None:
        """The name by which a route is meant, if it is."""
        for name in (pattern, pattern.removesuffix(BELOW_MOUNT) or "/"):
            if name in self.patterns:
                return name
        return None


BELOW_MOUNT = "/{_path:path}"
"""How the pattern of everything below the prefix of a mount ends."""


def is_token(name: str) -> bool:
    """Whether this is a method or a field name (RFC 9110 §5.6.2)."""
    return bool(name) and all(c.isascii() and (c.isalnum() or c in "!#$%&'*+-.^_`|~") for c in name)


def origin_of(request: Request) -> str:
    """The origin that a browser gives to pages of this host: ``https://shop.example``, no default port."""
    scheme, host = request.scheme, request.host.lower()
    name, separator, port = host.rpartition(":")
    if separator and port == _DEFAULT_PORTS.get(scheme) and not name.endswith(":"):
        host = name
    return f"{scheme}://{host}"


def check_origin(origin: str, what: str) -> str:
    """Return a configured origin as browsers write it; it may begin with ``*.`` after its scheme.

    Raises:
        ConfigError: It has a path, no scheme, or is no origin at all.
    """
    scheme, separator, host = origin.partition("://")
    wrong = not is_host(host.removeprefix("*."))
    # RFC 3986 §3.1; browser extensions have schemes with a hyphen.
    is_scheme = scheme[:1].isalpha() and all(c.isalnum() or c in "+-." for c in scheme)
    if not separator or not is_scheme or not host or wrong or not origin.isascii():
        raise ConfigError(
            f"{what}: expected an origin such as https://shop.example or https://*.shop.example, without "
            f"a path or a slash at its end, got {origin!r}"
        )
    name, separator, port = host.rpartition(":")
    if separator and port == _DEFAULT_PORTS.get(scheme.lower()):
        host = name
    return f"{scheme}://{host}".lower()


def is_host(text: str) -> bool:
    """Whether this is a host as requests have it: a name or an address, with or without a port."""
    if text[:1] == "[":  # an IPv6 address
        address, closing, port = text[1:].partition("]")
        is_name = bool(address and closing) and not set(address) - set("0123456789abcdefABCDEF:.")
    else:
        name, colon, digits = text.partition(":")
        port = colon + digits
        is_name = all(
            label.replace("-", "").replace("_", "").isalnum() for label in name.split(".")
        )
    is_port = not port or (port[0] == ":" and port[1:].isdecimal() and len(port) <= _PORT_CHARS)
    return text.isascii() and is_name and is_port


_PORT_CHARS = 6


class Origins:
    """A set of origins; ``https://*.shop.example`` has every host below ``shop.example``, not itself."""

    __slots__ = ("_exact", "_suffixes")

    def __init__(self, origins: list[str]) -> None:
        """Take origins that ``check_origin`` has returned, or ``null``."""
        self._exact = frozenset(origin for origin in origins if "://*." not in origin)
        split = [origin.split("*", 1) for origin in origins if "://*." in origin]
        self._suffixes = [(scheme, suffix) for scheme, suffix in split]

    def __contains__(self, origin: str) -> bool:
        if origin in self._exact:
            return True
        for scheme, suffix in self._suffixes:
            if origin.startswith(scheme) and origin.endswith(suffix):
                below = origin[len(scheme) : len(origin) - len(suffix)]
                # What a browser says has no further slash, but a client may say anything.
                if below and all(c.isalnum() or c in "-." for c in below) and below[0] != ".":
                    return True
        return False
