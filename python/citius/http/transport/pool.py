"""A pool of connections: what the extension asks for is done here, on the thread of the pool's home."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from typing import TYPE_CHECKING, Any

from citius._core import HttpPool
from citius.errors import ConfigError
from citius.http.transport import tls
from citius.http.transport.addresses import Way
from citius.http.transport.connecting import connect
from citius.http.transport.links import Link
from citius.process import homes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from citius._core import HttpOrigin
    from citius.http.transport.tls import Rules

# How long what was due while the thread was busy may take still: what has come is read first.
_LATE_S, _GRACE_S = 0.05, 0.05
_CONNECT_S = 60.0
"""How long connecting takes at most where a request sets no limit."""


class _Attempt:
    """A connection that is being made."""

    def cancel(self) -> object:
        """Do nothing: it has not begun. Its pool sets what cancels it."""


class Pool:
    """Connections for the code of one place: an event loop, gevent's hub, or threads.

    ``send`` and ``upload`` are those of ``citius._core.HttpPool``.

    Args:
        connections_max: Connections in all.
        connections_per_origin_max: Connections to one origin.
        keepalive_s: How long a connection may be idle; 0 keeps none.
        body_bytes_max: Bytes of a response that is not streamed.
        queue_max: Requests that may wait for a connection.
        h2: ``auto`` offers HTTP/2 over TLS, ``never`` does not, ``prior`` speaks it without asking.
        verify: Whether servers are verified, or a file of authorities.
        cert: Certificate, key, and the password of the key.
        pins: SHA-256 of public keys, one of which a server has to have.
        resolver: Resolves a name and a port to families and addresses.
        allow: Whether an address may be connected to, by its text and port.
        limits: Limits of responses, by name.
    """

    def __init__(
        self,
        *,
        connections_max: int = 1000,
        connections_per_origin_max: int = 100,
        keepalive_s: float = 60.0,
        body_bytes_max: int = 64 << 20,
        queue_max: int = 10_000,
        h2: str = "auto",
        verify: bool | str = True,
        cert: tuple[str, ...] | None = None,
        pins: tuple[str, ...] = (),
        resolver: Callable[[str, int], Awaitable[list[tuple[int, Any]]]] | None = None,
        allow: Callable[[str, int], bool] | None = None,
        limits: dict[str, int] | None = None,
    ) -> None:
        self._home = homes.find()
        self.loop = self._home.loop
        self._process = os.getpid()
        self._links: set[Link] = set()
        self._attempts: set[_Attempt] = set()
        if h2 not in ("auto", "never", "prior"):
            raise ConfigError(f"h2 is auto, never or prior, got {h2!r}")
        self._tls: Rules = tls.Rules(verify, cert, pins, h2)
        self._is_prior = h2 == "prior"
        self._way = Way(self._home, resolver, allow)
        self._cancel_look: Callable[[], object] | None = None
        self._look_at = 0.0
        self.core = HttpPool(
            _Listener(self),
            event_loop=self._home.loop,
            connections_max=connections_max,
            connections_per_origin_max=connections_per_origin_max,
            queue_max=queue_max,
            keepalive_s=keepalive_s,
            body_bytes_max=body_bytes_max,
            offers_h2=h2 != "never",
            speaks_h2=h2 == "prior",
            limits=limits,
        )
        self.send = self.core.send
        self.upload = self.core.upload
        # Without it the connections of a pool that is forgotten would stay open.
        weakref.finalize(self, self.core.stop).atexit = False

    @property
    def is_of_process(self) -> bool:
        """Whether this is the process that has made it."""
        return self._process == os.getpid()

    def stats(self) -> dict[str, int]:
        """Connections that are open, idle and being made, and requests that wait for one."""
        return dict(zip(("open", "idle", "connecting", "waiting"), self.core.counts(), strict=True))

    async def close(self) -> None:
        """Close all connections; requests under way fail."""
        self.close_now()

    def close_now(self) -> None:
        """The same, from any thread."""
        if not self.is_of_process:
            return
        if self._home.is_here():
            self._close()
        else:
            self._home.run(self._close)

    def _close(self) -> None:
        self.core.stop()
        # The extension has no connection before its handshake is done.
        for attempt in list(self._attempts):
            attempt.cancel()
        for link in list(self._links):
            link.core.fail("ClientClosed", "the client is closed")
        if self._cancel_look is not None:
            self._cancel_look()
        self._home.close()

    # --- what the extension asks for ---

    def listen(self, kind: str, value: Any) -> None:
        """Do something on the home's thread."""
        if self._home.is_here():
            self._act(kind, value)
        else:
            self._home.run(lambda: self._act(kind, value))

    def _act(self, kind: str, value: Any) -> None:
        if kind == "look":
            self._look_in(value / 1000)
        else:
            attempt = _Attempt()
            self._attempts.add(attempt)
            attempt.cancel = self._home.spawn(self._connect(attempt, *value))

    def _look_in(self, delay_s: float) -> None:
        # The extension's clock has ticks of milliseconds.
        at = time.monotonic() + delay_s + 0.005
        if self._cancel_look is not None:
            if self._look_at <= at:
                return
            self._cancel_look()
        self._look_at = at
        self._cancel_look = self._home.later(delay_s + 0.005, self._look)

    def _look(self) -> None:
        self._cancel_look = None
        now = time.monotonic()
        if now - self._look_at > _LATE_S:
            self._cancel_look = self._home.later(_GRACE_S, lambda: self._look_before(now))
            self._look_at = now + _GRACE_S
        else:
            self._look_before(now)

    def _look_before(self, then: float) -> None:
        self._cancel_look = None
        next_ms = self.core.look(ago_ms=round((time.monotonic() - then) * 1000))
        if next_ms is not None:
            self._look_in(next_ms / 1000)

    async def _connect(
        self, attempt: _Attempt, lane: int, origin: HttpOrigin, timeout_ms: int | None
    ) -> None:
        timeout_s = _CONNECT_S if timeout_ms is None else timeout_ms / 1000
        began = time.monotonic()
        made = link = None
        try:
            rules = self._tls.load(origin) if origin.scheme == "https" else None
            made, remote = await self._home.within(timeout_s, connect(self._way, origin))
            left_s = timeout_s - (time.monotonic() - began)
            link = Link(self._home, self.core, self._links, made, origin, lane, rules, remote)
            link.open(
                max(left_s, 0.001), timeout_s, is_shared=self._is_prior and origin.proxy is None
            )
        except BaseException as error:
            if link is not None:
                link.close()
            elif made is not None:
                made.close()
            kind, message = _named(error, timeout_s)
            self.core.not_opened(lane, kind, message, getattr(error, "reason", None))
            if not isinstance(error, Exception):
                raise
        finally:
            self._attempts.discard(attempt)


def _named(error: BaseException, timeout_s: float) -> tuple[str, str]:
    """The class of an error of ``citius.http.errors``, and its message."""
    kind = getattr(error, "kind", "ConnectError")
    if type(error) is TimeoutError:
        return "ConnectTimeout", f"not connected within {timeout_s:g} s"
    if isinstance(error, OSError) and error.strerror:
        return kind, error.strerror
    return kind, str(error) or type(error).__name__


class _Listener:
    """The pool as the extension knows it, which does not keep it."""

    __slots__ = ("_pool",)

    def __init__(self, pool: Pool) -> None:
        self._pool = weakref.ref(pool)

    def __call__(self, kind: str, value: Any) -> None:
        pool = self._pool()
        if pool is not None:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                pool.listen(kind, value)
