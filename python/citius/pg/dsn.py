"""Where a database is and who logs in: ``postgresql://`` URLs, ``key=value`` strings, ``PG*`` variables."""

from __future__ import annotations

import getpass
import os
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    @property
    def address(self) -> str | tuple[str, int]:
        """The path of a Unix socket, or host and port."""
        if self.host.startswith("/"):
            return f"{self.host}/.s.PGSQL.{self.port}"
        return self.host, self.port

    def __str__(self) -> str:
        where = self.address if isinstance(self.address, str) else f"{self.host}:{self.port}"
        return f"database {self.database!r} at {where} as {self.user!r}"


_VARIABLES = {
    "host": "PGHOST",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "dbname": "PGDATABASE",
    "sslmode": "PGSSLMODE",
    "application_name": "PGAPPNAME",
    "connect_timeout": "PGCONNECT_TIMEOUT",
    "options": "PGOPTIONS",
}
# What libpq itself does with them; all others are parameters of the session.
_OWN = {"host", "port", "user", "password", "dbname", "sslmode", "connect_timeout"}


def parse(dsn: str, environ: Mapping[str, str] = os.environ) -> Target:
    """Read a DSN; what it does not say comes from ``PG*`` variables, as with libpq.

    Raises:
        ConfigError: It cannot be read, or asks for something that is not there.
    """
    given = _of_url(dsn) if "://" in dsn else _of_pairs(dsn)
    values = {
        name: environ[variable] for name, variable in _VARIABLES.items() if variable in environ
    }
    values |= given
    if (mode := values.get("sslmode", "prefer")) not in ("disable", "allow", "prefer"):
        raise ConfigError(
            f"sslmode={mode}: citius.pg does not speak TLS yet; use a Unix socket or a private network with "
            "sslmode=disable, or asyncpg or psycopg"
        )
    user = values.get("user") or getpass.getuser()
    try:
        port = int(values.get("port", "5432"))
        timeout_s = float(values.get("connect_timeout", "10"))
    except ValueError as error:
        raise ConfigError(f"DSN of PostgreSQL: {error}") from None
    return Target(
        host=values.get("host") or "localhost",
        port=port,
        user=user,
        database=values.get("dbname") or user,
        password=values.get("password"),
        parameters=tuple((k, v) for k, v in values.items() if k not in _OWN),
        connect_timeout_s=timeout_s,
    )


def _of_url(dsn: str) -> dict[str, str]:
    try:
        url = urlsplit(dsn)
        port = url.port
    except ValueError:
        # Its text can hold a part of the password.
        raise ConfigError(
            "DSN of PostgreSQL: the URL cannot be read; in a password write / # ? @ : as %2F %23 %3F %40 %3A"
        ) from None
    if url.scheme not in ("postgresql", "postgres"):
        raise ConfigError(f"DSN of PostgreSQL: expected postgresql://…, got {url.scheme}://…")
    if "," in url.netloc:
        raise ConfigError("DSN of PostgreSQL: citius.pg takes one host")
    values: dict[str, str] = {}
    for name, value in (
        ("host", url.hostname),
        ("port", str(port) if port is not None else None),
        ("user", url.username),
        ("password", url.password),
        ("dbname", url.path.removeprefix("/")),
    ):
        if value:
            values[name] = unquote(value)
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        values[{"database": "dbname"}.get(name, name)] = value
    return values


def _of_pairs(dsn: str) -> dict[str, str]:
    values: dict[str, str] = {}
    try:
        words = shlex.split(dsn)
    except ValueError as error:
        raise ConfigError(f"DSN of PostgreSQL: {error}") from None
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            # Without the word: it can be a part of the password.
            raise ConfigError("DSN of PostgreSQL: expected postgresql://… or key=value pairs")
        values[name] = value
    return values
