"""What a client is configured with: time limits, limits, retries, hedging, circuit breakers, proxies.

All are values, checked when they are made; the parts that act on them are in ``retries.py``, ``guards.py``
and the extension.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from citius.errors import ConfigError
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Deadlines: TypeAlias = tuple[
        float | None, float | None, float | None, float | None, float | None
    ]
    """Seconds for connecting, reading, writing, waiting for a connection, and in all."""

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY"})
"""Methods that may be carried out twice (RFC 9110 §9.2.2)."""


def given(**options: object) -> list[str]:
    """Those that were given, as they are written."""
    return [f"{name}=" for name, value in options.items() if value]


def encoded(fields: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    """Fields as they are sent.

    Raises:
        ConfigError: One has characters beyond Latin-1, which fields cannot have (RFC 9110 §5.5).
    """
    try:
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
    except UnicodeEncodeError as error:
        raise ConfigError(f"a field has characters beyond Latin-1: {error.object!r}") from None


class Unset:
    """An option that was not given."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


@known_options
@dataclass(frozen=True, slots=True, init=False)
class Timeout:
    """How long parts of a request may take, in seconds; ``None``: as long as they take.

    ``Timeout(2.0)`` sets ``connect``, ``read``, ``write`` and ``pool``; names given beside it are set apart.

    Args:
        default: What is not given by name.
        connect: Name resolution, connecting and TLS.
        read: Each wait for the next part of the response.
        write: Each wait until the peer takes more of the request.
        pool: Waiting for a connection, where limits are reached.
        total: The whole exchange, with redirects, retries, and the content unless it is streamed.
    """

    connect: float | None
    read: float | None
    write: float | None
    pool: float | None
    total: float | None

    def __init__(
        self,
        default: float | Unset | None = UNSET,
        *,
        connect: float | Unset | None = UNSET,
        read: float | Unset | None = UNSET,
        write: float | Unset | None = UNSET,
        pool: float | Unset | None = UNSET,
        total: float | None = None,
    ) -> None:
        given = {"connect": connect, "read": read, "write": write, "pool": pool}
        for name, value in given.items():
            if isinstance(value, Unset):
                value = _DEFAULTS[name] if isinstance(default, Unset) else default
            object.__setattr__(self, name, _seconds(name, value))
        object.__setattr__(self, "total", _seconds("total", total))

    @property
    def deadlines(self) -> Deadlines:
        """The values in the order of the seam."""
        return self.connect, self.read, self.write, self.pool, self.total


_DEFAULTS: Final = {"connect": 5.0, "read": 30.0, "write": 30.0, "pool": 5.0}


def _seconds(name: str, value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise ConfigError(f"Timeout({name}=…) must be more than 0 or None, got {value}")
    return value


@known_options
@dataclass(frozen=True, slots=True)
class Limits:
    """How much a client takes at most.

    Args:
        connections_max: Connections in all.
        connections_per_origin_max: Connections to one origin.
        requests_per_origin_max: Requests that are under way to one origin; others wait, for
            ``Timeout.pool`` at most. ``None``: as many as there are connections or streams.
        keepalive_s: How long a connection may be idle.
        body_bytes_max: Bytes of a response that is not streamed, decompressed. A larger one is ``TooLarge``.
    """

    connections_max: int = 1000
    connections_per_origin_max: int = 100
    requests_per_origin_max: int | None = None
    keepalive_s: float = 60.0
    body_bytes_max: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name in ("connections_max", "connections_per_origin_max", "body_bytes_max"):
            if getattr(self, name) < 1:
                raise ConfigError(f"Limits({name}=…) must be at least 1, got {getattr(self, name)}")
        if self.requests_per_origin_max is not None and self.requests_per_origin_max < 1:
            raise ConfigError(
                f"Limits(requests_per_origin_max=…) must be at least 1, got {self.requests_per_origin_max}"
            )
        if not self.keepalive_s >= 0:
            raise ConfigError(
                f"Limits(keepalive_s=…) must be 0 or more, got {self.keepalive_s}; 0 keeps none"
            )


@known_options
@dataclass(frozen=True, slots=True)
class Retry:
    """Requests that fail are sent again, where that is allowed and within a budget.

    A request is repeated if nothing of it was sent, or if its method is idempotent or it has the field
    ``Idempotency-Key``; and if its content can be sent again. The wait doubles with each attempt, and is a
    random part of that (full jitter). ``Retry-After`` of a response is kept to.

    Args:
        attempts_max: Attempts in all.
        statuses: Statuses of responses after which a request is sent again.
        backoff_s: The longest wait before the second attempt.
        backoff_max_s: The longest wait before any.
        retry_after_max_s: A response that asks to wait for longer is returned as it is.
        budget_ratio: Retries per request, over many: it keeps a service that is down from getting
            ``attempts_max`` times its load.
        budget_min: Retries that are allowed before there were requests to count.
    """

    attempts_max: int = 3
    statuses: Collection[int] = (429, 502, 503, 504)
    backoff_s: float = 0.1
    backoff_max_s: float = 5.0
    retry_after_max_s: float = 30.0
    budget_ratio: float = 0.2
    budget_min: int = 10

    def __post_init__(self) -> None:
        if self.attempts_max < 1:
            raise ConfigError(f"Retry(attempts_max=…) must be at least 1, got {self.attempts_max}")
        for name in (
            "backoff_s",
            "backoff_max_s",
            "retry_after_max_s",
            "budget_ratio",
            "budget_min",
        ):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"Retry({name}=…) must be 0 or more, got {getattr(self, name)}")


@known_options
@dataclass(frozen=True, slots=True)
class Hedge:
    """An idempotent request without a response after ``after_s`` is sent once more; the first one counts.

    The other attempt is cancelled. Streamed responses and uploads are not hedged.

    Args:
        after_s: When; about the duration that 95 of 100 requests keep to.
        budget_ratio: Second attempts per request, over many.
    """

    after_s: float
    budget_ratio: float = 0.1

    def __post_init__(self) -> None:
        if not self.after_s > 0:
            raise ConfigError(f"Hedge(after_s=…) must be more than 0, got {self.after_s}")
        if not 0 < self.budget_ratio <= 1:
            raise ConfigError(
                f"Hedge(budget_ratio=…) must be above 0 and at most 1, got {self.budget_ratio}"
            )


@known_options
@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """An origin that fails is left alone for a while: requests to it are ``CircuitOpen`` at once.

    Args:
        failures: Failures in a row that open it: errors of the connection, time-outs, and ``statuses``.
        open_s: How long; then ``probes`` requests are let through, and the first response closes it.
        probes: Requests at once that find out.
        statuses: Statuses that are failures.
    """

    failures: int = 5
    open_s: float = 10.0
    probes: int = 1
    statuses: Collection[int] = (500, 502, 503, 504)

    def __post_init__(self) -> None:
        for name in ("failures", "probes"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"CircuitBreaker({name}=…) must be at least 1, got {getattr(self, name)}"
                )
        if not self.open_s > 0:
            raise ConfigError(f"CircuitBreaker(open_s=…) must be more than 0, got {self.open_s}")


@known_options
@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: ``http://`` or ``socks5://``; user name and password may be in the URL.

    They are sent to the proxy only, as the target's go to the target only.
    """

    url: str

    def __post_init__(self) -> None:
        scheme = self.url.partition("://")[0].lower()
        if scheme == "https":
            raise ConfigError(
                "Proxy: connections to a proxy are not encrypted by TLS: give its URL of http"
            )
        if scheme not in ("http", "socks5", "socks5h"):
            raise ConfigError(
                f"Proxy: expected a URL of http or socks5, got one of {scheme[:20]!r}"
            )

    def __repr__(self) -> str:
        """The proxy without its password."""
        return f"Proxy({self.url.rpartition('@')[2]!r})"


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Which addresses may be called; checked after names are resolved, for redirects too.

    Args:
        is_allowed: Gets the address as a text, and the port.
        name: What messages call it.
    """

    is_allowed: Callable[[str, int], bool]
    name: str


def check_ways(
    app: object,
    transport: object,
    proxy: object,
    unix_path: str | None,
    has_rule: bool,
    has_proxy: bool,
) -> None:
    """Refuse options that name two ways to a peer, or a rule that the way does not allow to check.

    Raises:
        ConfigError: They contradict each other.
    """
    if app is not None and transport is not None:
        raise ConfigError("give one of app= and transport=")
    if (app is not None or transport is not None) and (proxy or unix_path or has_rule):
        raise ConfigError(
            "proxy=, unix_path= and allow= are about connections, and app= and transport= make none"
        )
    if has_rule and has_proxy:
        raise ConfigError(
            "allow= cannot be checked where a proxy resolves names: give proxy=None and trust_env=False"
        )
    if unix_path is not None and (proxy is not None or has_rule):
        raise ConfigError(
            "unix_path= leads to one socket: proxy= and allow= have no meaning with it"
        )


def check_tls(verify: object, cert: object) -> None:
    """Refuse ``verify=`` and ``cert=`` of other types, and files that are missing.

    Raises:
        ConfigError: One of them cannot be used.
    """
    if not isinstance(verify, bool | str):
        raise ConfigError(
            "verify= is True, False or a file of certificates; the extension does not use Python's ssl, "
            f"so it cannot take a {type(verify).__name__}"
        )
    files = [verify] if isinstance(verify, str) else []
    if cert is not None:
        if not isinstance(cert, tuple):
            raise ConfigError("cert= is (certificate file, key file) or (…, …, password)")
        files += cert[:2]
    for file in files:
        if not os.path.isfile(file):
            raise ConfigError(f"there is no file {file!r} (verify=, cert=)")
