"""Commands that are done all at once: ``MULTI`` and ``EXEC``, sent in one piece when the block ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from citius.redis.commands import Commands
from citius.redis.commands.base import Data
from citius.redis.serial import refuse_loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from citius._core import RedisCall, RedisClient, RedisConnection
    from citius.redis.calls import Call
    from citius.redis.commands.base import Word


class Transaction(Commands[Data]):
    """``async with redis.transaction() as tx: total = tx.incr("n")``, and behind the block ``await total``.

    Nothing is sent before the end of the block, and nothing if it raises. ``with`` does the same in a thread
    or a greenlet.
    """

    def __init__(self, core: RedisClient, connection: RedisConnection | None = None) -> None:
        self._core, self._connection = core, connection
        self._calls: list[RedisCall] = []
        self._is_over = False

    def _call(
        self,
        *words: Word,
        as_: Any = None,
        then: Callable[[Any], Any] | None = None,
        blocks_ms: int | None = None,
    ) -> Call[Any]:
        if self._is_over:
            raise self.not_open()
        call = self._core.execute(*words, as_=as_, then=then)
        call.hold()
        self._calls.append(call)
        return call

    def not_open(self) -> BaseException:
        """What a method raises behind the block."""
        return RuntimeError("the transaction is over: its block has ended")

    def _finish(self, error: BaseException | None) -> Call[Any] | None:
        self._is_over = True
        if error is not None or not self._calls:
            return None
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
