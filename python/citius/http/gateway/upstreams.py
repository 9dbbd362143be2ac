"""Several servers for the same requests: which one gets the next, and which are left alone for a while.

A server is left alone after ``failures`` requests in a row that it did not answer, or while its checks fail.
If that holds for all, requests go to all: one of them may be there again. Tests:
``tests/http/gateway/test_upstreams.py``.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from citius._core import ForwardServer, ForwardServers
from citius.errors import ConfigError
from citius.http import urls
from citius.http.client import Client
from citius.http.errors import InvalidURL, PoolTimeout, RequestError
from citius.http.options import Timeout
from citius.observability.logging import info, warning
from citius.unknown_options import check_value, known_options
from citius.web.declarations.checks import check_callback

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable

    from citius._core import Request
    from citius.http.gateway.forwarding import Forwarder
    from citius.http.urls import URL

    Balance: TypeAlias = Literal["round_robin", "least_requests", "hash"]

_POOL_PART: Final = 0.9
"""How much of a check's time it may wait for a connection."""
BALANCES: Final = ("round_robin", "least_requests", "hash")


@known_options
@dataclass(frozen=True, slots=True)
class Checks:
    """Requests that find out whether a server is there.

    Args:
        path: What is asked for; a status below 400 is right.
        every_s: How often.
        timeout_s: How long an answer may take, to its last byte.
        failures: Failures in a row after which a server gets no requests.
        successes: Right answers in a row after which it gets them again.
    """

    path: str
    every_s: float = 5.0
    timeout_s: float = 2.0
    failures: int = 2
    successes: int = 2

    def __post_init__(self) -> None:
        if not self.path.startswith("/"):
            raise ConfigError(f"Checks(path=…) begins with a slash, got {self.path!r}")
        for name in ("every_s", "timeout_s", "failures", "successes"):
            if not getattr(self, name) > 0:
                raise ConfigError(
                    f"Checks({name}=…) must be more than 0, got {getattr(self, name)}"
                )


class Server:
    """One of several servers; ``state`` is what the extension knows of it."""

    __slots__ = ("checked", "state", "url")

    def __init__(self, url: URL) -> None:
        self.url, self.state = url, ForwardServer()
        self.checked = 0
        """Checks in a row that say otherwise than before."""


@known_options
class Upstreams:
    """Servers that serve the same.

    Args:
        servers: Their URLs, without a path.
        client: What calls them; one of its own without it.
        balance: ``"round_robin"``, ``"least_requests"``: the one with the fewest under way; ``"hash"``: the
            same one for the same ``key``, as long as it is there.
        key: For ``balance="hash"``: the name of a field, ``":path"`` for path and query, or what makes a
            text of a request. Requests without the field go to the servers in turn.
        failures: Requests in a row without a response after which a server is left alone.
        failed_s: For how long.
        checks: Requests that find out whether a server is there.

    Raises:
        ConfigError: An option cannot work.
    """

    def __init__(
        self,
        servers: Iterable[str],
        *,
        client: Client | None = None,
        balance: Balance = "round_robin",
        key: str | Callable[[Request], str] | None = None,
        failures: int = 3,
        failed_s: float = 10.0,
        checks: Checks | None = None,
    ) -> None:
        self.servers = [Server(_origin_of(text)) for text in servers]
        if not self.servers:
            raise ConfigError("Upstreams: expected at least one server")
        if len({one.url.origin for one in self.servers}) < len(self.servers):
            raise ConfigError("Upstreams: a server is there twice")
        if balance not in BALANCES:
            raise ConfigError(
                f"Upstreams(balance=…) is one of {', '.join(BALANCES)}, got {balance!r}"
            )
        if (balance == "hash") != (key is not None):
            raise ConfigError("Upstreams: balance='hash' and key= need one another")
        if isinstance(key, str) and key != ":path" and not _is_name(key):
            raise ConfigError(f"Upstreams(key=…) is the name of a field or ':path', got {key!r}")
        if key is not None and not isinstance(key, str):
            check_callback(key, "Upstreams(key=…)", "request")
        if failures < 1 or not failed_s > 0:
            raise ConfigError("Upstreams: failures= must be at least 1, and failed_s= more than 0")
        self.client = check_client(client) if client is not None else Client(trust_env=False)
        self._owns_client = client is None
        self._key = None if isinstance(key, str) else key
        self._failures, self._failed_s, self._checks = failures, failed_s, checks
        self._all = ForwardServers(
            [one.state for one in self.servers],
            balance,
            names=[one.url.origin for one in self.servers],
            key=key if isinstance(key, str) else None,
        )
        self.plain_forwarder: Forwarder | None = None
        """What ``forward`` without further arguments has made of it."""
        self._checking: list[asyncio.Task[None]] = []

    # --- choosing ---

    def choose(self, request: Request, without: Collection[Server] = ()) -> Server | None:
        """The server for a request that is none of ``without``."""
        tried = [self.servers.index(one) for one in without]
        if self._key is None:
            at = self._all.choose(tried, request)
        else:
            key = self._key(request).encode("utf-8", "surrogateescape")
            at = self._all.choose_hashed(key, tried)
        return None if at is None else self.servers[at]

    @property
    def direct_servers(self) -> ForwardServers | None:
        """The servers as the extension chooses among them; ``None``: it takes Python to choose."""
        return self._all if self._key is None else None

    def failed(self, server: Server, error: RequestError) -> None:
        """It has not responded."""
        failed = server.state.unanswered()
        if failed < self._failures or len(self.servers) == 1:
            return
        if server.state.leave_alone(round(self._failed_s * 1000)):
            warning(
                f"{server.url.origin} has not answered {failed} requests in a row, and gets none "
                f"for {self._failed_s:g} s: {error}"
            )

    # --- draining ---

    def drain(self, server: str, *, drains: bool = True) -> None:
        """Send ``server`` no more requests; those that are under way go on. ``drains=False`` undoes it.

        Raises:
            ValueError: It is none of the servers.
        """
        check_value("upstreams.drain", "drains", drains, "bool")
        self._named(server).state.is_draining = drains

    def stats(self) -> dict[str, dict[str, object]]:
        """The servers: requests under way, and whether they get any."""
        return {
            one.url.origin: {
                "requests": one.state.requests,
                "usable": one.state.is_usable and not one.state.is_draining,
                "draining": one.state.is_draining,
            }
            for one in self.servers
        }

    def _named(self, server: str) -> Server:
        origin = _origin_of(server).origin
        for one in self.servers:
            if one.url.origin == origin:
                return one
        raise ValueError(f"{server} is none of the servers")

    # --- life ---

    async def start(self) -> None:
        """Begin to check; ``app.forward`` does it with the application."""
        if self._checks is not None and not self._checking:
            self._checking = [
                asyncio.ensure_future(self._check(one, self._checks)) for one in self.servers
            ]

    async def stop(self) -> None:
        """End checking, and the client if it is its own."""
        checking, self._checking = self._checking, []
        for task in checking:
            task.cancel()
        for task in checking:
            with suppress(asyncio.CancelledError):
                await task
        if self._owns_client:
            await self.client.close()

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncGenerator[None]:
        """For ``App(lifespan=upstreams.lifespan)``, where a handler passes requests on."""
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def _check(self, server: Server, checks: Checks) -> None:
        url = server.url.origin + checks.path
        # A server whose connections are all in use is not asked: that says nothing of it.
        timeout = Timeout(
            checks.timeout_s, pool=_POOL_PART * checks.timeout_s, total=checks.timeout_s
        )
        while True:
            try:
                response = await self.client.get(url, timeout=timeout)
                why = "" if response.status_code < 400 else f"status {response.status_code}"
            except PoolTimeout:
                why = None
            except RequestError as error:
                why = str(error)
            if why is not None:
                self._checked(server, checks, why)
            await asyncio.sleep(checks.every_s)

    def _checked(self, server: Server, checks: Checks, why: str) -> None:
        """What a check has found: nothing, or why the server is not there."""
        if (not why) == server.state.is_up:
            server.checked = 0
            return
        server.checked += 1
        if server.checked < (checks.failures if why else checks.successes):
            return
        server.state.is_up, server.checked = not why, 0
        if why:
            warning(f"{server.url.origin} fails its checks, and gets no requests: {why}")
        else:
            server.state.answered()
            info(f"{server.url.origin} passes its checks, and gets requests again")


def _is_name(text: str) -> bool:
    return text.isascii() and text.replace("-", "").replace("_", "").isalnum()


def _origin_of(text: str) -> URL:
    try:
        url = urls.parse(text)
    except InvalidURL as error:
        raise ConfigError(f"expected the URL of a server, got {text!r}: {error}") from None
    if url.target not in ("", "/") or url.username or url.password or url.fragment:
        raise ConfigError(
            f"expected the URL of a server without path, query and credentials, got {text!r}"
        )
    return url


def check_client(client: Client) -> Client:
    """A client that passes requests on.

    Raises:
        ConfigError: It has options that are for requests of its own.
    """
    if client.of_requests:
        raise ConfigError(
            f"requests are passed on as they are: {', '.join(client.of_requests)} of the client has no "
            "meaning for them; give a client without it"
        )
    if client.base is not None:
        check_no_credentials(client.base)
    return client


def check_no_credentials(url: URL) -> None:
    """Refuse the URL of a server with a name and a password, which no request that is passed on would have.

    Raises:
        ConfigError: It has.
    """
    if url.username or url.password:
        raise ConfigError(
            f"requests for {url.origin} are passed on as they are, without the credentials in the URL: write "
            'headers={"authorization": "Basic …"}'
        )


def client_of(given: Any) -> Client:
    """What was given in place of upstreams."""
    if isinstance(given, Client):
        return check_client(given)
    raise ConfigError(f"expected a citius.http.Client or Upstreams, got {given!r}")
