"""Responses of other servers that are kept and sent again: a shared cache by RFC 9111.

In: a request whose head has been made, and what passes it on. Out: a stored response, or the other server's,
which is stored while it passes. ``docs/guides/gateway.md`` says what is kept. Tests:
``tests/http/gateway/test_caching.py``.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin
from weakref import WeakSet, ref

from citius._core import ForwardRules, Response
from citius.errors import ConfigError, HTTPError
from citius.http import urls
from citius.http.errors import InvalidURL, ReadError, RequestError
from citius.http.gateway.entries import (
    OVERHEAD_BYTES,
    Entry,
    Key,
    all_of,
    directives,
    first_of,
    lifetime_s,
    number,
    value_sent,
)
from citius.http.gateway.stores import COLLAPSED_S, MemoryResponses
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from citius._core import Request
    from citius.http.gateway.entries import Directives, Lines, Varies
    from citius.http.gateway.stores import Found, Mark, Store
    from citius.redis.client import Redis

    PassOn = Callable[[Request, str, Lines], Awaitable[Response]]

_STORABLE: Final = frozenset({200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
"""Statuses that a cache understands and that are complete."""
_SAFE: Final = ("GET", "HEAD", "OPTIONS", "TRACE")
_BYPASSED: Final = ("range", "if-range", "if-match", "if-unmodified-since", "upgrade", "expect")
_CONDITIONS: Final = (b"if-none-match", b"if-modified-since")
_BYTES_MAX: Final = 64 << 20
PASSED_S: Final = 60.0
"""How long it is believed that responses for a URL cannot be kept, and requests do not wait for others."""
PASSED_MAX: Final = 1000
"""URLs of which that is known. Exceeded: the oldest is forgotten."""
AHEAD_MAX: Final = 32
"""Responses that are read ahead of clients that take them slowly, because others wait for them. Exceeded:
these wait for the client, ``COLLAPSED_S`` at most."""


@known_options
class HTTPCache:
    """Responses that are kept (RFC 9111) for all clients: in the memory of a worker, or in Redis.

    Args:
        bytes_max: Bytes of all responses in memory, 64 MiB without it; the one used longest ago is dropped
            first. In Redis its ``maxmemory`` is the bound.
        entry_bytes_max: Bytes of a response that is kept.
        name: What ``Cache-Status`` calls it.
        redis: Keep them there, for all workers and machines: a client of ``citius.redis``, or the URL of a
            server.
        prefix: What the keys in Redis begin with.

    Raises:
        ConfigError: An option cannot work.
    """

    def __init__(
        self,
        *,
        bytes_max: int | None = None,
        entry_bytes_max: int = 1 << 20,
        name: str = "citius",
        redis: Redis[bytes] | str | None = None,
        prefix: str = "http-cache:",
    ) -> None:
        if redis is not None and bytes_max is not None:
            raise ConfigError(
                "HTTPCache(redis=…, bytes_max=…): Redis bounds its memory itself, by maxmemory"
            )
        bytes_max = _BYTES_MAX if bytes_max is None else bytes_max
        if entry_bytes_max < 1 or bytes_max < entry_bytes_max + OVERHEAD_BYTES:
            raise ConfigError(
                f"HTTPCache: bytes_max= ({bytes_max}) must exceed entry_bytes_max= ({entry_bytes_max}) by "
                f"{OVERHEAD_BYTES} at least, and that 0"
            )
        if not name or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise ConfigError(f"HTTPCache(name=…) is letters, digits, - and _, got {name!r}")
        self.entry_bytes_max, self.name = entry_bytes_max, name
        self._memory = MemoryResponses(bytes_max)
        self.store: Store = self._memory
        if redis is not None:
            from citius.http.gateway.redisresponses import RedisResponses

            self.store = RedisResponses(redis, prefix)

    def stats(self) -> dict[str, int]:
        """Responses in memory, and their bytes."""
        return self._memory.stats()

    def clear(self) -> None:
        """Drop all responses in memory."""
        self._memory.clear()


class Caching:
    """The cache of one declaration.

    Args:
        cache: Where responses are kept.
        to: What the servers are called.
        own: Names of the fields that the declaration sets.
    """

    def __init__(self, cache: HTTPCache, to: str, own: set[bytes]) -> None:
        self._cache, self._to = cache, to
        self._has_own_authorization = b"authorization" in own
        self._underway: dict[Key, _Flight] = {}
        self._ahead: WeakSet[_Content] = WeakSet()
        self._passed: OrderedDict[Key, float] = OrderedDict()
        """URLs whose last response could not be kept, until when that is believed."""
        self._refreshing: dict[Key, asyncio.Task[None]] = {}

    async def respond(
        self, request: Request, target: str, fields: Lines, pass_on: PassOn
    ) -> Response:
        """The response for a request, whose head for the other server is there."""
        method = request.method
        key = self._key(request, target, fields)
        if method not in _SAFE and method != "CONNECT":
            return await self._changing(request, key, fields, pass_on)
        if method not in ("GET", "HEAD") or _is_bypassed(request):
            return await pass_on(request, target, fields)
        asked = _asked(request)
        found = await self._cache.store.find(key, fields)
        if found.entry is not None:
            stored = self._stored(request, key, fields, found, found.entry, asked, pass_on)
            if stored is not None:
                return stored
        if "only-if-cached" in asked:
            raise HTTPError(504, "the cache has no response for it, and none other was asked for")
        if method == "HEAD" or "no-store" in asked:
            return await pass_on(request, target, fields)
        return await self._fetched(request, key, fields, asked, found, pass_on)

    async def _changing(
        self, request: Request, key: Key, fields: Lines, pass_on: PassOn
    ) -> Response:
        """Passes on what changes a resource, unless the other server fails (RFC 9111 §4.4)."""
        try:
            response = await pass_on(request, key.target, fields)
        except (Exception, asyncio.CancelledError):
            # The other server may have done it: it did not answer in time, or the client has left.
            await self._cache.store.invalidate(key.spellings)
            raise
        if 200 <= response.status_code < 400:
            await self._cache.store.invalidate(_changed(key, response))
        return response

    def _key(self, request: Request, target: str, fields: Lines) -> Key:
        prefix = value_sent(fields, "x-forwarded-prefix") or b""
        host = request.host.lower()
        return Key(self._to, request.scheme, host, target, prefix.decode("latin-1"))

    def _note_passed(self, key: Key, *, is_kept: bool) -> None:
        self._passed.pop(key, None)
        if is_kept:
            return
        self._passed[key] = time.monotonic() + PASSED_S
        if len(self._passed) > PASSED_MAX:
            self._passed.popitem(last=False)

    def _is_passed(self, key: Key) -> bool:
        return self._passed.get(key, 0.0) > time.monotonic()

    def _status(self, what: str) -> str:
        return f"{self._cache.name}; {what}"

    def _stored(
        self, request: Request, key: Key, fields: Lines, found: Found, entry: Entry, asked: Directives,
        pass_on: PassOn,
    ) -> Response | None:  # fmt: skip
        """A stored response, if it is to be sent without waiting for the other server."""
        if entry.is_usable(asked):
            left_s = int(entry.lifetime_s - entry.age_s)
            return entry.response(request, self._status(f"hit; ttl={left_s}"))
        is_in_background = "only-if-cached" not in asked and request.method == "GET"
        if is_in_background and entry.is_within("stale-while-revalidate", asked):
            if key not in self._refreshing:
                refresh = self._refresh(request, key, fields, found, pass_on)
                task = self._refreshing[key] = asyncio.ensure_future(refresh)
                task.add_done_callback(lambda _: self._refreshing.pop(key, None))
            return entry.response(request, self._status("hit; fwd=stale; detail=revalidating"))
        return None

    async def _refresh(
        self, request: Request, key: Key, fields: Lines, found: Found, pass_on: PassOn
    ) -> None:
        """Has the other server say whether a stored response is still right, after it was sent."""
        store = self._cache.store
        token = await store.claim(key)
        if token is None:  # another process does
            return
        kept = asyncio.Event()
        try:
            found = await store.find(key, fields)
            if found.entry is not None and found.entry.is_usable({}):  # another has
                return
            with suppress(HTTPError, RequestError):
                response = await self._exchanged(request, key, fields, {}, found, pass_on, kept.set)
                if isinstance(response.body, _Content):
                    await response.body.fill()
                    await kept.wait()
                else:
                    _close(response)
        finally:
            store.release(key, token)

    async def _fetched(
        self, request: Request, key: Key, fields: Lines, asked: Directives, found: Found,
        pass_on: PassOn,
    ) -> Response:  # fmt: skip
        """Has the other server answer; the same request that is under way already is waited for.

        Not where its response is for one client only, as far as is known: each would wait for all before it.
        """
        store = self._cache.store
        if value_sent(fields, "authorization") is not None or self._is_passed(key):
            return await self._exchanged(request, key, fields, asked, found, pass_on)
        if (before := self._underway.get(key)) is not None:
            await before.wait()
            found = await store.find(key, fields)
            if found.entry is not None and found.entry.is_usable(asked):
                return found.entry.response(request, self._status("hit; collapsed"))
            return await self._exchanged(request, key, fields, asked, found, pass_on)
        flight = self._underway[key] = _Flight()
        token: bytes | None = None

        def over() -> None:
            if flight.is_over:
                return
            if self._underway.get(key) is flight:
                del self._underway[key]
            flight.end()
            if token is not None:
                store.release(key, token)

        try:
            token = await store.claim(key)
            if token is None:  # another process asks
                await store.wait(key)
            # Also with the claim: who had it before may have kept a response since the first look.
            found = await store.find(key, fields)
            if found.entry is not None and found.entry.is_usable(asked):
                over()
                return found.entry.response(request, self._status("hit; collapsed"))
            response = await self._exchanged(request, key, fields, asked, found, pass_on, over)
        except BaseException:
            over()
            raise
        if isinstance(response.body, _Content):
            flight.has(response.body)
        else:
            over()
        return response

    async def _exchanged(
        self, request: Request, key: Key, fields: Lines, asked: Directives, found: Found,
        pass_on: PassOn, over: Callable[[], None] = lambda: None,
    ) -> Response:  # fmt: skip
        """The other server's response, or the stored one that it says is right still."""
        entry, mark = found
        begun = time.monotonic()
        sent, validates = fields, False
        if entry is not None and (entry.etag or entry.modified):
            validates = True
            sent = [pair for pair in fields if pair[0].lower() not in _CONDITIONS]
            if entry.etag:
                sent.append((b"if-none-match", entry.etag.encode("latin-1")))
            if entry.modified:
                sent.append((b"if-modified-since", entry.modified.encode("latin-1")))
        try:
            response = await pass_on(request, key.target, sent)
        except HTTPError as error:
            if entry is not None and entry.is_within("stale-if-error", asked):
                return entry.response(
                    request, self._status(f"hit; fwd=stale; fwd-status={error.status_code}")
                )
            raise
        status, got = response.status_code, list(response.headers.multi_items())
        if entry is not None and validates and status == 304:
            await _drain(response)
            if not entry.is_of(got):
                # What is stored is older than what the other server says to be right; its client has neither.
                nothing = found._replace(entry=None)
                return await self._exchanged(request, key, fields, asked, nothing, pass_on, over)
            return await self._validated(request, key, entry, got, (fields, begun, mark), over)
        if entry is not None and status >= 500 and entry.is_within("stale-if-error", asked):
            _close(response)
            return entry.response(request, self._status(f"hit; fwd=stale; fwd-status={status}"))
        why = "stale" if entry is not None else "uri-miss"
        varies = self._storable(request, status, got, fields)
        if status < 500 and value_sent(fields, "authorization") is None:
            self._note_passed(key, is_kept=varies is not None)
        if varies is None or mark is None:
            over()
            response.headers["cache-status"] = self._status(f"fwd={why}")
            return response
        kept = [pair for pair in got if pair[0] not in ("content-length", "cache-status")]
        content = _Content(
            self._cache, key, Entry(status, kept, b"", varies, begun), mark, response.body, over,
            self._ahead,
        )  # fmt: skip
        told = [pair for pair in got if pair[0] != "cache-status"]
        told.append(("cache-status", self._status(f"fwd={why}; stored")))
        return Response(content, status, told)

    async def _validated(
        self, request: Request, key: Key, entry: Entry, got: list[tuple[str, str]],
        asked: tuple[Lines, float, Mark | None], over: Callable[[], None],
    ) -> Response:  # fmt: skip
        """A stored response that is right still, and is kept with what the 304 says, if that may be kept."""
        fields, begun, mark = asked
        updated = _updated(entry, [pair for pair in got if pair[0] != "set-cookie"], begun)
        varies = self._storable(request, entry.status, updated.fields, fields)
        if varies is not None and mark is not None:
            updated.varies = varies
            self._cache.store.keep(key, updated, mark, over)
        else:
            over()
            if not updated.directives.keys().isdisjoint(("no-store", "private")):
                await self._cache.store.invalidate([key])
        response = updated.response(request, self._status("hit; fwd=stale; fwd-status=304"))
        for name, value in got:
            if name == "set-cookie":  # it is for this client
                response.headers.add(name, value)
        return response

    def _storable(
        self, request: Request, status: int, got: list[tuple[str, str]], fields: Lines
    ) -> Varies | None:
        """Whether a response may be kept (RFC 9111 §3), and by which fields of requests it differs."""
        said = directives(all_of(got, "cache-control"))
        if (
            request.method != "GET"
            or status not in _STORABLE
            or "no-store" in said
            or "private" in said
        ):
            return None
        if first_of(got, "set-cookie") is not None or first_of(got, "trailer") is not None:
            return None
        is_for_one = self._has_own_authorization or value_sent(fields, "authorization") is not None
        if is_for_one and not any(
            name in said for name in ("public", "must-revalidate", "s-maxage")
        ):
            return None
        length = first_of(got, "content-length")
        if length is not None and number(length) > self._cache.entry_bytes_max:
            return None
        can_be_validated = first_of(got, "etag") or first_of(got, "last-modified")
        if lifetime_s(said, got) <= 0 and not can_be_validated:
            return None
        names = {name.strip().lower() for value in all_of(got, "vary") for name in value.split(",")}
        if "*" in names:
            return None
        return tuple((name, value_sent(fields, name)) for name in sorted(names) if name)


def _updated(entry: Entry, got: list[tuple[str, str]], begun: float) -> Entry:
    """The fields of a 304 replace those that are stored (RFC 9111 §3.2)."""
    left_out = (
        "content-length", "content-encoding", "content-range", "content-type", "cache-status",
    )  # fmt: skip
    new = [pair for pair in got if pair[0] not in left_out]
    names = {name for name, _ in new}
    fields = [pair for pair in entry.fields if pair[0] not in names] + new
    return Entry(entry.status, fields, entry.body, entry.varies, begun)


def _changed(key: Key, response: Response) -> list[Key]:
    """What a change of a resource makes wrong (RFC 9111 §4.4)."""
    keys = [key]
    for name in ("location", "content-location"):
        if (place := response.headers.get(name)) is not None:
            target = _target_of(key, place)
            keys += [key._replace(target=target)] if target else []
    return [spelled for one in keys for spelled in one.spellings]


def _target_of(key: Key, place: str) -> str | None:
    """What a reference names at the origin that clients call, or at the servers as they know themselves."""
    own = [f"{key.scheme}://{key.host}", *key.to.split(", ")]
    try:
        joined = urljoin(f"{own[-1]}{key.target}", place)
        origins = {urls.parse(base).origin for base in own if not base.endswith("/")}
        if urls.parse(joined).origin not in origins:
            return None
    except (InvalidURL, ValueError):
        return None
    _, slash, path = joined.partition("://")[2].partition("/")
    return slash + path.partition("#")[0]


class _Content:
    """Content that is stored while it passes, once it is complete.

    It is read as its client takes it, and ahead of that when other clients wait for it to be stored.
    ``over`` is called when it has been stored, or will not be: also if it is never asked for.

    Args:
        ahead: All content of the cache that is read ahead.
    """

    def __init__(
        self,
        cache: HTTPCache,
        key: Key,
        entry: Entry,
        mark: Mark,
        body: Any,
        over: Callable[[], None],
        ahead: WeakSet[_Content],
    ) -> None:
        self._cache, self._key, self._entry, self._body = cache, key, entry, body
        self._mark, self._over, self._all_ahead = mark, over, ahead
        self._is_kept = self._is_too_large = self._is_complete = self._is_left = False
        self._pieces: AsyncIterator[bytes] | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._unsent: deque[bytes] = deque()
        """What has come and the client has not taken."""
        self._failure: Exception | None = None
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def _pull(self, *, ahead: bool = False) -> None:
        """Have the next piece come, unless there is one for the client."""
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            if self._is_complete or (self._unsent and not ahead):
                return
            if self._pieces is None:
                self._pieces = aiter(self._body)
            try:
                piece = await anext(self._pieces)
            except StopAsyncIteration:
                self._is_complete = True
                self._keep()
            except BaseException as error:
                # From now on the iterator says that it is at its end.
                is_other = not isinstance(error, Exception)
                self._failure = ReadError("the content was not read") if is_other else error
                raise
            else:
                self._take(piece)

    def _take(self, piece: bytes) -> None:
        self._unsent.append(piece)
        self._size += len(piece)
        if self._size <= self._cache.entry_bytes_max:
            self._parts.append(piece)
        elif not self._is_too_large:
            self._is_too_large, self._parts = True, []
            self._over()

    def _keep(self) -> None:
        if not self._is_too_large:
            self._entry.set_body(b"".join(self._parts))
            self._is_kept, self._parts = True, []
            self._cache.store.keep(self._key, self._entry, self._mark, self._over)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        try:
            while self._unsent or not self._is_complete:
                if self._unsent:
                    yield self._unsent.popleft()
                else:
                    await self._pull()
        finally:
            self._is_left = True
            if self._task is None or self._task.done():
                self._end()

    def hurry(self) -> None:
        """Read it whatever its client takes: others wait for it."""
        if self._task is None and len(self._all_ahead) < AHEAD_MAX:
            self._all_ahead.add(self)
            self._task = asyncio.ensure_future(self._read_ahead())

    async def _read_ahead(self) -> None:
        try:
            with suppress(Exception):  # its client is told
                await self._read()
        finally:
            if not self._is_kept:
                self._over()
            if self._is_left:
                self._end()

    async def _read(self) -> None:
        while not (self._is_complete or self._is_too_large):
            await self._pull(ahead=True)

    async def fill(self) -> None:
        """Have it stored without sending it."""
        try:
            await self._read()
        finally:
            self._end()

    def _end(self) -> None:
        self._all_ahead.discard(self)
        self._unsent.clear()
        if not self._is_kept:
            self._over()
        _close_body(self._body)

    def __del__(self) -> None:
        if not self._is_kept:
            self._over()


class _Flight:
    """A request that is under way, for which the same ones wait."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._content: ref[_Content] | None = None
        """Its end is noticed here if no client takes it."""
        self._is_waited_for = False

    @property
    def is_over(self) -> bool:
        """Whether its response is stored, or will not be."""
        return self._event.is_set()

    def end(self) -> None:
        """Its response is stored, or will not be."""
        self._event.set()

    def has(self, content: _Content) -> None:
        """Its response has come."""
        if not self.is_over:
            self._content = ref(content)
            self._hurry()

    def _hurry(self) -> None:
        content = None if self._content is None else self._content()
        if self._is_waited_for and content is not None:
            content.hurry()

    async def wait(self) -> None:
        """Wait for its end, but not for a client that takes it slowly."""
        self._is_waited_for = True
        self._hurry()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._event.wait(), COLLAPSED_S)


def _is_bypassed(request: Request) -> bool:
    return ForwardRules.has_body(request) or any(
        request.header(name) is not None for name in _BYPASSED
    )


def _asked(request: Request) -> Directives:
    if request.header("cache-control") is not None:
        return directives(request.headers.getlist("cache-control"))
    return {"no-cache": None} if "no-cache" in request.header("pragma", "").lower() else {}


def _close_body(body: Any) -> None:
    if (close := getattr(body, "close", None)) is not None:
        close()


def _close(response: Response) -> None:
    _close_body(response.body)


async def _drain(response: Response) -> None:
    """Reads a response to its end, so that its connection can be used again."""
    body: Any = response.body
    if isinstance(body, bytes):
        return
    async for _ in body:
        pass
