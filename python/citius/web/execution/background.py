"""Work after the response: ``defer`` calls a function when the handler and its dependencies have ended.

The extension holds what a handler defers until the request is concluded (citius-py/src/held_calls.rs), and
dependencies with a ``yield`` hold it until they have ended (``held``).
An ``async def`` runs as a task of the loop, a ``def`` in a thread. When the server stops, deferred work is
waited for, ``DRAIN_S`` at most, before the shutdown hooks run; what takes longer is cancelled. It is lost if
the process is killed: work that must be done needs a queue that outlives it. Tests:
tests/server/test_background.py.
"""

from __future__ import annotations

import asyncio
import threading
from asyncio import _get_running_loop  # pyright: ignore[reportPrivateUsage]
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from inspect import CO_COROUTINE
from time import monotonic
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, ref

from citius._core import HeldCalls, Request
from citius.coroutines import contained
from citius.errors import ServiceUnavailable, comes_from_disconnection
from citius.observability.logging import log_exception, warning
from citius.web.declarations.checks import describe
from citius.web.declarations.parameters.unread_markers import refuse_unread_markers
from citius.web.declarations.type_kinds import is_async

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from concurrent.futures import Future
    from contextvars import Context

    Settled = asyncio.Future[Any] | Future[Any]
    _HeldCall = tuple[partial[Any], AbstractEventLoop | None, Context]

_P = ParamSpec("_P")
_ResultT = TypeVar("_ResultT")

DRAIN_S: Final = 10.0
"""Seconds that deferred work may take when the server stops. Exceeded: it is cancelled, and logged."""

PENDING_MAX: Final = 10_000
"""Deferred calls of a process that are not done. Exceeded: the request gets 503."""

THREADS_MAX: Final = 8
"""Threads of a process for deferred ``def`` functions."""


def defer(
    request: Request,
    function: Callable[_P, Awaitable[object]] | Callable[_P, object],
    *args: _P.args,
    **keywords: _P.kwargs,
) -> None:
    """Call ``function`` behind the response, whether or not its client waits for it.

    It is called when the handler, the stream that it has returned and the request's dependencies have ended;
    not at all if one of them has failed or the handler was cancelled. What is deferred later is called soon,
    and so is what the handler of a WebSocket or of a session defers, which has no response to wait for.

    Args:
        request: The request whose handler defers.
        function: An ``async def`` can be deferred where a loop runs: not from a blocking handler.
        args: What it is called with.
        keywords: What it is called with by name.

    Raises:
        ServiceUnavailable: ``PENDING_MAX`` calls are not done yet.
        RuntimeError: There is no running loop for an ``async def``.
        TypeError: A default of it is a marker, such as ``Depends(f)``, and no value is given in its place.
    """
    plain: Any = function
    loop: AbstractEventLoop | None
    # This runs for each request: no call for what most functions are.
    if (
        type(plain) is FunctionType
        and plain.__code__.co_flags & CO_COROUTINE
        and not (plain.__defaults__ or plain.__kwdefaults__ or plain.__dict__)
        and (loop := _get_running_loop()) is not None
    ):
        call = partial(function, *args, **keywords)
    else:
        if type(plain) is not FunctionType or plain.__defaults__ or plain.__kwdefaults__:
            refuse_unread_markers(function, args, keywords)
        loop = _check_loop(function)
        call = (partial if loop is not None else _InContext)(function, *args, **keywords)
    of_request = held.get(request) if held else None
    if of_request is not None:
        return of_request.append((function, call))
    deferred = _last
    if deferred is None or deferred.app() is not request._served_app:
        deferred = _deferred_of(request._served_app)
    room = PENDING_MAX - len(deferred.open)
    is_held = request._hold_deferred(deferred, call, loop, room)
    if is_held is None:
        room = deferred.room()
        is_held = request._hold_deferred(deferred, call, loop, room)
    if not is_held:
        deferred.add(request, call, loop)


class _InContext(partial[Any]):
    """A call in a thread, with the context variables that there were where it was deferred."""

    def __init__(self, *_args: Any, **_keywords: Any) -> None:
        self._context = copy_context()

    def __call__(self) -> Any:
        return self._context.run(super().__call__)


def defer_all(
    request: Request, work: Callable[[], object] | Sequence[Callable[[], object]]
) -> None:
    """Defer what a response has in ``background``: a function without parameters, or several."""
    for one in (work,) if callable(work) else work:
        defer(request, one)


async def to_its_end(
    request: Request, work: Callable[[], Coroutine[Any, Any, _ResultT]], where: str
) -> _ResultT:
    """What ``work`` returns, which is waited for however often the caller is cancelled, also in a stop.

    What it has deferred is called then, too. ``where`` is what has failed in the log, if the caller was.
    """
    task = asyncio.ensure_future(contained(work))
    _deferred_of(request._served_app).keep(task)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            if cancelled is None:
                request._detach_deferred()  # pyright: ignore[reportPrivateUsage]
            cancelled = error
    if cancelled is None:
        return task.result()
    _end_detached(request, task)
    _report(where, task)
    raise cancelled


def _end_detached(request: Request, task: asyncio.Future[Any]) -> None:
    is_failed = task.cancelled() or task.exception() is not None
    request._end_detached(is_failed)  # pyright: ignore[reportPrivateUsage]


def _report(where: str, task: asyncio.Future[Any]) -> None:
    # Its client is gone, and nothing else would say what became of it.
    error = None if task.cancelled() else task.exception()
    if error is not None and not comes_from_disconnection(error):
        log_exception(f"{where} failed after its client had disconnected", error)


def continuing(app: object, handler: Callable[..., Any], where: str) -> Callable[..., Any]:
    """A coroutine function that goes on when its caller is cancelled, and is waited for in a stop."""

    async def run(*args: Any) -> Any:
        task = asyncio.ensure_future(contained(handler, *args))
        _deferred_of(app).keep(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            request = next((one for one in args if isinstance(one, Request)), None)
            if request is not None and not task.done():
                request._detach_deferred()  # pyright: ignore[reportPrivateUsage]
                task.add_done_callback(partial(_end_detached, request))
            task.add_done_callback(partial(_report, where))
            raise

    return run


def is_deferred(task: asyncio.Task[Any]) -> bool:
    """Whether a deferred call has suspended in a task."""
    return any(task in one.open for one in list(_registry.values()))


def pending(app: object) -> int:
    """How many deferred calls of an application are not done."""
    found = _registry.get(app)
    return 0 if found is None else found.count


def pending_in_process() -> int:
    """How many deferred calls of all applications of this process are not done."""
    return sum(one.count for one in list(_registry.values()))


Deferred: TypeAlias = "list[tuple[Any, partial[Any]]]"

held: Final[dict[Request, Deferred]] = {}
"""By requests with a ``yield`` in a dependency: what they have deferred, until that has ended.

If one of them fails, it is not called: a transaction that could not be committed has done nothing that a mail
could speak of.
"""


def defer_held(request: Request, work: Deferred) -> None:
    """Begin the calls that were held."""
    deferred = _deferred_of(request._served_app)
    for function, call in work:
        deferred.add(request, call, _check_loop(function))


def _check_loop(function: Any) -> AbstractEventLoop | None:
    """The running loop, for an ``async def``.

    Raises:
        RuntimeError: There is none.
    """
    if not is_async(function):
        return None
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            f"{describe(function)} is `async def`, and no loop runs here to defer it to; defer a "
            "`def`, or make the handler `async def`"
        ) from None


def _running_loop() -> AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


# Where a message says what has failed: no text of a client's has such a character there.
_FAILED: Final = "\0"


def _log(message: str, call: partial[Any], error: Exception) -> None:
    log_exception(message.replace(_FAILED, f": deferred {describe(call.func)} failed"), error)


class _Deferred(HeldCalls):
    """The deferred calls of one application."""

    def __init__(self, app: object) -> None:  # pyright: ignore[reportInconsistentConstructor]
        self.app = ref(app)
        self._threads: ThreadPoolExecutor | None = None
        self.open: set[Settled] = set()
        # Those of a loop that become tasks in its next round.
        self._waiting: dict[AbstractEventLoop, list[tuple[Context, partial[Any], str]]] = {}
        # By the ``id`` of loops: those that citius-py/src/deferred.rs makes at the end of a turn.
        self._of_turns: dict[int, list[tuple[partial[Any], Request]]] = {}
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        self._forget_ended()
        waiting = (*self._waiting.values(), *self._of_turns.values())
        return self.held + len(self.open) + sum(map(len, waiting))

    def room(self) -> int:
        """How many calls may wait for handlers, if one more may.

        Raises:
            ServiceUnavailable: ``PENDING_MAX`` calls are not done yet.
        """
        self._refuse_unless_ended()
        return PENDING_MAX - self.count + self.held

    def add(self, request: Request, call: partial[Any], loop: AbstractEventLoop | None) -> None:
        """Have it called soon.

        Raises:
            ServiceUnavailable: ``PENDING_MAX`` calls are not done yet.
        """
        if len(self.open) >= PENDING_MAX:
            self._refuse_unless_ended()
        self._begin_soon(request, call, loop)

    def _begin_soon(
        self, request: Request, call: partial[Any], loop: AbstractEventLoop | None
    ) -> None:
        """Have it called soon in the context that is entered; in the thread of ``loop``."""
        if loop is None:
            with self._lock:
                if self._threads is None:
                    self._threads = ThreadPoolExecutor(THREADS_MAX, "citius-deferred")
            message = request._message(_FAILED)  # pyright: ignore[reportPrivateUsage]
            return self.keep(self._threads.submit(_run, call, message))
        # What waits for a callback of the loop was deferred before.
        calls = None if self._waiting else request._deferred_in_turn(loop, self)  # pyright: ignore[reportPrivateUsage]
        if calls is not None:
            if not calls:
                self._begin_turn(loop, calls)
            return calls.append((call, request))
        waiting = self._waiting.get(loop, ())
        message = request._message(_FAILED)  # pyright: ignore[reportPrivateUsage]
        if not waiting:
            waiting = self._waiting[loop] = []
            loop.call_soon(self._begin, loop)
        waiting.append((copy_context(), call, message))

    def _refuse_unless_ended(self) -> None:
        if self.count >= PENDING_MAX:
            raise ServiceUnavailable("too much deferred work", {"retry-after": "1"})

    def _begin(self, loop: AbstractEventLoop) -> None:
        create_task = loop.create_task
        for context, call, message in self._waiting.pop(loop, ()):
            task = context.run(create_task, self._run(call, message))
            if not task.done():  # a loop may make its tasks' first step at once
                self.open.add(task)

    async def _run(self, call: partial[Any], message: str) -> None:
        try:
            await call()
        except Exception as error:
            _log(message, call, error)
        finally:
            # A callback of the task would cost a round of the loop.
            self.open.discard(asyncio.current_task())  # pyright: ignore[reportArgumentType]

    # What citius-py/src/held_calls.rs and deferred.rs call.

    def _begin_turn(
        self, loop: AbstractEventLoop, calls: list[tuple[partial[Any], Request]]
    ) -> None:
        """Count what will be in the list of a turn."""
        self._of_turns[id(loop)] = calls

    def _begin_held(self, request: Request, calls: Sequence[_HeldCall]) -> None:
        """Begin the calls of a handler that has ended."""
        for call, loop, context in calls:
            if loop is None or loop is _running_loop():
                context.run(self._begin_soon, request, call, loop)
            else:
                # The handler has ended in a thread, and one of its dependencies has deferred in a loop.
                loop.call_soon_threadsafe(self._begin_soon, request, call, loop, context=context)

    def _create(self, call: partial[Any], request: Request) -> None:
        """Make a call in a task of its own."""
        message = request._message(_FAILED)  # pyright: ignore[reportPrivateUsage]
        task = asyncio.get_running_loop().create_task(self._run(call, message))
        if not task.done():
            self.open.add(task)

    def _suspended(self, task: Task[Any], request: Request) -> str:
        """Count a call that has suspended in ``task`` as open; return what the log says of its request."""
        self.keep(task)
        return request._message(_FAILED)  # pyright: ignore[reportPrivateUsage]

    def _failed(self, call: partial[Any], message: str, error: Exception) -> None:
        _log(message, call, error)

    def _raise(self, error: BaseException) -> None:
        """Raise out of the loop what is no ``Exception``, as a task would."""
        asyncio.get_running_loop().call_soon(_raise, error)

    async def _await(self, awaitable: Awaitable[Any]) -> None:
        await awaitable

    def _forget_ended(self) -> None:
        """Let go of tasks that other code has cancelled before their first step."""
        for one in list(self.open):
            if one.done():
                self.open.discard(one)

    def keep(self, future: Settled) -> None:
        """Count it as open until it is done."""
        self.open.add(future)
        future.add_done_callback(self.open.discard)

    def open_here(self) -> list[Settled]:
        """Those that are not done, without tasks of other loops, which wait for them themselves."""
        loop = asyncio.get_running_loop()
        self._begin(loop)
        self._forget_ended()
        return [
            one
            for one in list(self.open)
            if not isinstance(one, asyncio.Future) or one.get_loop() is loop
        ]

    async def drain(self) -> None:
        """Wait for what is open; cancel what takes too long."""
        await _drain(self.open_here)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None


async def drain_loop() -> None:
    """Wait for the deferred tasks of a loop that is not the worker's own; cancel what takes too long."""

    def tasks() -> list[Settled]:
        return [
            one
            for deferred in list(_registry.values())
            for one in deferred.open_here()
            if isinstance(one, asyncio.Future)
        ]

    await _drain(tasks)


async def _drain(find: Callable[[], list[Settled]]) -> None:
    deadline = monotonic() + DRAIN_S
    while (found := find()) and (left := deadline - monotonic()) > 0:
        waiting = [
            one if isinstance(one, asyncio.Future) else asyncio.wrap_future(one) for one in found
        ]
        await asyncio.wait(waiting, timeout=left)
        await asyncio.sleep(0)
    if found := find():
        warning(f"{len(found)} deferred calls were not done after {DRAIN_S:g} s and are given up")
        for one in found:
            one.cancel()


def _raise(error: BaseException) -> None:
    raise error


def _run(call: partial[Any], message: str) -> None:
    try:
        call()
    except Exception as error:
        _log(message, call, error)


def _deferred_of(app: Any) -> _Deferred:
    global _last
    found = _registry.get(app)
    if found is None:
        found = _registry.setdefault(app, _Deferred(app))
        # The last hook is called first. The application is frozen, but this is part of it.
        app.hooks.shutdown.append(found.drain)
    _last = found
    return found


# Most processes have one application.
_last: _Deferred | None = None
_registry: WeakKeyDictionary[Any, _Deferred] = WeakKeyDictionary()
