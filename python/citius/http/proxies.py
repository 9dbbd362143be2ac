"""Proxies of the environment: ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``, ``NO_PROXY``, or in lower case.

Read once, when a client is made. Tests: ``tests/http/test_proxies.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.http.options import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius.http.urls import URL


@dataclass(frozen=True, slots=True)
class Environment:
    """What the environment says of proxies."""

    by_scheme: Mapping[str, str]
    exceptions: tuple[str, ...]

    def proxy_of(self, url: URL) -> str | None:
        """The proxy for a URL."""
        found = self.by_scheme.get(url.scheme) or self.by_scheme.get("all")
        return None if found is None or self._is_exception(url) else found

    def _is_exception(self, url: URL) -> bool:
        for one in self.exceptions:
            if one == "*":
                return True
            if "/" in one:
                if _is_within(url.host, one):
                    return True
                continue
            host, port = _split(one)
            if port is not None and port != url.port:
                continue
            # "example.org" and ".example.org" both mean the domain and what is below it.
            name = host.removeprefix("*").removeprefix(".")
            if url.host == name or url.host.endswith("." + name):
                return True
        return False


def _split(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        port = port.removeprefix(":")
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    else:
        host, port = text, ""
    return host, int(port) if port.isdecimal() else None


def _is_within(host: str, network: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def read(environ: Mapping[str, str]) -> Environment | None:
    """The proxies of an environment; ``None`` if there are none.

    ``HTTP_PROXY`` in capitals is not read where ``REQUEST_METHOD`` is set: a CGI program gets the field
    ``Proxy`` of its client there.

    Raises:
        ConfigError: A value is no proxy.
    """
    found: dict[str, str] = {}
    for scheme in ("http", "https", "all"):
        name = f"{scheme}_proxy"
        value = environ.get(name)
        if not value and not (scheme == "http" and "REQUEST_METHOD" in environ):
            name = name.upper()
            value = environ.get(name)
        if value:
            found[scheme] = _proxy(name, value)
    if not found:
        return None
    exceptions = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    parts = [one.strip().lower() for one in exceptions.replace(" ", ",").split(",")]
    return Environment(found, tuple(one for one in parts if one))


def _proxy(name: str, value: str) -> str:
    url = value if "://" in value else f"http://{value}"
    try:
        return Proxy(url).url
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None


def chooser(
    proxy: str | Proxy | None, trust_env: bool, environ: Mapping[str, str]
) -> Callable[[URL], str | None] | None:
    """What says which proxy a URL is called by; ``None``: none ever.

    Raises:
        ConfigError: A proxy is none.
    """
    if proxy is not None:
        chosen = (Proxy(proxy) if isinstance(proxy, str) else proxy).url
        return lambda _: chosen
    found = read(environ) if trust_env else None
    return None if found is None else found.proxy_of
