"""One connection: its socket, and who carries its bytes: the reactor on this thread, or the client's home."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from citius._core import RedisConnection
from citius.databases import forks
from citius.process.carrying import Carried
from citius.redis.homes import Promise, no_response

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from citius._core import RedisClient
    from citius.redis.homes import Home
    from citius.redis.urls import Address, Target

Kind = Literal["shared", "blocking", "subscriber", "sentinel", "probe"]


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says of itself."""

    version: str
    mode: str
    """``standalone``, ``cluster`` or ``sentinel``."""
    role: str
    """``master`` or ``replica``."""


class Link(Carried[RedisConnection, "Home"]):
    """A connection whose socket is there; opened, it has logged in."""

    closed_by_peer = "the server has closed it"

    def __init__(
        self,
        home: Home,
        client: RedisClient,
        made: socket.socket,
        target: Target,
        kind: Kind,
        *,
        node: int = 0,
        is_tracking: bool = False,
        is_anywhere: bool = False,
        on_closed: Callable[[Link, BaseException], object],
        on_push: Callable[[list[Any]], object] | None = None,
        on_refused: Callable[[BaseException], object] | None = None,
    ) -> None:
        super().__init__(home, made)
        self._opened: Promise[Server] = Promise(home)
        self._on_closed, self._on_push, self._on_refused = on_closed, on_push, on_refused
        self.address: Address = target.addresses[0]
        self.node, self.kind = node, kind
        self.is_open = self.is_closed = False
        self.is_closed_here = False
        """It has ended because the client wanted it to."""
        self.is_retired = False
        """It is closed when its caller gives it back."""
        self.is_anywhere = is_anywhere
        """Any node of a cluster would do."""
        self.is_doubted = False
        """Whether the server responds to others is being found out."""
        self.opened_at = 0.0
        self.server = Server("", "", "")
        is_sentinel = kind == "sentinel"
        self.core = RedisConnection(
            client,
            node,
            # Sentinels have users and passwords of their own.
            (
                target.sentinel_user if is_sentinel else target.user,
                target.sentinel_password if is_sentinel else target.password,
                target.client_name,
                0 if is_sentinel else target.database,
            ),
            self._listen,
            self._wake,
            tls=None
            if target.tls is None
            else (target.tls.load(), self.address.host or "localhost"),
            is_tracking=is_tracking,
            subscribes=on_push is not None,
        )
        forks.hold(self)

    async def open(self, timeout_s: float) -> None:
        """Log in.

        Raises:
            RedisError: The server refuses the login, does not speak RESP3, or does not respond in time.
        """
        cancel = self._home.later(timeout_s, lambda: self._expire(timeout_s))
        try:
            self._watch()
            self._flush()
            self.server = await self._home.result(self._opened)
            if not self.is_closed:
                self.is_open, self.opened_at = True, time.monotonic()
                self._follow()
        except BaseException:
            self.close()
            raise
        finally:
            cancel()

    def close(self, why: str = "it was closed") -> None:
        """Send what is left, and close."""
        if self.is_closed:
            return
        self.is_closed_here = True
        if self._reactor is not None:
            self._move(None)
        self._flush()
        self.core.end(why)

    def leave(self) -> None:
        """Close the socket, and ask nothing of the loop."""
        self.is_closed = True
        super().leave()

    def _expire(self, timeout_s: float) -> None:
        self._opened.resolve(error=no_response(self.address, timeout_s))

    def _close_socket(self) -> None:
        self.is_closed = True
        if (made := self._release()) is not None:
            made.close()

    # --- what the extension tells ---

    def _listen(self, kind: str, value: object) -> None:
        if kind == "open":
            self._opened.resolve(Server(*cast("tuple[str, str, str]", value)))
        elif kind == "push":
            if self._on_push is not None:
                self._take(self._on_push, cast("list[Any]", value))
        elif kind == "refused":
            if self._on_refused is not None:
                self._on_refused(cast("BaseException", value))
        elif kind == "closed":
            error = cast("BaseException", value)
            if not self._opened.is_done:
                # The peer is told what is wrong with its TLS.
                self._flush()
                self._opened.resolve(error=error)
            if not self.is_closed:
                self._close_socket()
                self._on_closed(self, error)

    def _take(self, on_push: Callable[[list[Any]], object], push: list[Any]) -> None:
        """Have what came unasked read; a connection ends whose server says what has no meaning."""
        try:
            on_push(push)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            self.core.end(f"the server has said what cannot be read: {error!r}")

    def _wake(self) -> None:
        self._home.run(self._flush)
