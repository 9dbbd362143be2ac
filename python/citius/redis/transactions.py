"""Commands that are done all at once: ``MULTI`` and ``EXEC``, sent in one piece when the block ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from citius.redis.commands import Commands
from citius.redis.commands.base import Data
from citius.redis.errors import BlockEnded, not_sent
from citius.redis.serial import refuse_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from citius._core import RedisCall, RedisClient, RedisConnection
    from citius.redis.calls import Call
    from citius.redis.commands.base import Word


class Transaction(Commands[Data]):
    """``async with redis.transaction() as tx: total = tx.incr("n")``, and behind the block ``await total``.

    Nothing is sent before the end of the block, and nothing if it raises: then each of its calls raises
    ``BlockEnded``. If the transaction fails, each raises what the end of the block has raised. ``with`` does
    the same in a thread or a greenlet.
    """

    def __init__(
        self,
        core: RedisClient,
        connection: RedisConnection | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._core, self._connection, self._check = core, connection, check
        self._calls: list[RedisCall] = []
        self._is_over = False

    def _call(
        self,
        *words: Word,
        as_: Any = None,
        then: Callable[[Any], Any] | None = None,
        blocks_ms: int | None = None,
        node: int | None = None,
    ) -> Call[Any]:
        if self._is_over:
            raise self.not_open()
        call = self._core.execute(*words, as_=as_, then=then)
        call.hold()
        self._calls.append(call)
        return call

    def not_open(self) -> BaseException:
        """What a method raises behind the block."""
        return BlockEnded("the transaction is over: its block has ended")

    def _finish(self, error: BaseException | None) -> Call[Any] | None:
        self._is_over = True
        if error is not None:
            for call in self._calls:
                call.fail(not_sent(error))
            return None
        if not self._calls:
            return None
        try:
            self._check()
        except BlockEnded as ended:
            for call in self._calls:
                call.fail(ended)
            raise
        return self._core.transaction(self._calls, self._connection)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if (call := self._finish(error)) is not None:
            await call

    def __enter__(self) -> Self:
        refuse_loop("with", "async with")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if (call := self._finish(error)) is not None:
            call.wait()
