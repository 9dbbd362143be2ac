"""Where a database is and who logs in: ``postgresql://`` URLs, ``key=value`` strings, variables, files.

As with libpq: what the DSN does not say comes from the service file, then from ``PG*`` variables; a
password that none of them says from ``~/.pgpass``.
"""

from __future__ import annotations

import getpass
import os
import socket
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote

from citius.errors import ConfigError
from citius.observability import logging
from citius.observability.clients import Client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Verification = Literal["off", "authority", "full"]
_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_ATTRIBUTES = ("any", "read-write", "read-only", "primary", "standby", "prefer-standby")


@dataclass(frozen=True, slots=True)
class TlsRules:
    """How a connection is secured."""

    mode: str = "prefer"
    verification: Verification = "off"
    authorities: tuple[str, ...] = ()
    identity: tuple[str, str] | None = None
    key_password: str | None = field(default=None, repr=False)
    version_min: str = "tls1.2"
    is_direct: bool = False
    """The handshake comes first, without a request for it: servers from 17 on."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server, a database and a login."""

    host: str
    """A name, an address, or the directory of a Unix socket."""
    port: int
    user: str
    database: str
    password: str | None = field(repr=False)
    parameters: tuple[tuple[str, str], ...] = ()
    connect_timeout_s: float = 10.0
    host_address: str | None = None
    """Where the host is, if its name is not to be resolved."""
    tls: TlsRules = TlsRules()
    channel_binding: str = "prefer"
    session_attributes: str = "any"
    is_any_order: bool = False
    """Of several servers each is as good as the others to begin with."""
    is_kept_alive: bool = True
    """Whether the system asks an idle server now and then (TCP's keep-alive)."""
    socket_options: tuple[tuple[int, int], ...] = ()
    """Options of TCP, and their values."""

    @property
    def is_local(self) -> bool:
        """Whether it is a Unix socket."""
        return self.host_address is None and self.host.startswith(("/", "@"))

    @property
    def address(self) -> str | tuple[str, int]:
        """The path of a Unix socket, or host and port."""
        if self.is_local:
            path = f"{self.host}/.s.PGSQL.{self.port}"
            return "\0" + path[1:] if path.startswith("@") else path
        return self.host_address or self.host, self.port

    @property
    def secured_tries(self) -> tuple[bool, ...]:
        """With TLS or without, in the order in which they are tried."""
        if self.is_local:
            return (False,)
        tries = {"disable": (False,), "allow": (False, True), "prefer": (True, False)}
        return tries.get(self.tls.mode, (True,))

    def client(self, label: str | None = None) -> Client:
        """What metrics and spans say of a client of this database."""
        host = self.host or "localhost"
        database = self.database or self.user
        return Client("pg", label or f"{host}:{self.port}/{database}", database, host, self.port)

    def __str__(self) -> str:
        where = self.address if isinstance(self.address, str) else f"{self.host}:{self.port}"
        return f"database {self.database!r} at {where} as {self.user!r}"


_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "dbname": "PGDATABASE",
    "service": "PGSERVICE",
    "application_name": "PGAPPNAME",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "options": "PGOPTIONS",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION",
    "sslnegotiation": "PGSSLNEGOTIATION",
    "channel_binding": "PGCHANNELBINDING",
    "target_session_attrs": "PGTARGETSESSIONATTRS",
    "load_balance_hosts": "PGLOADBALANCEHOSTS",
}
# They do not matter here: GSSAPI is not spoken, and nobody requires it; texts are UTF-8.
_IGNORED = {
    "client_encoding", "fallback_application_name", "gssdelegation", "gssencmode", "gsslib", "krbsrvname",
    "sslcompression", "sslsni",
}  # fmt: skip
# A system that does not have one ignores it, as libpq does.
_SOCKET_OPTIONS = {
    "keepalives_idle": "TCP_KEEPIDLE",
    "keepalives_interval": "TCP_KEEPINTVL",
    "keepalives_count": "TCP_KEEPCNT",
    "tcp_user_timeout": "TCP_USER_TIMEOUT",
}
# To ignore these would be less safe than was asked for, wherever it was.
_REFUSED = {
    "require_auth": "PGREQUIREAUTH",
    "requirepeer": "PGREQUIREPEER",
    "requiressl": "PGREQUIRESSL",
    "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
    "sslcertmode": "PGSSLCERTMODE",
    "sslcrl": "PGSSLCRL",
    "sslcrldir": "PGSSLCRLDIR",
    "replication": "",
    "sslkeylogfile": "",
}
# All others are parameters of the session.
_OWN = (
    (_VARIABLES.keys() - {"application_name", "options"})
    | _IGNORED
    | _SOCKET_OPTIONS.keys()
    | {"keepalives", "sslpassword"}
)


def parse(dsn: str, environ: Mapping[str, str] = os.environ) -> Target:
    """Read a DSN; of several servers the first.

    Raises:
        ConfigError: It cannot be read, or asks for something that is not there.
    """
    return parse_all(dsn, environ)[0]


def parse_all(dsn: str, environ: Mapping[str, str] = os.environ) -> list[Target]:
    """Read a DSN: the servers that it names, in its order.

    Raises:
        ConfigError: It cannot be read, or asks for something that is not there.
    """
    given = _of_url(dsn) if "://" in dsn else _of_pairs(dsn)
    values = {
        name: environ[variable] for name, variable in _VARIABLES.items() if variable in environ
    }
    if service := given.get("service", values.get("service")):
        values |= _of_service(service, environ)
    values |= given
    _refuse(values, environ)
    user = values.get("user") or getpass.getuser()
    database = values.get("dbname") or user
    try:
        timeout_s = float(values.get("connect_timeout", "10"))
        if timeout_s <= 0:
            # libpq: no limit. A pool that waits for ever is of no use.
            timeout_s = 60.0
    except ValueError as error:
        raise ConfigError(f"DSN of PostgreSQL: {error}") from None
    channel_binding = _one_of(values, "channel_binding", "prefer", ("disable", "prefer", "require"))
    attributes = _one_of(values, "target_session_attrs", "any", _ATTRIBUTES)
    balance = _one_of(values, "load_balance_hosts", "disable", ("disable", "random"))
    tls, options = _tls_rules(values, environ), tuple(_socket_options(values))
    passwords = _Passwords(values, environ)
    return [
        Target(
            host=host,
            port=port,
            user=user,
            database=database,
            password=values.get("password") or passwords.find(host, port, database, user),
            parameters=tuple((k, v) for k, v in values.items() if k not in _OWN),
            connect_timeout_s=timeout_s,
            host_address=address,
            tls=tls,
            channel_binding=channel_binding,
            session_attributes=attributes,
            is_any_order=balance == "random",
            is_kept_alive=values.get("keepalives") != "0",
            socket_options=options,
        )
        for host, address, port in _hosts(values)
    ]


def _refuse(values: dict[str, str], environ: Mapping[str, str]) -> None:
    """Refuse what would be less safe without its effect.

    Raises:
        ConfigError: Something is there of which this can be said.
    """
    asked = [name for name in _REFUSED if name in values]
    # An empty variable asks libpq for nothing either.
    asked += [variable for variable in _REFUSED.values() if environ.get(variable)]
    if asked:
        raise ConfigError(f"DSN of PostgreSQL: {asked[0]} is not supported by citius.pg")
    if values.get("gssencmode", environ.get("PGGSSENCMODE")) == "require":
        raise ConfigError("DSN of PostgreSQL: gssencmode=require is not supported by citius.pg")
    if "ssl" in values:
        raise ConfigError(
            f"DSN of PostgreSQL: ssl={values['ssl']}: TLS is asked for by sslmode=require or stronger"
        )


def _one_of(values: dict[str, str], name: str, default: str, known: tuple[str, ...]) -> str:
    value = values.get(name) or default
    if value not in known:
        raise ConfigError(f"DSN of PostgreSQL: {name} is one of {', '.join(known)}; got {value!r}")
    return value


def _hosts(values: dict[str, str]) -> Iterator[tuple[str, str | None, int]]:
    hosts = (values.get("host") or "").split(",")
    addresses = (values.get("hostaddr") or "").split(",")
    ports = (values.get("port") or "").split(",")
    n = max(len(hosts), len(addresses))
    for what, found in (("hosts", hosts), ("addresses", addresses), ("ports", ports)):
        if len(found) not in (1, n):
            raise ConfigError(f"DSN of PostgreSQL: {n} servers and {len(found)} {what}")
    if len(hosts) != n or (len(addresses) != n and addresses != [""]):
        raise ConfigError("DSN of PostgreSQL: as many values of hostaddr as of host")
    for index in range(n):
        address = addresses[index] if len(addresses) == n else ""
        host = hosts[index] or address or "localhost"
        port = ports[index] if len(ports) == n else ports[0]
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ConfigError(f"DSN of PostgreSQL: a port is a number up to 65535, got {port!r}")
        yield host, address or None, int(port or "5432")


def _socket_options(values: dict[str, str]) -> Iterator[tuple[int, int]]:
    for name, option in _SOCKET_OPTIONS.items():
        value = values.get(name) or "0"
        if not (value.isascii() and value.isdigit()):
            raise ConfigError(f"DSN of PostgreSQL: {name} is a number, got {value!r}")
        number: int | None = getattr(socket, option, None)
        # 0 is the system's own value.
        if number is not None and int(value) > 0:
            yield number, int(value)


# --- TLS ---


def _tls_rules(values: dict[str, str], environ: Mapping[str, str]) -> TlsRules:
    mode = _one_of(values, "sslmode", "prefer", _MODES)
    negotiation = _one_of(values, "sslnegotiation", "postgres", ("postgres", "direct"))
    if negotiation == "direct" and mode in ("disable", "allow", "prefer"):
        raise ConfigError(
            f"sslnegotiation=direct and sslmode={mode}: sslmode=require or stronger is needed"
        )
    versions = {
        "": "tls1.2",
        "TLSv1": "tls1.2",
        "TLSv1.1": "tls1.2",
        "TLSv1.2": "tls1.2",
        "TLSv1.3": "tls1.3",
    }
    least = _one_of(values, "ssl_min_protocol_version", "", tuple(versions))
    root = values.get("sslrootcert") or _home_file(environ, "root.crt")
    verification: Verification = "off"
    if mode == "verify-full":
        verification = "full"
    elif mode == "verify-ca" or (mode == "require" and root):
        # `require` with authorities is what libpq takes for `verify-ca`.
        verification = "authority"
    if root == "system" and mode != "verify-full":
        raise ConfigError(f"sslrootcert=system and sslmode={mode}: sslmode=verify-full is needed")
    if verification != "off" and not root:
        raise ConfigError(
            f"sslmode={mode}: sslrootcert=FILE names the authorities that sign the server's certificate; "
            "sslrootcert=system means those of the system"
        )
    certificate = values.get("sslcert") or _home_file(environ, "postgresql.crt")
    key = values.get("sslkey") or _home_file(environ, "postgresql.key")
    if values.get("sslcert") and not key:
        raise ConfigError("sslcert without sslkey: a certificate is shown with its key")
    if mode == "disable":
        return TlsRules(mode)
    return TlsRules(
        mode,
        verification,
        (_system_authorities() if root == "system" else root,)
        if verification != "off" and root
        else (),
        (certificate, key) if certificate and key else None,
        values.get("sslpassword"),
        versions[least],
        negotiation == "direct",
    )


def _home_file(environ: Mapping[str, str], name: str) -> str | None:
    """A file that libpq takes if it is there."""
    home = environ.get("HOME")
    path = Path(home) / ".postgresql" / name if home else None
    return str(path) if path is not None and path.is_file() else None


def _system_authorities() -> str:
    import ssl

    for path in (
        ssl.get_default_verify_paths().cafile,
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/ssl/cert.pem",
    ):
        if path and Path(path).is_file():
            return path
    raise ConfigError(
        "sslrootcert=system: this system has no file of authorities where OpenSSL looks for it"
    )


# --- files ---


def _of_service(name: str, environ: Mapping[str, str]) -> dict[str, str]:
    home, system = environ.get("HOME"), environ.get("PGSYSCONFDIR", "/etc/postgresql-common")
    own = environ.get("PGSERVICEFILE") or (str(Path(home) / ".pg_service.conf") if home else "")
    for path in filter(None, (own, str(Path(system) / "pg_service.conf"))):
        try:
            text = Path(path).read_text()
        except OSError:
            continue
        section, values, is_found = "", dict[str, str](), False
        for line in map(str.strip, text.splitlines()):
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                is_found = is_found or section == name
            elif line and not line.startswith("#") and section == name:
                key, _, value = line.partition("=")
                values.setdefault(key.strip(), value.strip())
        if is_found:
            return values
    raise ConfigError(f"DSN of PostgreSQL: no service file has a service {name!r}")


# Where servers of Debian and those of PostgreSQL's own packages have their socket by default.
_SOCKET_FOLDERS = ("/var/run/postgresql", "/tmp")


class _Passwords:
    """``~/.pgpass``: lines of ``host:port:database:user:password``, each perhaps ``*``."""

    def __init__(self, values: dict[str, str], environ: Mapping[str, str]) -> None:
        home = environ.get("HOME")
        self._path = values.get("passfile") or (str(Path(home) / ".pgpass") if home else "")

    def find(self, host: str, *others: object) -> str | None:
        # As libpq does it: the socket of this machine is called so.
        wanted = ("localhost" if host in _SOCKET_FOLDERS else host, *others)
        for line in self._lines():
            *fields, password = _split_pgpass(line)
            if len(fields) == 4 and all(
                have in ("*", str(want)) for have, want in zip(fields, wanted, strict=True)
            ):
                return password
        return None

    def _lines(self) -> list[str]:
        if not self._path:
            return []
        path = Path(self._path)
        try:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode):
                return []
            if mode & 0o077:
                logging.warning(f"{path} is not used: others can read it (chmod 600 {path})")
                return []
            return [line for line in path.read_text().splitlines() if line and line[0] != "#"]
        except OSError:
            return []


def _split_pgpass(line: str) -> list[str]:
    r"""At colons; ``\:`` and ``\\`` are no separators. A password may have colons as they are."""
    fields, at = [""], 0
    while at < len(line):
        if line[at] == "\\" and at + 1 < len(line):
            at += 1
            fields[-1] += line[at]
        elif line[at] == ":" and len(fields) < 5:
            fields.append("")
        else:
            fields[-1] += line[at]
        at += 1
    return fields


# --- the DSN itself ---


def _of_url(dsn: str) -> dict[str, str]:
    scheme, _, rest = dsn.partition("://")
    if scheme not in ("postgresql", "postgres"):
        raise ConfigError(f"DSN of PostgreSQL: expected postgresql://…, got {scheme}://…")
    rest, _, query = rest.partition("?")
    netloc, _, path = rest.partition("/")
    login, _, places = netloc.rpartition("@")
    user, _, password = login.partition(":")
    hosts, ports = list[str](), list[str]()
    for place in places.split(","):
        host, port = place, ""
        bracket = place.rfind("]")
        if ":" in place[bracket + 1 :]:
            host, _, port = place.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        # None of them is shown: it can be a part of the password.
        is_name = bracket >= 0 or not any(sign in host for sign in "[]@:")
        if not is_name or (port and not port.isdigit()):
            raise _unreadable_url()
        hosts.append(unquote(host))
        ports.append(port)
    if "@" in login or "@" in path or "#" in dsn:
        raise _unreadable_url()
    values: dict[str, str] = {}
    for name, value in (
        ("host", ",".join(hosts)),
        ("port", ",".join(ports) if any(ports) else ""),
        ("user", unquote(user)),
        ("password", unquote(password)),
        ("dbname", unquote(path)),
    ):
        if value.strip(","):
            values[name] = value
    for pair in filter(None, query.split("&")):
        # As libpq does it: "+" is no space here.
        name, _, value = pair.partition("=")
        values[{"database": "dbname"}.get(unquote(name), unquote(name))] = unquote(value)
    if values.get("ssl") == "true":
        del values["ssl"]
        values.setdefault("sslmode", "require")
    return values


def _unreadable_url() -> ConfigError:
    return ConfigError(
        "DSN of PostgreSQL: the URL cannot be read; in a password write / # ? @ : as %2F %23 %3F %40 %3A"
    )


def _of_pairs(dsn: str) -> dict[str, str]:
    """``key = value``; a value with spaces is in single quotes, in which a backslash stands before one."""
    values: dict[str, str] = {}
    at, end = 0, len(dsn)

    def skip_spaces() -> None:
        nonlocal at
        while at < end and dsn[at].isspace():
            at += 1

    while True:
        skip_spaces()
        if at == end:
            return values
        start = at
        while at < end and dsn[at] != "=" and not dsn[at].isspace():
            at += 1
        name = dsn[start:at]
        skip_spaces()
        if at == end or dsn[at] != "=":
            # Without the word: it can be a part of the password.
            raise ConfigError("DSN of PostgreSQL: expected postgresql://… or key=value pairs")
        at += 1
        skip_spaces()
        is_quoted = at < end and dsn[at] == "'"
        at += is_quoted
        value = ""
        while at < end and not (dsn[at] == "'" if is_quoted else dsn[at].isspace()):
            at += dsn[at] == "\\" and at + 1 < end
            value += dsn[at]
            at += 1
        if is_quoted:
            if at == end:
                raise ConfigError("DSN of PostgreSQL: a quote is not closed")
            at += 1
        values[name] = value
