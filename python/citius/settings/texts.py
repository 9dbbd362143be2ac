"""What the texts of single options mean, beyond their kind: codings, mounts, header fields, networks.

Text in, values out; nothing is looked up outside of the text. Mistakes are ``ConfigError`` with the option's
name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS: Final = {"br": (0, 11), "zstd": (1, 22), "gzip": (1, 9)}


def parse_coding(text: str) -> tuple[str, int | None]:
    """A coding and its level: ``br`` or ``br=6``.

    Raises:
        ConfigError: There is no such coding, or it has no such level.
    """
    name, equals, level = text.partition("=")
    if name not in _LEVELS:
        raise ConfigError(f"compress: expected br, zstd or gzip, got {name!r}")
    if not equals:
        return name, None
    lowest, highest = _LEVELS[name]
    if not level.isdecimal() or not lowest <= int(level) <= highest:
        raise ConfigError(
            f"compress: expected a level of {name} from {lowest} to {highest}, got {level!r}"
        )
    return name, int(level)


def http_versions(text: str, option: str = "http") -> frozenset[str]:
    """The versions of HTTP in a text such as ``1,2,3``; between an address and its end ``+`` parts them too.

    Raises:
        ConfigError: One of them is none, or it is HTTP/3 alone, which clients find by the others.
    """
    if text in ("auto", "h11", "httptools"):
        return frozenset("12")
    versions = frozenset(part.strip() for part in text.replace("+", ",").split(","))
    if not versions <= frozenset("123"):
        raise ConfigError(
            f"{option}: expected auto, or some of 1, 2 and 3 such as 1,2,3, got {text!r}"
        )
    if versions == frozenset("3"):
        raise ConfigError(
            f"{option}: HTTP/3 alone cannot be served, because clients learn of it over TCP; use 1,2,3"
        )
    return versions


def over_tcp(versions: frozenset[str]) -> Literal["auto", "1", "2"]:
    """Those of the versions that are spoken over TCP, as a reactor is told."""
    if versions >= {"1", "2"}:
        return "auto"
    return "2" if "2" in versions else "1"


FORWARDED_HEADERS: Final = (
    "forwarded", "forwarded-host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host",
    "x-forwarded-port", "x-forwarded-prefix",
)  # fmt: skip
"""What proxies say, as far as it is understood."""


def parts(texts: Sequence[str]) -> tuple[str, ...]:
    """The items of texts that may hold several, with commas between them."""
    return tuple(part.strip().lower() for text in texts for part in text.split(",") if part.strip())


def header_fields(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Names and values of header lines."""
    pairs = (text.partition(":") for text in texts)
    return [(name.strip().lower(), value.strip()) for name, _, value in pairs]


def check_header_field(name: str, value: str) -> None:
    """Refuse a field that cannot be sent, or that the server writes itself.

    Raises:
        ConfigError: It is one of these.
    """
    if set(name) - _TOKEN:
        raise ConfigError(f"header: {name!r} is no name of a header")
    if any((char < " " and char != "\t") or char == "\x7f" for char in value):
        raise ConfigError(f"header: the value of {name} has a control character, got {value!r}")
    if name in _SERVERS_OWN:
        raise ConfigError(f"header: the server itself sets {name} for each response; leave it out")


def check_request_id(name: str) -> None:
    """Refuse names, in lower case, of fields that mean something else in requests or responses.

    Raises:
        ConfigError: It is one of these, or no name at all.
    """
    if not name or set(name) - _TOKEN:
        raise ConfigError(f"request_id: {name!r} is no name of a header")
    if name in _SERVERS_OWN or name in _MEANINGFUL or name.startswith(_MEANINGFUL_PREFIXES):
        raise ConfigError(
            f"request_id: {name} has a meaning of its own; give a header for ids, such as x-request-id"
        )


_MEANINGFUL: Final = frozenset(
    ("age", "allow", "alt-svc", "authorization", "cache-control", "cookie", "etag", "expect", "expires",
     "forwarded", "from", "host", "last-modified", "link", "location", "origin", "range", "referer",
     "retry-after", "server", "set-cookie", "strict-transport-security", "traceparent",
     "traceresponse", "tracestate", "user-agent", "vary", "via", "www-authenticate")
)  # fmt: skip
_MEANINGFUL_PREFIXES: Final = (
    "accept", "access-control-", "content-", "if-", "proxy-", "sec-", "x-forwarded-",
)  # fmt: skip
"""Fields that clients, caches and applications act on: an id is no value for them, and theirs is no id."""

_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_SERVERS_OWN: Final = frozenset(
    ("connection", "content-length", "date", "keep-alive", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
"""Fields that frame a response, or that describe its connection or its time."""


def is_network(text: str) -> bool:
    """Whether ``text`` is an address, a network, ``unix`` or ``*``."""
    if text in ("*", "unix", "127.0.0.1", "::1"):
        return True
    import ipaddress  # a third of a megabyte that only other networks need

    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "%" not in text


def is_octal(text: str) -> bool:
    """Whether ``text`` is a mask of file modes."""
    return 1 <= len(text) <= 4 and not set(text) - set("01234567") and int(text, 8) <= 0o777


def parse_mount(text: str) -> tuple[str, str]:
    """Prefix and directory of ``/assets=path/to/directory``.

    Raises:
        ConfigError: It is not of that form.
    """
    prefix, equals, directory = text.partition("=")
    if not equals or not directory or not prefix.startswith("/"):
        raise ConfigError(
            f"static: expected /prefix=directory, such as /assets=public, got {text!r}"
        )
    return prefix.rstrip("/"), directory


HSTS = "strict-transport-security"
"""The header by which browsers are told to use HTTPS only (RFC 6797)."""


def hsts_value(text: str) -> str:
    """The value of the header, of seconds and its directives.

    Raises:
        ConfigError: There are no seconds, or other directives.
    """
    seconds, *rest = [part.strip() for part in text.split(";")]
    known = {"includesubdomains": "includeSubDomains", "preload": "preload"}
    if not (seconds.isascii() and seconds.isdigit()) or any(
        part.lower() not in known for part in rest
    ):
        raise ConfigError(
            f"hsts: expected seconds, and behind a semicolon includeSubDomains or preload, got {text!r}"
        )
    return "; ".join([f"max-age={seconds}", *(known[part.lower()] for part in rest)])


def check_host_name(name: str, option: str) -> None:
    """Refuse what cannot be the name of a host in a certificate.

    Raises:
        ConfigError: It is a wildcard, an address, has other characters, or is too long.
    """
    if name.startswith("*."):
        raise ConfigError(
            f"{option}: {name}: authorities issue certificates with wildcards only to those who write DNS "
            "records; name each domain, or give a certificate with ssl_certfile"
        )
    labels = name.split(".")
    allowed = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
    is_name = len(labels) > 1 and len(name) <= 253 and not labels[-1].isdigit()
    if not is_name or any(
        not 0 < len(label) < 64 or label[0] == "-" or label[-1] == "-" or not set(label) <= allowed
        for label in labels
    ):
        raise ConfigError(
            f"{option}: expected a domain in lower case, such as example.org (other alphabets as xn--…), "
            f"got {name!r}"
        )
