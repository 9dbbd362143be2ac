"""The transport that connects: pools of the extension, one for each event loop, and one for threads."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from citius import _core

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from citius.http.urls import URL


class PooledTransport:
    """A pool on the running event loop.

    Args:
        options: What the pool is made with.
        unix_path: A socket that all connections are made to.
        pins: Digests of public keys.
    """

    def __init__(
        self, options: Mapping[str, Any], *, unix_path: str | None, pins: Sequence[str]
    ) -> None:
        self._unix_path = unix_path
        pool: Any = import_module("citius.http.transport").Pool(**options, pins=tuple(pins))
        self._pool = pool
        # Methods of the extension: there is nothing in between.
        self.send, self.upload = pool.send, pool.upload
        self.close, self.close_now = pool.close, pool.close_now

    def origin(self, url: URL, proxy: str | None) -> Any:
        """The origin as the extension has it."""
        make: Any = getattr(_core, "HttpOrigin")  # noqa: B009 - of the extension's next build
        return make(url.scheme, url.host, url.port, proxy=proxy, unix=self._unix_path)

    def stats(self) -> dict[str, int]:
        """Connections and requests."""
        return self._pool.stats()
