"""Rate limits: a token bucket for each client, exact over all workers of a server, or of all machines.

The buckets are in memory that the workers share (citius-observe/src/buckets.rs), or in a store such as Redis
(redis_stores.py). Tests: tests/middleware/test_ratelimit.py, tests/middleware/test_redis.py.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from citius._core import FAST_PATHS, LimitedChain, TokenBuckets
from citius.errors import ConfigError, TooManyRequests
from citius.process.sharedmemory import shared_memory
from citius.web.declarations.checks import check_callback
from citius.web.middleware.base import ByChain, Middleware
from citius.web.middleware.fields import NamedRoutes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from citius._core import Request, Response
    from citius.web.middleware.base import AnyMiddleware, AsyncNext, Next, OnError, Socket


def by_client(request: Request) -> str:
    """The address of the client; of an IPv6 address its network of 64 bits, which is what one client has.

    Clients without an address share the key ``unknown``: a proxy hides them (``Forwarded: for=unknown``,
    which a client may have made up), or it is on a Unix socket and names none.
    """
    client = request.client
    address = client[0] if client else "unknown"
    if ":" not in address:
        return address
    try:
        packed = socket.inet_pton(socket.AF_INET6, address)
    except OSError:
        return address
    is_mapped = packed.startswith(bytes(10) + b"\xff\xff")
    return socket.inet_ntop(socket.AF_INET, packed[12:]) if is_mapped else packed[:8].hex()


class BucketStore(Protocol):
    """Token buckets that several machines share."""

    async def take(
        self, key: bytes, interval_ns: int, burst: int
    ) -> tuple[bool, int, int, int] | None:
        """Take a token from the bucket ``key``, which gets one every ``interval_ns`` and holds ``burst``.

        Returns:
            Whether there was one, how many are left, and nanoseconds until there is one and until the bucket
            is full; ``None`` for a request that is not to be limited, or, where the store has an attribute
            ``when_down`` that is ``"local"``, by the buckets of this server.
        """


class RateLimit(Middleware):
    """Respond with 429 and ``Retry-After`` to clients that ask too often.

    Args:
        limit: Requests that a client may make in ``per_s`` seconds.
        per_s: The length of that time.
        burst: Requests that it may make at once; ``limit`` without it.
        key: Whose requests are counted together; an empty key is not limited.
        only: Paths of routes, as they are declared, and prefixes of mounts, that are limited, together;
            all without it.
        name: What the response calls the limit. Limits of one name, rate and burst share their buckets.
        store: Where the buckets are; in memory that the workers of this server share without it. It needs
            an event loop.

    Raises:
        ConfigError: A number that is none.
    """

    def __init__(
        self,
        limit: int,
        per_s: float,
        *,
        burst: int | None = None,
        key: Callable[[Request], str] = by_client,
        only: str | Iterable[str] | None = None,
        name: str = "default",
        store: BucketStore | None = None,
    ) -> None:
        self._burst = limit if burst is None else burst
        if limit < 1 or self._burst < 1 or not 0 < per_s <= 366 * 24 * 3600:
            raise ConfigError(
                f"RateLimit: expected numbers above 0 and at most a year, got {limit} in {per_s} s, "
                f"burst {self._burst}"
            )
        if not name.isidentifier() or not name.isascii():
            raise ConfigError(f"RateLimit: expected a name such as login, got {name!r}")
        self._limit, self._per_s = limit, per_s
        check_callback(key, "RateLimit(key=…)", "request")
        self._interval_ns = max(1, round(per_s * 1_000_000_000 / limit))
        self._key = key
        self._only = None if only is None else NamedRoutes("RateLimit(only=…)", only)
        if self._only is not None and not self._only.patterns:
            raise ConfigError("RateLimit(only=…) names no route, and would limit nothing")
        self._name = name
        self._state = f"rate_limit_{name}"
        self._policy = f'"{name}";q={limit};w={max(1, round(per_s))}'
        self._policy_line = ("ratelimit-policy", self._policy)
        # Another rate counts in other units, so a changed limit gets other buckets.
        self._own_name = f"{name} {self._interval_ns} {self._burst}".encode()
        self._buckets: TokenBuckets | None = None
        self._store = store

    @property
    def steps(self) -> tuple[Callable[..., object], ...]:
        """What decides whether the store has to be awaited."""
        return (self.before,) if self._store is None else (self._store.take,)

    @property
    def named_routes(self) -> NamedRoutes | None:
        """Those that alone are limited."""
        return self._only

    def limit_of(self, pattern: str, handler: Callable[..., object]) -> str | None:
        """Return the rate."""
        if self._only is not None and pattern not in self._only:
            return None
        return f"{self._limit}/{self._per_s:g} s"

    def bind_kind(
        self,
        kind: str,
        method: str,
        pattern: str | None,
        handler: Callable[..., object] | None,
    ) -> AnyMiddleware | ByChain | None:
        """Open the buckets; around a handler's request the limit is one function."""
        bound = self.bind(method, pattern, handler)
        if bound is not self or method in ("", "WEBSOCKET"):
            return bound
        is_native = FAST_PATHS and self._key is by_client
        return ByChain(self._around(), self._around_coroutine(), self._chain if is_native else None)

    def _chain(self, inner: Next, on_error: OnError) -> Next:
        """``_around`` in the extension: half of its instructions, no frame of Python."""

        def refuse(request: Request, retry_ns: int) -> Response:
            try:
                self._refuse(retry_ns)
            except TooManyRequests as error:
                return on_error(request, error)

        return LimitedChain(self._of_buckets, inner, refuse, self._policy_line).respond

    def _around(self) -> Callable[[Request, Next], Response]:
        take, refuse, policy = self._taker(), self._refuse, self._policy_line

        def limited(request: Request, next: Next) -> Response:
            left = take(request)
            if left is None:
                return next(request)
            if isinstance(left, int):
                refuse(left)
            response = next(request)
            response._add_checked(("ratelimit", left), policy)  # pyright: ignore[reportPrivateUsage]
            return response

        return limited

    def _around_coroutine(self) -> Callable[[Request, AsyncNext], Coroutine[Any, Any, Response]]:
        take, refuse, policy = self._taker(), self._refuse, self._policy_line

        async def limited(request: Request, next: AsyncNext) -> Response:
            left = take(request)
            if left is None:
                return await next(request)
            if isinstance(left, int):
                refuse(left)
            response = await next(request)
            response._add_checked(("ratelimit", left), policy)  # pyright: ignore[reportPrivateUsage]
            return response

        return limited

    def _taker(self) -> Callable[[Request], str | int | None]:
        """What takes a token for a request, as ``take_text`` does; ``None``: it is not limited."""
        key_of, take, now = self._key, self._of_buckets.take_text, time.monotonic_ns
        if FAST_PATHS and key_of is by_client:
            return self._of_buckets.take_for_client

        def take_by_key(request: Request) -> str | int | None:
            key = key_of(request)
            return take(key, now()) if key else None

        return take_by_key

    @property
    def _of_buckets(self) -> TokenBuckets:
        assert self._buckets is not None, "bound before"
        return self._buckets

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> Middleware | None:
        """Open the buckets, in the process that serves."""
        if self._only is not None and pattern not in self._only:
            return None
        is_local = self._store is None or getattr(self._store, "when_down", "") == "local"
        if is_local and self._buckets is None:
            try:
                self._buckets = TokenBuckets(
                    shared_memory(), self._own_name, self._interval_ns, self._burst, self._name
                )
            except (MemoryError, OverflowError, ValueError) as error:
                raise ConfigError(f"RateLimit {self._name}: {error}") from None
        return self if self._store is None else _StoredLimit(self, self._store, is_local=is_local)

    def connect(self, socket: Socket) -> None:
        """Take a token for opening a WebSocket."""
        self.before(socket.request)

    def before(self, request: Request) -> None:
        """Take a token."""
        key = self._key(request)
        if key:
            self.keep(request, self._take(key))

    def _take(self, key: str) -> str:
        """Take a token from the bucket of ``key`` in this server's memory; the field that says what is left.

        Raises:
            TooManyRequests: There was none.
        """
        left = self._of_buckets.take_text(key, time.monotonic_ns())
        if isinstance(left, int):
            self._refuse(left)
        return left

    def left_of(self, allowed: bool, remaining: int, retry_ns: int, full_ns: int) -> str:
        """The field that says what is left.

        Raises:
            TooManyRequests: There was no token.
        """
        if not allowed:
            self._refuse(retry_ns)
        return f'"{self._name}";r={remaining};t={-(-full_ns // 1_000_000_000)}'

    def _refuse(self, retry_ns: int) -> NoReturn:
        retry_s = -(-retry_ns // 1_000_000_000)
        raise TooManyRequests(
            f"too many requests; try again in {retry_s} s",
            {
                "retry-after": str(retry_s),
                "ratelimit": f'"{self._name}";r=0;t={retry_s}',
                "ratelimit-policy": self._policy,
            },
        )

    def keep(self, request: Request, left: str) -> None:
        """Keep the field for the response."""
        setattr(request.state, self._state, left)

    def after(self, request: Request, response: Response) -> Response:
        """Say what is left (draft-ietf-httpapi-ratelimit-headers)."""
        left = getattr(request.state, self._state, None)
        return response if left is None else self._add(response, left)

    def _add(self, response: Response, left: str) -> Response:
        response._add_checked(("ratelimit", left), self._policy_line)  # pyright: ignore[reportPrivateUsage]
        return response


class _StoredLimit(Middleware):
    """A limit whose buckets have to be awaited."""

    def __init__(self, limit: RateLimit, store: BucketStore, *, is_local: bool) -> None:
        from hashlib import sha256

        self._limit = limit
        self._is_local = is_local
        """Whether the buckets of this server decide where the store does not know."""
        self._store = store
        self._hash = sha256

    async def connect(self, socket: Socket) -> None:
        """Take a token for opening a WebSocket."""
        await self.before(socket.request)

    async def before(self, request: Request) -> None:
        """Take a token."""
        limit = self._limit
        key = limit._key(request)  # pyright: ignore[reportPrivateUsage]
        if not key:
            return
        # What a client may choose is hashed, so that it cannot fill the store with long keys.
        hashed = self._hash(key.encode("utf-8", "surrogatepass")).hexdigest()[:32].encode()
        name, interval_ns = limit._own_name, limit._interval_ns  # pyright: ignore[reportPrivateUsage]
        burst = limit._burst  # pyright: ignore[reportPrivateUsage]
        taken = await self._store.take(b"%b %b" % (name, hashed), interval_ns, burst)
        if taken is not None:
            limit.keep(request, limit.left_of(*taken))
        elif self._is_local:
            limit.keep(request, limit._take(key))  # pyright: ignore[reportPrivateUsage]

    def after(self, request: Request, response: Response) -> Response:
        """Say what is left."""
        return self._limit.after(request, response)
