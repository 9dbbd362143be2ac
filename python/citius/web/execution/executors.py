"""Handlers whose bodies run elsewhere: ``@app.get(…, executor="name")`` and ``app.executor("name", …)``.

An executor is what ``concurrent.futures`` calls one: threads, processes, sub-interpreters (CPython
3.14), ``dask.distributed``'s ``Client.get_executor()``, or another with ``submit``. The function, its
arguments and its result are sent as the executor sends them: by pickle, if it has other processes.

A call is refused with 503 when ``calls_max`` are not done, given up after ``deadline_s`` with 503, and
cancelled when its client leaves: one that waits is not begun; one that runs is told so by its next call
of its :data:`Progress`, which raises :class:`JobCancelled` there. One that still runs ``GRACE_S`` after its
deadline loses its process, which is replaced, or its thread's place (``executor_pools.py``). What
the body raises is raised here, with the traceback of the other side, and logged as that of any handler.

An executor that is broken is made again, if a function has made it: calls get 503 until it is, and the worker
is not ready.

With a ``progress: Progress`` a body tells how far it is. A client that accepts ``text/event-stream``
gets that as events, and the result as the last one; others get the result alone. Reports are sent and
not waited for: one that finds its way full is dropped, for the next one says more. Tests:
``tests/server/test_executors.py``.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import os
import secrets
import socket
import sys
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from citius.errors import ConfigError, ServiceUnavailable
from citius.observability import logging
from citius.web.binding.signature import kind_of
from citius.web.declarations.checks import check_callback, describe
from citius.web.execution.executor_pools import PAUSE_MAX_S, PAUSE_MIN_S, Call, Pool, ProcessPool
from citius.web.execution.foreign_executors import (
    dask_again,
    follow,
    has_left,
    has_lost_interpreter,
    interpreter_pool,
    is_interpreter_pool,
    outcome,
    reason,
    reports_directory,
    set_path,
    shut_down,
    take_body,
)
from citius.web.execution.progress import (
    REPORT_BYTES_MAX,
    JobCancelled,
    Progress,
    ProgressReporter,
    Told,
    Way,
)
from citius.web.realtime.events import Event, encoded_event, event_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from concurrent.futures import Future

__all__ = ["JobCancelled", "NamedExecutor", "Progress", "ProgressReporter", "Submits"]

CALLS_MAX: Final = 64
"""Calls of an executor that are not done, running ones included. Exceeded: 503."""
DEADLINE_S: Final = 60.0
"""How long a call may take, its wait included. Exceeded: 503, and it is cancelled."""
GRACE_S: Final = 1.0
"""How long a body that is past its deadline has to notice it. Exceeded: its process is ended."""
INTERPRETER_S: Final = 30.0
"""How long the modules of a body may take to be imported in a sub-interpreter."""


class Submits(Protocol):
    """What an executor has to have."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        """Call a function elsewhere."""
        ...


@dataclass(slots=True)
class _Call:
    """A call that is not done."""

    function: Callable[..., Any]
    reporter: ProgressReporter | None
    on_report: Callable[[float, object], object]
    deadline: float
    future: Future[Any] | None = None
    pooled: Call | None = None
    """Its call in a pool of processes of ours."""
    latest: bytes | None = None
    """A report that the loop has not read yet; a newer one takes its place."""


@dataclass
class NamedExecutor:
    """An executor of an application; ``App.executor`` makes it."""

    name: str
    make: Callable[[], Submits]
    calls_max: int
    deadline_s: float
    is_ours: bool
    """Whether it ends with the application."""
    _executor: Submits | None = None
    _way: Way = "none"
    _open: int = 0
    _calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    bodies: list[Callable[..., Any]] = field(default_factory=list)
    """The handlers that run on it."""
    _directory: str = ""
    _reports: socket.socket | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _overdue: int = 0
    _failure: str | None = None
    _renewal: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Make it, in the process and on the event loop that use it.

        Raises:
            ConfigError: A body cannot run in a sub-interpreter.
        """
        self._loop = asyncio.get_running_loop()
        self._failure = None
        self._take(self.make())
        if is_interpreter_pool(self._executor):
            self._check_bodies()

    def _take(self, executor: Submits) -> None:
        self._executor = executor
        self._way = _way_of(executor)
        if isinstance(executor, Pool):
            try:
                executor.start()
            except OSError as error:
                raise ConfigError(f"the executor {self.name!r} does not start: {error}") from error
        elif self._way == "socket" and self._reports is None:
            self._listen()
        elif self._way == "dask":
            client = cast("Any", executor)._client
            client.subscribe_topic(self._topic, self._on_dask)

    def failure(self) -> str | None:
        """Why no call can be run at present; ``None``: they can."""
        if self._overdue >= self.calls_max:
            return (
                f"the executor {self.name!r} has {self._overdue} calls that run past their deadline"
            )
        if isinstance(self._executor, Pool):
            return self._executor.failure
        if self._failure is None and self._way == "dask" and has_left(self._executor):
            self._is_broken("its client has given up on the scheduler")
        return self._failure

    async def executor_ready(self) -> None:
        """The readiness check of an executor; on the event loop, where it may be made again."""
        if (failure := self.failure()) is not None:
            raise RuntimeError(failure)

    def _is_broken(self, reason: str) -> None:
        """Have it made again, if that can be done."""
        if self._failure is not None:
            return
        self._failure = f"the executor {self.name!r} is broken: {reason}"
        if self.is_ours or self._way == "dask":
            logging.error(f"{self._failure}; it is made again")
            if self._loop is not None:
                self._renewal = self._loop.create_task(self._renew())
        else:
            logging.error(
                f"{self._failure}; it was given as an object, so it cannot be made again: "
                f"app.executor({self.name!r}, …) takes a function that makes it"
            )

    async def _renew(self) -> None:
        """Make the executor again, with growing pauses while that fails."""
        pause_s = PAUSE_MIN_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = min(PAUSE_MAX_S, 2 * pause_s)
            before = self._executor
            try:
                # Making it may wait, for a scheduler for example.
                self._take(await asyncio.to_thread(self._made_again))
            except Exception as error:
                self._failure = f"the executor {self.name!r} cannot be made again: {error}"
                continue
            if self.is_ours and isinstance(before, Executor):
                shut_down(before)
            self._failure = None
            logging.info(f"the executor {self.name!r} is back")
            return

    def _made_again(self) -> Submits:
        made = self.make()
        if _way_of(made) == "dask" and has_left(made):
            made = dask_again(made)
        return made

    def _check_bodies(self) -> None:
        """Send each body to an interpreter: what its module imports may not be made for one."""
        assert self._executor is not None, "it has been made"
        for body in self.bodies:
            try:
                self._executor.submit(take_body, body).result(INTERPRETER_S)
            except Exception as error:
                self.stop()
                raise ConfigError(
                    f"{describe(body)} cannot run on {self.name!r}: its module {body.__module__!r} does not "
                    f"load in a sub-interpreter ({reason(error)}); expected a module without "
                    "extensions that refuse one, such as Citius' own: put the body into a module of its "
                    "own, which may import citius.web.execution.progress, or use processes="
                ) from error

    @property
    def _topic(self) -> str:
        return f"citius-{os.getpid()}-{self.name}"

    def stop(self) -> None:
        """Give up what is not done, and end it if it is ours."""
        executor, self._executor = self._executor, None
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        for call in self._calls.values():
            self._cancel(call)
        if isinstance(executor, Pool):
            executor.shutdown()
        elif self.is_ours and isinstance(executor, Executor):
            shut_down(executor)
        if self._reports is not None and self._loop is not None:
            self._loop.remove_reader(self._reports)
            self._reports.close()
            self._reports = None
            for path in Path(self._directory).iterdir():
                path.unlink(missing_ok=True)
            with suppress(OSError):  # a body that is told at this moment
                Path(self._directory).rmdir()

    async def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """The result of a handler."""
        reporter = _reporter_among(args, keywords)
        if reporter is not None and reporter.is_wanted:
            return event_stream(self._events(reporter, function, args, keywords))
        return await self._result(reporter, _unheard, function, args, keywords)

    async def _events(
        self,
        reporter: ProgressReporter,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> AsyncIterator[Event]:
        """Reports, and the result or that there is none."""
        reports: asyncio.Queue[tuple[float, object]] = asyncio.Queue(maxsize=64)

        def on_report(done: float, data: object) -> None:
            if reports.full():
                reports.get_nowait()  # the next one says more
            reports.put_nowait((done, data))

        result = asyncio.ensure_future(self._result(reporter, on_report, function, args, keywords))
        try:
            while not result.done() or not reports.empty():
                report = asyncio.ensure_future(reports.get())
                await asyncio.wait((report, result), return_when=asyncio.FIRST_COMPLETED)
                if report.done():
                    done, data = report.result()
                    yield encoded_event("progress", {"done": done, "data": data})
                else:
                    report.cancel()
            try:
                value = result.result()
            except ServiceUnavailable as error:
                yield encoded_event("error", {"status": 503, "detail": error.detail})
            except Exception as error:
                logging.log_exception(f"{describe(function)} failed on {self.name!r}", error)
                yield encoded_event("error", {"status": 500})
            else:
                yield Event(value, event="result")
        finally:
            result.cancel()

    async def _result(
        self,
        reporter: ProgressReporter | None,
        on_report: Callable[[float, object], object],
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Any:
        if self._executor is None or self._open >= self.calls_max:
            raise ServiceUnavailable(
                f"the executor {self.name!r} has {self._open} calls that are not done",
                {"retry-after": "1"},
            )
        if (failure := self.failure()) is not None:
            raise ServiceUnavailable(failure, {"retry-after": "1"})
        deadline = asyncio.get_running_loop().time() + self.deadline_s
        call = _Call(function, reporter, on_report, deadline)
        key = secrets.token_hex(8) if reporter is None else reporter.job
        self._prepare(call)
        self._calls[key] = call
        self._open += 1
        try:
            async with asyncio.timeout_at(deadline):
                call.future = self._submit(call, function, args, keywords)
                call.future.add_done_callback(self._count_down)
                return await outcome(call.future)
        except TimeoutError:
            self._cancel(call)
            raise ServiceUnavailable(
                f"{describe(function)} was not done within {self.deadline_s:g} s"
            ) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            is_ours = task is not None and task.cancelling() > 0
            self._cancel(call)
            if not is_ours and self._way == "dask":
                self.failure()  # its client cancels all calls when it gives up
                text = f"the executor {self.name!r} has cancelled {describe(function)}"
                raise ServiceUnavailable(text) from None
            raise
        except BrokenExecutor as error:
            self._is_broken(str(error) or type(error).__name__)
            raise ServiceUnavailable(f"the executor {self.name!r} is broken") from error
        except Exception as error:
            if self.is_ours and has_lost_interpreter(self._executor, error):
                self._is_broken(str(error))
                raise ServiceUnavailable(f"the executor {self.name!r} is broken") from error
            if call.future is None and self._is_gone(error):
                raise ServiceUnavailable(f"the executor {self.name!r} is broken") from error
            raise
        finally:
            if call.future is None:
                self._open -= 1
            del self._calls[key]

    def _count_down(self, _: object) -> None:
        """A call is done: also one that went on after it was cancelled."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._counted_down)

    def _counted_down(self) -> None:
        self._open -= 1

    def _is_gone(self, error: Exception) -> bool:
        """Whether the executor has refused a call because it has ended."""
        is_dask = self._way == "dask" and has_left(self._executor)
        if is_dask or (isinstance(error, RuntimeError) and "shutdown" in str(error)):
            self._is_broken(str(error))
            return True
        return False

    def _submit(
        self,
        call: _Call,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> Future[Any]:
        assert self._executor is not None, "it was checked"
        if isinstance(self._executor, Pool):
            context = contextvars.copy_context() if self._way == "thread" else None
            on_report = functools.partial(self._on_pool_report, call)
            call.pooled = Call(function, args, keywords, on_report, context)
            return self._executor.put(call.pooled)
        if self._way == "thread":
            context = contextvars.copy_context()
            return self._executor.submit(context.run, function, *args, **keywords)
        if self._way == "dask":
            # Calls with the same arguments are different calls: one may be cancelled.
            return self._executor.submit(function, *args, **keywords, pure=False)
        return self._executor.submit(function, *args, **keywords)

    def _prepare(self, call: _Call) -> None:
        reporter = call.reporter
        if reporter is None:
            return
        reporter.way = self._way
        if self._way == "thread":
            assert self._loop is not None, "the start has set it"
            reporter.told = Told(self._loop, call.on_report)
        else:
            reporter.where = self._topic if self._way == "dask" else self._directory

    def _cancel(self, call: _Call) -> None:
        """Keep a call from being begun, tell one that runs, and end one that runs past its deadline."""
        # Dask's futures do not say whether their function runs.
        was_waiting = call.future is None or call.future.cancel()
        if call.future is not None and not call.future.done() and self._loop is not None:
            self._loop.call_at(call.deadline + GRACE_S, self._end, call)
        if call.future is None or call.reporter is None or (was_waiting and self._way != "dask"):
            return
        told = call.reporter.told
        if told is not None:
            told.is_cancelled = True
        elif call.pooled is not None and isinstance(self._executor, Pool):
            self._executor.tell(call.pooled)
        elif self._way == "socket":
            mark = Path(self._directory, call.reporter.job)
            with suppress(OSError):  # no room for a name
                mark.touch()
                call.future.add_done_callback(lambda _: mark.unlink(missing_ok=True))
        elif self._way == "dask":
            self._cancel_in_dask(call.reporter.job)

    def _end(self, call: _Call) -> None:
        """Free what a call holds that was given up and still runs."""
        assert call.future is not None, "it runs"
        if call.future.done() or self._executor is None:
            return
        if call.pooled is not None and isinstance(self._executor, Pool):
            self._executor.end(call.pooled)
        elif self.is_ours and is_interpreter_pool(self._executor):
            follow(self._executor, call.future)
        if not isinstance(self._executor, ProcessPool):
            self._overdue += 1
            call.future.add_done_callback(self._count_overdue)

    def _count_overdue(self, _: object) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._counted_overdue)

    def _counted_overdue(self) -> None:
        self._overdue -= 1

    def _cancel_in_dask(self, job: str) -> None:
        import distributed

        client = cast("Any", self._executor)._client
        event = distributed.Event(f"citius-cancelled-{job}", client=client)
        client.loop.add_callback(event.set)

    # --- reports of other processes -------------------------------------------------------------------

    def _listen(self) -> None:
        assert self._loop is not None, "the start has set it"
        self._directory = reports_directory()
        self._reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._reports.bind(f"{self._directory}/reports")
        self._loop.add_reader(self._reports, self._on_reports)

    def _on_reports(self) -> None:
        import msgspec

        assert self._reports is not None, "it is readable"
        for _ in range(64):
            try:
                data = self._reports.recv(REPORT_BYTES_MAX)
                job, done, value = msgspec.json.decode(data, type=tuple[str, float, Any])
            except BlockingIOError:
                return
            except (OSError, msgspec.MsgspecError):
                continue
            self._on_report(job, done, value)

    def _on_pool_report(self, call: _Call, report: bytes) -> None:
        """A report of a process; in the thread that waits for it."""
        is_expected, call.latest = call.latest is not None, report
        if not is_expected and self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._on_latest, call)

    def _on_latest(self, call: _Call) -> None:
        import msgspec

        report, call.latest = call.latest, None
        if report is None:
            return
        with suppress(msgspec.MsgspecError):
            job, done, value = msgspec.json.decode(report, type=tuple[str, float, Any])
            self._on_report(job, done, value)

    def _on_dask(self, event: tuple[float, Any]) -> None:
        job, done, data = event[1]
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._on_report, job, done, data)

    def _on_report(self, job: str, done: float, data: object) -> None:
        call = self._calls.get(job)
        if call is not None:
            call.on_report(done, data)


def _unheard(done: float, data: object) -> None:
    """For reports that no client wants."""


class OnExecutor:
    """Which executor a route names, until the application that has it is known."""

    def __init__(self, name: str, handler: Callable[..., Any], pattern: str) -> None:
        if kind_of(handler, blocking=False) == "async":
            raise ConfigError(
                f"the route {pattern} has executor={name!r}, and {describe(handler)} is `async def`: "
                "its body runs elsewhere, where there is no event loop; make it a `def`"
            )
        self.name = name
        self.handler = handler
        self.executor: NamedExecutor | None = None

    def route_handler(self) -> Callable[..., Any]:
        """A handler with the same parameters that calls the function elsewhere."""
        handler = self.handler

        @functools.wraps(handler)
        async def elsewhere(*args: Any, **keywords: Any) -> Any:
            assert self.executor is not None, "it is found before the first request"
            return await self.executor.call(handler, args, keywords)

        elsewhere._citius_executor = self  # pyright: ignore[reportAttributeAccessIssue]
        return elsewhere


def find_executors(handlers: list[Callable[..., Any]], executors: dict[str, NamedExecutor]) -> None:
    """Give each handler its executor.

    Raises:
        ConfigError: The application has none of that name.
    """
    for handler in handlers:
        named: OnExecutor | None = getattr(handler, "_citius_executor", None)
        if named is None:
            continue
        found = executors.get(named.name)
        if found is None:
            known = ", ".join(map(repr, executors)) or "none"
            raise ConfigError(
                f"{describe(named.handler)} has executor={named.name!r}, and the application has {known}; "
                f"add it: app.executor({named.name!r}, processes=2)"
            )
        named.executor = found
        found.bodies.append(named.handler)


def made_by(
    name: str,
    executor: Submits | Callable[[], Submits] | None,
    threads: int | None,
    processes: int | None,
    interpreters: int | None,
) -> tuple[Callable[[], Submits], bool]:
    """What makes an executor, and whether it ends with the application.

    Raises:
        ConfigError: There is none, more than one, or one that this interpreter does not have.
    """
    given = [one for one in (executor, threads, processes, interpreters) if one is not None]
    if len(given) != 1:
        raise ConfigError(
            f"app.executor({name!r}): expected an executor, or one of threads=, processes= and interpreters="
        )
    if threads is not None:
        return functools.partial(Pool, name, threads), True
    if processes is not None:
        return functools.partial(ProcessPool, name, processes), True
    if interpreters is not None:
        pool = interpreter_pool()
        return functools.partial(pool, interpreters, f"citius-{name}", set_path, (sys.path,)), True
    assert executor is not None, "it is the one that was given"
    # A class makes one, too, and has `submit` itself.
    if hasattr(executor, "submit") and not isinstance(executor, type):
        return lambda: cast("Submits", executor), False
    check_callback(executor, f"app.executor({name!r}, …)", makes=True)
    return cast("Callable[[], Submits]", executor), True


def _way_of(executor: Submits) -> Way:
    """How reports of bodies come back."""
    if isinstance(executor, Pool):
        return "process" if isinstance(executor, ProcessPool) else "thread"
    if isinstance(executor, ThreadPoolExecutor) and type(executor).__name__ == "ThreadPoolExecutor":
        return "thread"
    if type(executor).__module__.startswith("distributed."):
        return "dask"
    return "socket" if isinstance(executor, Executor) else "none"


def _reporter_among(args: tuple[Any, ...], keywords: dict[str, Any]) -> ProgressReporter | None:
    for one in (*args, *keywords.values()):
        if isinstance(one, ProgressReporter):
            return one
    return None
