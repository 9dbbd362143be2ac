"""What a coroutine awaits: one statement, and how its result comes back from the thread of a connection.

A call goes from NEW to QUEUED (in a queue), RUNNING (a thread has it) and DONE; to OVER when its caller waits
no more. The engine's lock guards the changes that a thread makes. Results are handed over in batches: one
wakeup of the event loop for all that are ready.
"""

from __future__ import annotations

import asyncio
import enum
import os
from collections import deque
from typing import TYPE_CHECKING, Any

from citius.databases.forks import OPENED_BEFORE
from citius.databases.statements import Call
from citius.sqlite.errors import PoolClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from queue import SimpleQueue

    from citius._core import ClientOperation
    from citius.sqlite.engine import Engine
    from citius.sqlite.sessions import Session
    from citius.sqlite.threads import Lease

    Work = Callable[[Session], Any]


class State(enum.Enum):
    """Where a call is."""

    NEW = enum.auto()
    QUEUED = enum.auto()
    RUNNING = enum.auto()
    DONE = enum.auto()
    OVER = enum.auto()


class Block:
    """What a transaction and its statements know of each other."""

    is_over = False


class ThreadCall(Call[Any]):
    """A statement; it is executed when it is awaited, or by ``start``.

    Args:
        engine: Where it is executed.
        queue: By which connections: the queue that their threads read.
        work: What is done with a connection, in its thread; ``None`` lends the thread to the caller.
        discard: Called with a result that comes when its caller waits no more.
        text: What is executed, if it is a statement that is measured.
        batch: How often.
        lease: The block of whose connection it is; ``None`` for a connection that is shared.
        block: The block that makes it: behind its end it is not executed.
        owns: Whether it has the connection to itself, and may change it.
    """

    def __init__(
        self,
        engine: Engine,
        queue: SimpleQueue[ThreadCall | None],
        work: Work | None,
        discard: Callable[[Any], None] | None = None,
        *,
        text: str = "",
        batch: int = 1,
        lease: Lease | None = None,
        block: Block | None = None,
        owns: bool = False,
    ) -> None:
        self._engine, self.queue, self.work, self._discard = engine, queue, work, discard
        self.lease, self.block, self.owns = lease, block, owns
        self.state = State.NEW
        self.expires_at = 0.0
        self.is_counted = False
        self._text, self._batch = text, batch
        self._operation: ClientOperation | None = None
        self._future: asyncio.Future[Any] | None = None
        self._caller: asyncio.AbstractEventLoop | None = None
        """The loop of the code that waits; ``None`` if it is that of the pool."""
        self._is_awaited = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._steps: Generator[Any, None, Any] | None = None

    def start(self) -> None:
        """Execute it without waiting for its result.

        Raises:
            PoolClosed: The pool is not open.
            PoolExhausted: Too many statements wait.
        """
        if self.state is not State.NEW:
            return
        engine = self._engine
        if engine.process != os.getpid():
            raise RuntimeError(OPENED_BEFORE)
        if engine.metrics is not None and self._text:
            self._operation = engine.metrics.begin()
        here = asyncio.get_running_loop()
        if here is engine.loop:
            engine.submit(self)
        else:
            # Of another reactor of this worker: the loop of the pool has the queues.
            self._caller, self.state = here, State.QUEUED
            try:
                engine.loop.call_soon_threadsafe(engine.submit_from_elsewhere, self)
            except RuntimeError:
                raise PoolClosed("the pool is closed") from None
        self._future = here.create_future()

    # --- a coroutine, for `asyncio.create_task` and the like ---

    def __await__(self) -> Generator[Any, None, Any]:
        self._steps = steps = self._wait()
        return steps

    def send(self, value: None, /) -> object:
        """Go on."""
        if self._steps is None:
            self._steps = self._wait()
        return self._steps.send(value)

    def throw(self, error: Any, /, *_rest: Any) -> object:
        """Raise in the code that waits."""
        if self._steps is None:
            self._steps = self._wait()
        return self._steps.throw(error)

    def close(self) -> None:
        """Stop waiting."""
        if self._steps is not None:
            self._steps.close()
        self._give_up()

    def _wait(self) -> Generator[Any, None, Any]:
        self.start()
        if self._is_awaited or self._future is None:
            raise RuntimeError(
                "this statement has been awaited already; call the method again for another one"
            )
        self._is_awaited = True
        try:
            result = yield from self._future
        except BaseException:
            self._give_up()
            raise
        finally:
            self._steps = None
        self._future = None
        return result

    def _give_up(self) -> None:
        """The caller waits no more: a result that has come, and that it has not got, is discarded."""
        self._engine.abandon(self)
        future, self._future = self._future, None
        if future is None or not future.done() or future.cancelled():
            return
        if self._discard is not None and future.exception() is None:
            self._discard(future.result())

    def measure(self, error: str | None) -> None:
        """Say that it has ended, on the loop of the pool: ``error`` is a word for what went wrong."""
        operation, self._operation = self._operation, None
        if operation is not None:
            operation.end(self._text, batch=self._batch, error=error)

    # --- of the thread, and back in the loop ---

    def put(self, result: Any, error: BaseException | None = None) -> None:
        """Keep what came out."""
        if isinstance(error, (StopIteration, StopAsyncIteration)):
            # Where the call is awaited it would be the result, or the end of a loop.
            name = type(error).__name__
            raised = RuntimeError(f"a class or a parameter has raised {name}")
            raised.__cause__ = error
            error = raised
        self._result, self._error = result, error

    def settle(self) -> None:
        """Hand it over, in the loop of the pool."""
        if self._operation is not None:
            error = self._error
            word = None if error is None else getattr(error, "name", "") or type(error).__name__
            self.measure("cancelled" if self.state is State.OVER else word)
        if self._caller is None:
            return self._hand_over()
        try:
            self._caller.call_soon_threadsafe(self._hand_over)
        except RuntimeError:  # the caller's loop is closed
            self.state = State.OVER
            self._hand_over()

    def _hand_over(self) -> None:
        result, error = self._result, self._error
        self._result = self._error = None
        is_wanted, self.state = self.state is not State.OVER, State.DONE
        future = self._future
        if not is_wanted or future is None or future.done():
            if self._discard is not None and error is None:
                self._discard(result)
        elif error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
            # A caller that only started it does not look.
            future.exception()


class Outbox:
    """Calls that threads have done, on their way to the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done: deque[ThreadCall] = deque()
        self._is_scheduled = False

    def post(self, call: ThreadCall) -> None:
        """Have the loop settle a call; from any thread."""
        self._done.append(call)
        # The loop sets it to False before it looks for calls: this one is seen.
        if not self._is_scheduled:
            self._is_scheduled = True
            try:
                self._loop.call_soon_threadsafe(self._settle)
            except RuntimeError:  # the loop is closed: no code waits
                self._done.clear()

    def _settle(self) -> None:
        self._is_scheduled = False
        while self._done:
            self._done.popleft().settle()
