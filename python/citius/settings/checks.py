"""Checks of a whole configuration: texts of the right form, and options that fit together.

In: a ``Config`` whose values have the right types and ranges (option.py). Raises ``ConfigError``, whose
message names the options. Nothing here touches files or sockets. Tests: ``tests/unit/test_config.py``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.process.turns import has_epoll, is_hosted
from citius.settings.addresses import HTTP, PROXY, REDIRECT, TLS, check_address, marks_of
from citius.settings.texts import (
    FORWARDED_HEADERS,
    check_header_field,
    check_host_name,
    check_request_id,
    header_fields,
    hsts_value,
    http_versions,
    is_network,
    is_octal,
    parse_coding,
    parse_mount,
    parts,
)

if TYPE_CHECKING:
    from citius.settings.config import Config


# What only Linux has: processes that share sockets, what a process gives up, and who it becomes.
LINUX_ONLY = (
    "supervisor", "sandbox", "user", "group", "uds", "pidfile", "max_requests", "worker_lifetime_s",
    "worker_rss_bytes_max", "worker_timeout_s", "drain_delay_s", "acme",
)  # fmt: skip


def check(config: Config) -> None:
    """Check the texts of options, and that no two options contradict each other.

    Raises:
        ConfigError: A text has the wrong form, or two options contradict each other.
    """
    _check_texts(config)
    if config.uds is not None and config.bind:
        raise ConfigError(
            f"bind and uds contradict each other: write the socket as an address, --bind unix:{config.uds}"
        )
    if config.host.count(":") == 1 or "]:" in config.host:
        raise ConfigError(
            f"host: expected a name or an address alone, got {config.host!r}; the port goes to --port, and "
            "both together to --bind"
        )
    if config.reload and config.workers > 1:
        raise ConfigError("reload and workers contradict each other: reload runs one process")
    _check_tls(config)
    _check_acme(config)
    _check_redirects(config)
    _check_http3(config)
    if config.supervisor is False and config.workers > 1:
        raise ConfigError(
            "supervisor is off and workers is above 1: workers > 1 requires the supervisor"
        )
    if config.loop == "gevent" and config.reactors > 1:
        raise ConfigError(
            "reactor_threads and the loop gevent contradict each other: gevent switches greenlets in one "
            "thread; use workers"
        )
    _check_sandbox(config)
    _check_poller(config)


def _check_poller(config: Config) -> None:
    """Check that the system has what the options need, and the poller too."""
    if not has_epoll():
        if config.poller == "epoll":
            raise ConfigError(f"poller: epoll is Linux's, and this is {sys.platform}; use asyncio")
        for name in LINUX_ONLY:
            if getattr(config, name):
                raise ConfigError(f"{name} needs Linux, and this is {sys.platform}")
        for name in ("bind", "rpc"):
            for text in getattr(config, name):
                if "unix:" in text:
                    raise ConfigError(f"{name}: {text} needs Linux, and this is {sys.platform}")
    if not is_hosted(config.poller):
        return
    if config.workers > 1 or (config.reactor_threads or 1) > 1:
        name = "workers" if config.workers > 1 else "reactor_threads"
        raise ConfigError(
            f"{name} is above 1, and poller asyncio serves with one worker on one thread; use poller epoll, "
            "on Linux"
        )
    if config.loop in ("gevent", "none"):
        raise ConfigError(
            f"poller asyncio needs an asyncio loop, and loop is {config.loop}; use loop auto"
        )


def _check_sandbox(config: Config) -> None:
    """Check what the sandbox leaves open, and that it can be entered."""
    for name in ("sandbox_read", "sandbox_write", "sandbox_connect", "sandbox_metadata"):
        if getattr(config, name) and not config.sandbox:
            raise ConfigError(f"{name} says what the sandbox leaves open, and sandbox is off")
    for word in config.sandbox_connect:
        is_port = word.isascii() and word.isdigit() and 0 < int(word) < 65536
        if word not in ("udp", "unix") and not is_port:
            raise ConfigError(f"sandbox_connect: expected a port, `udp` or `unix`, got {word!r}")
    if config.sandbox and config.supervisor is False:
        raise ConfigError(
            "supervisor is off and sandbox is on: what a worker has given up, the supervisor needs"
        )
    if config.sandbox and config.reload:
        raise ConfigError("reload and sandbox contradict each other: reload starts programs")


def _check_texts(config: Config) -> None:
    """Texts whose form the kind of the option does not check."""
    for text in config.bind:
        check_address(text)
    if config.management:
        check_address(config.management, "management")
    for text in config.rpc:
        check_address(text.removeprefix(marks_of(text)), "rpc")
    for text in config.static:
        parse_mount(text)
    if config.health is not None and (
        not config.health.startswith("/") or config.health.endswith("/")
    ):
        raise ConfigError(f"health: expected a path such as /health, got {config.health!r}")
    _check_proxies(config)
    for text in config.compress:
        parse_coding(text)
    if config.umask is not None and not is_octal(config.umask):
        raise ConfigError(f"umask: expected octal digits up to 777, got {config.umask!r}")
    for text in config.env:
        if text.find("=") < 1:
            raise ConfigError(f"env: expected NAME=value, got {text!r}")
    _check_headers(config)


def _check_headers(config: Config) -> None:
    for text in config.header:
        if text.find(":") < 1:
            raise ConfigError(f"header: expected NAME:VALUE, got {text!r}")
    for name, value in header_fields(config.header):
        check_header_field(name, value)
    if config.request_id is not None:
        check_request_id(config.request_id.lower())


def _check_tls(config: Config) -> None:
    """Options of TLS that need each other."""
    certificates, keys = len(config.ssl_certfile), len(config.ssl_keyfile)
    if certificates and config.ssl_dev:
        raise ConfigError(
            "ssl_dev and ssl_certfile contradict each other: each sets the certificate"
        )
    if keys and not certificates:
        raise ConfigError("ssl_keyfile is a key without a certificate; give ssl_certfile too")
    if keys not in (0, certificates):
        raise ConfigError(
            f"ssl_keyfile: expected one key for each of the {certificates} certificates, or none where "
            f"the certificates' files have them, got {keys}"
        )
    given = [name for name in ("ssl_ciphers", "ssl_ca_certs", "ssl_crl") if getattr(config, name)]
    if config.ssl_cert_reqs not in ("none", "0"):
        given.append("ssl_cert_reqs")
    if given and not config.is_tls:
        raise ConfigError(f"{given[0]} is about TLS, which needs ssl_certfile, acme or ssl_dev")
    secured = [
        (name, text)
        for name in ("bind", "rpc")
        for text in getattr(config, name)
        if TLS in marks_of(text)
    ]
    if secured and not config.is_tls:
        raise ConfigError(
            f"{secured[0][0]}: {secured[0][1]} needs a certificate; give ssl_certfile and "
            "ssl_keyfile, or ssl_dev"
        )


def _check_acme(config: Config) -> None:
    """Check that certificates can be fetched as the options say."""
    if not config.acme:
        about = (
            "acme_email", "acme_dir", "acme_staging", "acme_directory", "acme_ca_certs", "acme_eab"
        )  # fmt: skip
        given = [name for name in about if getattr(config, name)]
        given += ["acme_challenge"] if config.acme_challenge != "auto" else []
        if given:
            raise ConfigError(f"{given[0]} is about certificates of acme, which names no domain")
        return
    for name in config.acme:
        check_host_name(name, "acme")
    if config.ssl_dev:
        raise ConfigError("ssl_dev and acme contradict each other: each sets the certificate")
    if config.acme_staging and config.acme_directory:
        raise ConfigError(
            "acme_staging and acme_directory contradict each other: each names the authority"
        )
    if config.acme_directory and not config.acme_directory.startswith("https://"):
        raise ConfigError(
            f"acme_directory: expected a URL that begins with https://, got {config.acme_directory!r}"
        )
    if config.supervisor is False:
        raise ConfigError(
            "supervisor is off and acme is on: the supervisor fetches and renews certificates"
        )
    if config.reload:
        raise ConfigError("reload and acme contradict each other; use ssl_dev for development")
    if config.acme_challenge == "http-01" and not config.has_redirects:
        raise ConfigError(
            "acme_challenge http-01 is answered in clear text; give redirect_http an address that the "
            "authority reaches on port 80"
        )


def _check_redirects(config: Config) -> None:
    """Check what is sent to HTTPS, and what HSTS says to those who are not there yet."""
    for text in config.redirect_http:
        if not text.isdigit():
            check_address(text, "redirect_http")
    if config.redirect_port is not None and not config.has_redirects:
        raise ConfigError("redirect_port is about redirects, and redirect_http names no address")
    if config.has_redirects and not config.is_tls:
        raise ConfigError(
            "redirect_http redirects to HTTPS, which is not served; give acme or ssl_certfile"
        )
    for text in config.bind:
        marks = marks_of(text)
        if REDIRECT in marks and (TLS in marks or HTTP in text):
            raise ConfigError(
                f"bind: {text}: an address that redirects has clear text; leave out tls:// and ?http="
            )
    if config.hsts is None:
        return
    hsts_value(config.hsts)
    if not config.is_tls:
        raise ConfigError("hsts is about HTTPS, which is not served; give acme or ssl_certfile")
    secured = any(TLS in marks_of(text) for text in config.bind)
    for text in config.bind if secured else ():
        if not marks_of(text).strip():
            raise ConfigError(
                f"hsts: {text} is in clear text, where it must not be sent (RFC 6797); redirect it "
                f"(redirect+{text}), or set the header in the application"
            )


def _check_http3(config: Config) -> None:
    """Check that what asks for HTTP/3 can have it."""
    asks = ["http"] if "3" in http_versions(config.http) else []
    asks += [f"bind: {text}" for text in config.bind if "3" in text.partition(HTTP)[2]]
    if not asks:
        if config.webtransport:
            raise ConfigError("webtransport is served over HTTP/3 only; give --http 1,2,3")
        if config.alt_svc not in ("auto", "off"):
            raise ConfigError("alt_svc names HTTP/3, which is not served; give --http 1,2,3")
        return
    if not config.is_tls:
        raise ConfigError(
            f"{asks[0]}: HTTP/3 needs TLS; give ssl_certfile and ssl_keyfile, or ssl_dev"
        )
    if is_hosted(config.poller):
        raise ConfigError(
            f"{asks[0]}: HTTP/3 needs the poller epoll, on Linux: an event loop cannot own its sockets"
        )
    if config.sandbox and "udp" not in config.sandbox_connect:
        raise ConfigError(
            f"{asks[0]}: HTTP/3 gives workers UDP sockets, which can send to any address, in the sandbox "
            "too; add sandbox_connect udp to agree"
        )
    for text in config.bind or ("",):
        is_proxied = config.proxy_protocol or PROXY in marks_of(text)
        if is_proxied and "3" in http_versions(text.partition(HTTP)[2] or config.http):
            raise ConfigError(
                f"{asks[0]}: the PROXY protocol has no form for HTTP/3; give its clients an address "
                "without it, or leave 3 out (?http=1+2)"
            )
        if text.partition(HTTP)[2] and "3" in text.partition(HTTP)[2] and "unix:" in text:
            raise ConfigError(
                f"bind: {text}: HTTP/3 is served over UDP, and Unix sockets have none"
            )
    check_header_field("alt-svc", config.alt_svc)


def _check_proxies(config: Config) -> None:
    for text in config.trusted:
        if not is_network(text):
            raise ConfigError(
                "forwarded_allow_ips: expected an address, a network such as 10.0.0.0/8, unix or *, "
                f"got {text!r}"
            )
    marks = [marks_of(text) for text in (*config.bind, *config.rpc)]
    if not config.trusted and (config.proxy_protocol or any(PROXY in mark for mark in marks)):
        raise ConfigError(
            "proxy_protocol: no peer may send a PROXY header; name the proxies with forwarded_allow_ips"
        )
    for name in parts(config.forwarded_headers):
        if name not in FORWARDED_HEADERS:
            raise ConfigError(
                f"forwarded_headers: expected {', '.join(FORWARDED_HEADERS)}, got {name!r}"
            )
