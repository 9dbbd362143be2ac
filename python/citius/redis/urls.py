"""Where Redis is and who logs in: ``redis://``, ``rediss://``, ``unix://`` and ``redis+sentinel://`` URLs.

The names of the query are those of redis-py. Tests: ``tests/redis/test_urls.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from citius._core import ClientTls
from citius.errors import ConfigError
from citius.observability.clients import Client

if TYPE_CHECKING:
    from collections.abc import Mapping

Verification = Literal["off", "authority", "full"]
_SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel")
_OPTIONS = (
    "db", "client_name", "ssl_cert_reqs", "ssl_check_hostname", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile",
    "ssl_password", "ssl_min_version", "sentinel_username", "sentinel_password",
)  # fmt: skip
_PORT, _SENTINEL_PORT = 6379, 26379


class Address(NamedTuple):
    """A host and a port, or with an empty host the path of a Unix socket."""

    host: str
    port: int
    path: str = ""

    @classmethod
    def of(cls, host: object, port: object) -> Address:
        """What a server says is the address of another one.

        Raises:
            ValueError: It is none.
        """
        if isinstance(host, str) and host and isinstance(port, (str, int)):
            number = int(port)
            if 0 < number < 65536:
                return cls(host, number)
        raise ValueError("no address of a server")

    def __str__(self) -> str:
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsRules:
    """How a connection is secured."""

    verification: Verification = "full"
    authorities: str | None = None
    identity: tuple[str, str] | None = None
    key_password: str | None = field(default=None, repr=False)
    version_min: str = "tls1.2"

    def load(self) -> ClientTls:
        """Read the files: each time, because certificates are renewed.

        Raises:
            ConfigError: A file cannot be used.
        """
        authorities = [self.authorities] if self.authorities else []
        if self.verification != "off" and not authorities:
            authorities = [_system_authorities()]
        try:
            return ClientTls(
                self.verification,
                authorities=authorities,
                identity=self.identity,
                password=self.key_password,
                version_min=self.version_min,
            )
        except ValueError as error:
            raise ConfigError(f"TLS with Redis: {error}") from None


@dataclass(frozen=True, slots=True)
class Target:
    """Servers, a login and a database."""

    addresses: tuple[Address, ...]
    """Each is as good as the others; of Sentinel those of the sentinels."""
    user: str | None
    password: str | None = field(repr=False)
    database: int = 0
    client_name: str = ""
    tls: TlsRules | None = None
    service: str | None = None
    """The name of the master that sentinels watch."""
    sentinel_user: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    """Sentinels have users and passwords of their own."""

    def client(self, label: str | None) -> Client:
        """What metrics and spans say of a client of this database."""
        first = self.addresses[0]
        host = first.path or first.host
        where = self.service or (first.path or f"{host}:{first.port}")
        label = label or f"{where}/{self.database}"
        return Client("redis", label, str(self.database), host, first.port)

    def at(self, address: Address) -> Target:
        """A copy of this target with one address."""
        return replace(self, addresses=(address,), service=None)

    def __str__(self) -> str:
        where = ", ".join(map(str, self.addresses))
        return f"master {self.service} of {where}" if self.service else where


def parse(url: str) -> Target:
    """The target of a URL.

    Raises:
        ConfigError: It is none; the message does not show a password.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        # What stands there may be a password.
        raise ConfigError(
            f"expected a URL of Redis, which begins with {', '.join(f'{name}://' for name in _SCHEMES)}"
        )
    try:
        # Several hosts are no authority of a URL, which the library would refuse.
        end = min((rest.index(sign) for sign in "/?#" if sign in rest), default=len(rest))
        netloc = rest[:end]
        parts = urlsplit(f"//{rest[end:]}")
        options = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise ConfigError(f"{scheme}:// URL of Redis cannot be read") from None
    if parts.fragment:
        raise ConfigError(f"{scheme}:// URL of Redis has a #; in a password it is written %23")
    if unknown := options.keys() - set(_OPTIONS):
        raise ConfigError(
            f"unknown option {min(unknown)!r} in the URL of Redis; there are {', '.join(_OPTIONS)}"
        )
    login, _, hosts = netloc.rpartition("@")
    user, has_password, password = login.partition(":")
    target = Target(
        addresses=(Address("", 0, unquote(parts.path)),)
        if scheme == "unix"
        else _addresses(scheme, hosts),
        user=unquote(user) or None,
        password=unquote(password) if has_password else None,
        client_name=options.get("client_name", ""),
        tls=_tls(options) if scheme.startswith("rediss") else None,
    )
    if scheme == "unix" and not target.addresses[0].path:
        raise ConfigError("unix:// needs a path: unix:///run/redis.sock")
    return replace(target, **_database(scheme, parts, options))


def _addresses(scheme: str, hosts: str) -> tuple[Address, ...]:
    default = _SENTINEL_PORT if scheme.endswith("sentinel") else _PORT
    found: list[Address] = []
    for host in hosts.split(","):
        try:
            parts = urlsplit(f"//{host}")
            found.append(Address(parts.hostname or "localhost", parts.port or default))
        except ValueError:
            raise ConfigError(
                "expected host:port in the URL of Redis; in a password other signs are written as %XX"
            ) from None
    return tuple(found)


def _database(scheme: str, parts: SplitResult, options: Mapping[str, str]) -> dict[str, object]:
    path = "" if scheme == "unix" else parts.path.strip("/")
    found: dict[str, object] = {}
    if scheme.endswith("sentinel"):
        service, _, path = path.partition("/")
        if not service:
            raise ConfigError(
                "redis+sentinel:// needs the name of the master: redis+sentinel://host/mymaster"
            )
        found["service"] = unquote(service)
        found["sentinel_user"] = options.get("sentinel_username") or None
        found["sentinel_password"] = options.get("sentinel_password")
    elif "sentinel_username" in options or "sentinel_password" in options:
        raise ConfigError(
            "sentinel_username and sentinel_password are for redis+sentinel:// and rediss+sentinel://"
        )
    number = options.get("db", path) or "0"
    if not number.isdecimal() or int(number) >= 2**31:
        # What stands there may be a part of a password.
        raise ConfigError("expected the number of a database: redis://host/3")
    return found | {"database": int(number)}


def _tls(options: Mapping[str, str]) -> TlsRules:
    required = options.get("ssl_cert_reqs", "required")
    checks_host = options.get("ssl_check_hostname", "true").lower()
    if required not in ("required", "none"):
        raise ConfigError(f"ssl_cert_reqs is required or none, got {required!r}")
    if checks_host not in ("true", "false"):
        raise ConfigError(f"ssl_check_hostname is true or false, got {checks_host!r}")
    verification: Verification = "full" if checks_host == "true" else "authority"
    certificate, key = options.get("ssl_certfile"), options.get("ssl_keyfile")
    if bool(certificate) != bool(key):
        raise ConfigError("ssl_certfile and ssl_keyfile belong together")
    return TlsRules(
        verification="off" if required == "none" else verification,
        authorities=options.get("ssl_ca_certs"),
        identity=(certificate, key) if certificate and key else None,
        key_password=options.get("ssl_password"),
        version_min=options.get("ssl_min_version", "tls1.2").lower().replace("tlsv", "tls"),
    )


def _system_authorities() -> str:
    import ssl  # loads OpenSSL

    found = ssl.get_default_verify_paths().cafile
    for path in (found, "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"):
        if path and Path(path).is_file():
            return path
    raise ConfigError(
        "TLS with Redis: this system has no file of authorities; say ssl_ca_certs=FILE in the URL"
    )
