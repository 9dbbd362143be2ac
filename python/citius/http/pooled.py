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
        self._options: Mapping[str, Any] = dict(options, pins=tuple(pins))
        pool = self._pool = Pool(**self._options)
        self._tunnels: Pool | None = None
        # Methods of the extension: there is nothing in between.
        self.send: Any = pool.send
        self.upload: Any = pool.upload
        self.forward: Any = pool.core.forward
        self.core = pool.core

    def origin(self, url: URL, proxy: str | None) -> HttpOrigin:
        """The origin as the extension has it."""
        return HttpOrigin(url.scheme, url.host, url.port, proxy=proxy, unix=self._unix_path)

    @property
    def tunnel(self) -> Any:
        """``forward`` for requests that ask for another protocol, which HTTP/1.1 alone can switch to."""
        if self._options.get("h2", "auto") == "never":
            return self.forward
        if self._tunnels is None:
            self._tunnels = Pool(**dict(self._options, h2="never"))
        return self._tunnels.core.forward

    def _pools(self) -> list[Pool]:
        return [self._pool] if self._tunnels is None else [self._pool, self._tunnels]

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        self.close_now()

    def close_now(self) -> None:
        """The same, from any thread."""
        for pool in self._pools():
            pool.close_now()

    def stats(self) -> dict[str, int]:
        """Connections and requests."""
        counts = [pool.stats() for pool in self._pools()]
        return {name: sum(one[name] for one in counts) for name in counts[0]}
