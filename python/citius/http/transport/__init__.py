"""The way of a request to its server, around ``citius._core.HttpPool``: connections, names, proxies."""

from citius.http.transport.pool import Pool

__all__ = ["Pool"]
