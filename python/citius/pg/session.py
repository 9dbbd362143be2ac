"""One session: its socket, and who carries its bytes: the reactor on this loop, or the loop itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from citius._core import PgConnection
from citius.databases import forks
from citius.observability import logging
from citius.pg.errors import PostgresError, ProtocolError, ServerError
from citius.pg.types import look_up
from citius.process import reactors
from citius.process.carrying import Carried
from citius.process.homes import LoopHome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius._core import PgPool, PgTypes
    from citius.pg.connecting import Link
    from citius.pg.types import Codec


_NO_TRANSACTION = "25P01"
# What a server may say of itself (ParameterStatus). PostgreSQL 18 names 15, and an extension may add its own.
_PARAMETERS_MAX = 1000


def log_notice(notice: ServerError) -> None:
    """Log what the server remarks: warnings as warnings, the rest as information."""
    log = logging.warning if notice.severity == "WARNING" else logging.info
    log(f"PostgreSQL: {notice.severity}: {notice}")


class Session(Carried[PgConnection, LoopHome]):
    """A connection to the server, whose socket is there."""

    def __init__(
        self, pool: PgPool, types: PgTypes, link: Link, on_closed: Callable[[Session], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(LoopHome(self._loop), link.socket)
        self._pool, self._types = pool, types
        self._lookups: set[asyncio.Task[None]] = set()
        self._on_closed = on_closed
        self._is_flushing = self._is_paused = False
        self._holds = 0
        self._drained: asyncio.Future[None] | None = None
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self.parameters: dict[str, str] = {}
        self.on_notification: Callable[[str, str, int], None] | None = None
        self.on_notice: Callable[[ServerError], None] = log_notice
        self.codecs: Sequence[Codec[Any]] = ()
        """Those of its pool, for types that are found to have been made anew."""
        self.is_closed = self.is_cancelling = False
        self.copying: tuple[str, int] | None = None
        """While a COPY waits for the server: the event for which the server would wait then if it were not
        connected any more, and the chunk. ``None`` while it waits for its source or consumer."""
        self.copies: set[Callable[[], None]] = set()
        """What ends each COPY that goes on, if the block around it is rolled back."""
        self.judges_texts = True
        """Whether the texts of statements decide what is undone of the session."""
        self.target = target = link.target
        self.address = link.address
        self.is_secured = link.tls is not None
        parameters = list(target.parameters)
        login = (target.user, target.password, target.database, parameters, target.channel_binding)
        tls = (link.tls, target.host) if link.tls is not None else None
        self.core = PgConnection(pool, login, self._listen, self._wake, tls)
        forks.hold(self)

    async def open(self) -> None:
        """Log in.

        Raises:
            PostgresError: The server refuses the login, or does not speak the protocol.
        """
        try:
            self._watch()
            self._wake()
            await self._opened
            if getattr(self._loop, "carried_by_reactor", True):
                self._follow()
        except BaseException:
            self.close()
            raise

    @property
    def is_idle(self) -> bool:
        """Nothing is under way, and no cancel request either."""
        return not (self.core.load or self.is_cancelling or self.is_closed)

    def close(self) -> None:
        """Say goodbye and close."""
        if self.is_closed:
            return
        self.core.terminate()
        if self._reactor is not None:
            self._move(None)
        self._flush()
        self.core.end("it was closed")
        if not self.is_closed:
            # Called back by its own work, behind which it ends.
            self._close_socket()
            self._on_closed(self)

    def give_up(self, why: str) -> None:
        """Close it, because the server does not respond: what is under way is lost."""
        if not self.is_closed:
            logging.warning(f"PostgreSQL: a session with the {self.target} is closed: {why}")
            self.core.end(why)

    def leave(self) -> None:
        """Close the socket, and ask nothing of the loop."""
        self.is_closed = True
        super().leave()

    # --- for streams: the loop carries the bytes, so that reading can wait ---

    def hold(self) -> None:
        """Have the loop carry the bytes until ``let_go``."""
        self._holds += 1
        self._move(None)

    def let_go(self) -> None:
        """Undo ``hold``; another COPY may have it held yet."""
        self._holds -= 1
        if not self.is_closed and getattr(self._loop, "carried_by_reactor", True):
            self._move(reactors.current())

    def cut_copies(self) -> None:
        """End what waits for a source or a consumer: the block around it is rolled back."""
        for cut in self.copies:
            cut()

    def pause_reading(self) -> None:
        """Let the server wait."""
        self._is_paused = True
        self._watch()

    def resume_reading(self) -> None:
        """Undo ``pause_reading``."""
        self._is_paused = False
        self._watch()

    def _wants_input(self) -> bool:
        return not self._is_paused

    def _may_be_carried(self) -> bool:
        return not self._holds

    async def drained(self) -> None:
        """Send, and wait until the socket has taken it."""
        self._flush()
        # A source that never waits leaves the loop to others here.
        await asyncio.sleep(0)
        while self._unsent and not self.is_closed:
            self._drained = self._loop.create_future()
            await self._drained

    def _close_socket(self) -> None:
        self.is_closed = True
        if (made := self._release()) is not None:
            made.close()
        self._tell_drained()

    def _tell_drained(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _listen(self, kind: str, value: object) -> None:
        if kind == "open":
            if not self._opened.done():
                self._opened.set_result(None)
        elif kind == "parameter":
            self._learn(*cast("tuple[str, str]", value))
        elif kind == "types":
            task = self._loop.create_task(self._look_up(cast("list[int]", value)))
            self._lookups.add(task)
            task.add_done_callback(self._lookups.discard)
        elif kind == "notification":
            if self.on_notification is not None:
                self.on_notification(*cast("tuple[str, str, int]", value))
        elif kind == "notice":
            self._hear(cast("ServerError", value))
        elif kind == "closed":
            assert isinstance(value, BaseException)
            if not self._opened.done():
                self._opened.set_exception(value)
                # A caller may have stopped waiting.
                self._opened.exception()
                # The peer is told what is wrong with its TLS.
                self._flush()
            if not self.is_closed:
                self._close_socket()
                self._on_closed(self)

    def _learn(self, parameter: str, value: str) -> None:
        if len(self.parameters) >= _PARAMETERS_MAX and parameter not in self.parameters:
            return self.core.end(f"the server names more than {_PARAMETERS_MAX} parameters")
        self.parameters[parameter] = value
        self._check(parameter, value)

    def _check(self, parameter: str, value: str) -> None:
        """End the session if its texts are read otherwise than here from now on."""
        if parameter == "client_encoding" and value != "UTF8":
            # Texts of other statements would be read and written wrong.
            self.core.end(f"client_encoding was set to {value}, and texts are UTF-8 here")
        is_other = parameter == "standard_conforming_strings" and value == "off"
        # Where a session is connected with it, `refuse_other_texts` says what to do.
        if is_other and self.judges_texts and self._opened.done():
            self.core.end(
                "standard_conforming_strings was set to off, and a backslash would hide what a statement does"
            )

    def _hear(self, notice: ServerError) -> None:
        # A block is rolled back whether the server has begun it or not.
        if notice.sqlstate != _NO_TRANSACTION:
            self.on_notice(notice)

    async def _look_up(self, asked: list[int]) -> None:
        version = self.parameters.get("server_version", "")
        try:
            await look_up(self._pool, self._types, self.core, asked, version, self.codecs)
        except PostgresError as error:
            # Text in the place of a value would be wrong data.
            self.core.fail_types(error)
        except Exception as error:  # of any kind: statements wait for it
            why = f"the server does not say what its types are: {error!r}"
            self.core.fail_types(ProtocolError(why))
        else:
            self.core.know_types()

    def _wake(self) -> None:
        if not self._is_flushing and not self.is_closed:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        super()._flush()
        if not self._unsent:
            self._tell_drained()
