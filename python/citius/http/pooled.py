"""The transport that connects: pools of the extension, one for each event loop, and one for threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius._core import HttpOrigin
from citius.http.transport import Pool

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
        pool = self._pool = Pool(**options, pins=tuple(pins))
        # Methods of the extension: there is nothing in between.
        self.send: Any = pool.send
        self.upload: Any = pool.upload
        self.forward: Any = pool.core.forward
        self.close, self.close_now = pool.close, pool.close_now

    def origin(self, url: URL, proxy: str | None) -> HttpOrigin:
        """The origin as the extension has it."""
        return HttpOrigin(url.scheme, url.host, url.port, proxy=proxy, unix=self._unix_path)

    def stats(self) -> dict[str, int]:
        """Connections and requests."""
        return self._pool.stats()
