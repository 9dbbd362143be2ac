"""What a coroutine awaits: one statement, and how its result comes back from the thread of a connection.

A call goes from NEW to QUEUED (in a queue), RUNNING (a thread has it) and DONE; to OVER when its caller waits
no more. The engine's lock guards the changes that a thread makes. Results are handed over in batches: one
wakeup of the event loop for all that are ready.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import TYPE_CHECKING, Any

from citius.databases.statements import Call

if TYPE_CHECKING:
    import asyncio
    import sqlite3
    from collections.abc import Callable, Generator
    from queue import SimpleQueue

    from citius.sqlite.engine import Engine

    Work = Callable[[sqlite3.Connection], Any]


class State(enum.Enum):
    """Where a call is."""

    NEW = enum.auto()
    QUEUED = enum.auto()
    RUNNING = enum.auto()
    DONE = enum.auto()
    OVER = enum.auto()


class ThreadCall(Call[Any]):
    """A statement; it is executed when it is awaited, or by ``start``.

    Args:
        engine: Where it is executed.
        queue: By which connections: the queue that their threads read.
        work: What is done with a connection, in its thread; ``None`` lends the thread to the caller.
        discard: Called with a result that comes when its caller waits no more.
    """

    def __init__(
        self,
        engine: Engine,
        queue: SimpleQueue[ThreadCall | None],
        work: Work | None,
        discard: Callable[[Any], None] | None = None,
    ) -> None:
        self._engine, self.queue, self.work, self._discard = engine, queue, work, discard
        self.state = State.NEW
        self.expires_at = 0.0
        self.is_counted = False
        self._future: asyncio.Future[Any] | None = None
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
        if self.state is State.NEW:
            self._engine.submit(self)
            self._future = self._engine.loop.create_future()

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
        self._engine.abandon(self)

    def _wait(self) -> Generator[Any, None, Any]:
        self.start()
        if self._is_awaited or self._future is None:
            raise RuntimeError(
                "this statement has been awaited already; call the method again for another one"
            )
        self._is_awaited = True
        try:
            return (yield from self._future)
        finally:
            self._engine.abandon(self)
            self._steps = None

    # --- of the thread, and back in the loop ---

    def put(self, result: Any, error: BaseException | None = None) -> None:
        """Keep what came out."""
        self._result, self._error = result, error

    def settle(self) -> None:
        """Hand it over, in the loop."""
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
