"""TLS as the options ask for it: certificates are loaded, checked and complained of.

They are loaded before there are sockets, so that a mistake is known at once, and again by each worker while
it may still read keys that only root can (``--user``). From then on the reactor looks at the files by itself.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from citius._core import LIMITS, Tls, development_certificate
from citius.errors import ConfigError
from citius.observability import logging
from citius.process import paths
from citius.process.privileges import are_split

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from citius._core import TlsTickets
    from citius.settings.config import Config

_PROTOCOLS = ("h2", "http/1.1")
"""What is spoken above TLS, the best first (RFC 7301), where a listener does not speak one version alone."""

_NEEDS_NO_TLS = ("tls://", "unix:", "fd://", "127.", "localhost:", "[::1]:")
"""Addresses of procedures that have it, stay on this machine, or were chosen by another process."""

_CLIENT_AUTH = {"0": "none", "1": "optional", "2": "required"}


def load(config: Config, tickets: TlsTickets | None = None) -> Tls | None:
    """Certificates, keys and rules; ``None`` if HTTPS is not served.

    Args:
        config: Says where they are.
        tickets: The secret that workers share, so that a session begun with one goes on with another.

    Raises:
        ConfigError: A file is missing, cannot be read or does not fit; the message says which and what to do.
    """
    if not config.is_tls:
        return None
    certificates, keys = config.ssl_certfile, config.ssl_keyfile or config.ssl_certfile
    try:
        if config.ssl_dev:
            certificate, key, _, _ = _development()
            certificates, keys = (os.fspath(certificate),), (os.fspath(key),)
        if config.acme:
            from citius.serving.acme.store import Store

            store = Store.of(config)
            fetched = tuple(store.certificate(name) for name in config.acme)
            certificates, keys = (*certificates, *fetched), (*keys, *fetched)
        with _opened(config, [*certificates, *keys]) as opened:
            identities = list(zip(certificates, keys, strict=True))
            return _load(config, identities, tickets, opened)
    except ValueError as error:
        raise ConfigError(f"TLS: {error}") from None


def _load(
    config: Config,
    identities: list[tuple[str, str]],
    tickets: TlsTickets | None,
    opened: dict[str, str],
) -> Tls:
    return Tls(
        identities,
        password=config.ssl_keyfile_password,
        version_min=config.ssl_protocol_min,
        ciphers=config.ssl_ciphers,
        client_auth=_CLIENT_AUTH.get(config.ssl_cert_reqs, config.ssl_cert_reqs),
        client_ca=config.ssl_ca_certs,
        crls=list(config.ssl_crl),
        protocols=_PROTOCOLS,
        handshake_bytes_max=config.limits.get(
            "tls_handshake_bytes_max", LIMITS["tls_handshake_bytes_max"]
        ),
        tickets=tickets,
        opened=opened,
        challenges=_challenges(config),
    )


def _challenges(config: Config) -> tuple[str, list[str]] | None:
    if not config.acme:
        return None
    from citius.serving.acme.store import Store

    return Store.of(config).challenges, list(config.acme)


@contextmanager
def _opened(config: Config, names: list[str]) -> Generator[dict[str, str]]:
    """Where root reads files whose directories the workers' user may be able to change.

    A path that the user has exchanged for a link would put the key of another service into the workers.

    Raises:
        ValueError: A file cannot be opened, or is reached by a link that root must not follow.
    """
    if not are_split(config) or config.ssl_dev:
        yield {}
        return
    opened: dict[str, str] = {}
    fds: list[int] = []
    try:
        for name in filter(None, (*names, config.ssl_ca_certs, *config.ssl_crl)):
            try:
                fds.append(paths.open_to_read(name))
            except OSError as error:
                raise ValueError(f"cannot read {name}: {paths.reason(error)}") from None
            opened[name] = f"/proc/self/fd/{fds[-1]}"
        yield opened
    finally:
        for fd in fds:
            os.close(fd)


def check(config: Config) -> None:
    """Load everything once, say what should be looked at, and forget it again.

    Raises:
        ConfigError: As ``load``.
    """
    if config.ssl_dev:
        certificate, _, fingerprint, is_new = _development()
        made = "made" if is_new else "kept"
        logging.info(f"TLS: development certificate {made} in {certificate}, SHA-256 {fingerprint}")
    tls = load(config)
    for warning in () if tls is None else tls.warnings:
        logging.warning(f"TLS: {warning}")
    for text in config.rpc if tls is not None else ():
        if not text.startswith(_NEEDS_NO_TLS):
            logging.warning(
                f"--rpc {text} speaks clear text; --rpc tls://{text} would encrypt it, too"
            )


def _development() -> tuple[Path, Path, str, bool]:
    try:
        return development_certificate(cache_directory())
    except ValueError as error:
        raise ConfigError(f"ssl_dev: {error}") from None


def cache_directory() -> str:
    """Where the development certificate is kept, so that a browser's exception for it lasts."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(base, "citius")
