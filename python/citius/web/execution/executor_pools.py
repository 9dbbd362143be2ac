"""The pools behind ``app.executor(name, threads=…)`` and ``app.executor(name, processes=…)``.

A pool has at most ``count`` threads, started when they are needed. Each takes one call after the other and
runs it, or has a process of its own run it (``forker.py``). A call that is cancelled before a
thread has taken it never begins: nothing is sent ahead. What a body breaks is replaced: a process that dies
fails its call and is followed by another one, with growing pauses if it dies too; a process that runs a call
past its deadline is ended (``end``); a thread cannot be ended, so another one takes its place.

Tests: ``tests/server/test_executors.py``.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from citius.errors import ServiceUnavailable
from citius.observability import logging
from citius.process.forks import end_child
from citius.threads import Thread
from citius.web.declarations.checks import describe

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

    from typing_extensions import Buffer

    from citius.process.sandbox import Rules
    from citius.web.execution.forker import Forker
    from citius.web.execution.messages import Link

PAUSE_MIN_S: Final = 0.1
PAUSE_MAX_S: Final = 5.0
"""Pauses between processes that end before they have done a call."""
_ENDED: Final = "the executor has ended"


class Call:
    """A call of a pool."""

    __slots__ = ("args", "context", "function", "future", "keywords", "on_report", "seat")

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        on_report: Callable[[bytes], object],
        context: Context | None = None,
    ) -> None:
        self.context = context
        self.function, self.args, self.keywords = function, args, keywords
        self.on_report = on_report
        self.future: Future[Any] = Future()
        self.seat: _Seat | None = None


class Pool:
    """Threads that run calls."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self._count = count
        self._calls: deque[Call] = deque()
        self._changed = threading.Condition()
        # All of these are guarded by the condition.
        self._seats: set[_Seat] = set()
        self._n_made = 0
        self._n_idle = 0
        self.is_closed = False
        self.failure: str | None = None
        """Why no call can be run at present."""

    def start(self) -> None:
        """Start the first thread, and what it needs."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Future[Any]:
        """Run a call, as executors do."""
        return self.put(Call(function, args, keywords, _unread))

    def put(self, call: Call) -> Future[Any]:
        """Run a call."""
        with self._changed:
            if self.is_closed:
                raise RuntimeError(f"the executor {self.name!r} has ended")
            self._calls.append(call)
            if self._n_idle < len(self._calls) and len(self._seats) < self._count:
                self._add_seat()
            self._changed.notify()
        return call.future

    def tell(self, call: Call) -> None:
        """Tell a call that runs that nothing waits for it."""

    def end(self, call: Call) -> None:
        """Free what a call holds that is past its deadline."""
        with self._changed:
            if call.future.done() or call.seat not in self._seats:
                return
            self._seats.remove(call.seat)
            if self._calls:
                self._add_seat()
        logging.warning(
            f"{describe(call.function)} still runs on {self.name!r} after its deadline; a thread cannot be "
            "ended, so another one takes its place"
        )

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Take no more calls; those that wait are cancelled."""
        del wait, cancel_futures
        with self._changed:
            self.is_closed = True
            waiting, self._calls = self._calls, deque()
            self._changed.notify_all()
        for call in waiting:
            call.future.cancel()

    def _add_seat(self) -> None:
        seat = self._seat()
        thread = Thread(target=seat.work, name=f"citius-{self.name}_{self._n_made}", daemon=True)
        self._n_made += 1
        self._seats.add(seat)
        try:
            thread.start()
        except RuntimeError as error:
            self._seats.remove(seat)
            logging.warning(f"no thread for the executor {self.name!r}: {error}")
            if not self._seats:
                raise ServiceUnavailable(f"no thread for the executor {self.name!r}") from None

    def _seat(self) -> _Seat:
        return _Seat(self)

    def next_call(self, seat: _Seat) -> Call | None:
        """A call that has been begun; ``None``: the thread is no longer needed."""
        with self._changed:
            while True:
                while not self._calls:
                    if self.is_closed or seat not in self._seats:
                        self._seats.discard(seat)
                        return None
                    self._n_idle += 1
                    try:
                        self._changed.wait()
                    finally:
                        self._n_idle -= 1
                if seat not in self._seats:
                    self._changed.notify()
                    return None
                call = self._calls.popleft()
                if call.future.set_running_or_notify_cancel():
                    call.seat = seat
                    return call

    def fail(self, failure: str) -> None:
        """Refuse the calls that wait, and those that come, until this is over."""
        with self._changed:
            self.failure = failure
            waiting, self._calls = self._calls, deque()
        for call in waiting:
            if call.future.set_running_or_notify_cancel():
                call.future.set_exception(ServiceUnavailable(failure))

    def wait_for_end(self, pause_s: float) -> None:
        """Wait, but not for a pool that ends."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, pause_s)


class _Seat:
    """A thread of a pool."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def work(self) -> None:
        while (call := self._pool.next_call(self)) is not None:
            self.run(call)
            del call  # an idle thread keeps no arguments

    def run(self, call: Call) -> None:
        home = os.getpid()
        try:
            run = call.function if call.context is None else call.context.run
            args = call.args if call.context is None else (call.function, *call.args)
            value = run(*args, **call.keywords)
        except BaseException as error:
            end_child(home, error)
            call.future.set_exception(error)
        else:
            end_child(home)
            call.future.set_result(value)


class ProcessPool(Pool):
    """Threads that have processes run calls."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name, count)
        self._forker: Forker | None = None
        self._forker_lock = threading.Lock()
        self._rules: Rules | None = None

    def start(self) -> None:
        """Start the process that forks the others, and the first of these.

        Raises:
            OSError: It does not start.
        """
        from citius.process import sandbox

        self._rules = sandbox.rules()
        self._start_forker()
        with self._changed:
            self._add_seat()

    def _start_forker(self) -> Forker:
        from citius.process import sandbox
        from citius.web.execution.forker import Forker

        self._forker = Forker(self._rules)
        if self._rules is not None:
            sandbox.is_confined_itself(self._forker.pid)
        return self._forker

    def fork(self) -> tuple[Link, int, int]:
        """A process, whose forker is started again if it has ended.

        Raises:
            OSError: There is none.
            EOFError: The system has none.
        """
        with self._forker_lock:
            if self.is_closed:
                raise OSError(_ENDED)
            if self._forker is not None:
                with suppress(OSError):
                    return self._forker.fork()
                self._forker.close()
                self._forker = None
            if self._rules is not None:
                # A confined worker starts no program. The supervisor replaces it.
                logging.error(
                    f"the process that forks those of the executor {self.name!r} has ended; this worker is "
                    "confined and cannot start another one: it stops, and is replaced"
                )
                os.kill(os.getpid(), signal.SIGTERM)
                raise OSError("the process that forks has ended")
            logging.warning(
                f"the process that forks those of the executor {self.name!r} has ended; it is started again"
            )
            return self._start_forker().fork()

    def kill(self, pid: int) -> None:
        """End a process."""
        if (forker := self._forker) is not None:
            forker.kill(pid)

    def tell(self, call: Call) -> None:
        """Tell the body; its next report raises."""
        if isinstance(call.seat, _ProcessSeat):
            call.seat.tell(call)

    def end(self, call: Call) -> None:
        """End the process of a call."""
        if isinstance(call.seat, _ProcessSeat):
            call.seat.end(call)

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Take no more calls; processes end with the calls that they run."""
        super().shutdown()
        with self._changed:
            seats = list(self._seats)
        for seat in seats:
            if isinstance(seat, _ProcessSeat):
                seat.end(None)
        with self._forker_lock:
            if self._forker is not None:
                self._forker.close()
                self._forker = None

    def _seat(self) -> _Seat:
        return _ProcessSeat(self)


class _ProcessSeat(_Seat):
    """A thread and its process."""

    def __init__(self, pool: ProcessPool) -> None:
        super().__init__(pool)
        self._processes = pool
        # Guards the two that follow, and what is sent about a call that runs.
        self._lock = threading.Lock()
        # One thread writes to the process; a call may be long.
        self._sending = threading.Lock()
        self._running: Call | None = None
        self._is_told = False
        self._is_overdue = False
        self._pid = 0
        self._connection: Link | None = None
        self._status_pipe = -1
        self._pause_s = 0.0

    def work(self) -> None:
        """Have a process ready before a call is taken: one that waits can still be cancelled."""
        try:
            while self._has_process() and (call := self._pool.next_call(self)) is not None:
                self.run(call)
                del call
        finally:
            self._drop()

    def _has_process(self, is_asked_once: bool = False) -> bool:
        """Whether there is a process that waits for a call; tries until there is one, or the pool ends.

        Args:
            is_asked_once: A call waits that has been taken: another try is for the next one.
        """
        while self._connection is None and not self._pool.is_closed:
            if self._pause_s:
                self._pool.wait_for_end(self._pause_s)
            self._pause_s = min(PAUSE_MAX_S, max(PAUSE_MIN_S, 2 * self._pause_s))
            try:
                self._start()
            except (OSError, EOFError) as error:
                if self._pool.is_closed:
                    break
                failure = f"the executor {self._pool.name!r} has no process: {error}"
                if self._pool.failure is None:
                    logging.error(failure)
                self._pool.fail(failure)
                if is_asked_once:
                    break
            else:
                self._pool.failure = None
        return self._connection is not None

    def _start(self) -> None:
        from citius.web.execution.forker import exit_reason, receive
        from citius.web.execution.messages import READY

        connection, status_pipe, pid = self._processes.fork()
        try:
            kind, _ = receive(connection, status_pipe)
        except (OSError, EOFError):
            connection.close()
            raise EOFError(f"the new one {exit_reason(status_pipe)}") from None
        assert kind == READY, "it is the first one"
        with self._lock:
            self._connection, self._status_pipe, self._pid = connection, status_pipe, pid

    def run(self, call: Call) -> None:
        """Have a process run a call: another one if it has ended before it read the call."""
        from citius.web.execution.forker import call_data, outcome_of

        try:
            data = call_data(call.function, call.args, call.keywords)
        except BaseException as error:  # it cannot be sent
            call.future.set_exception(error)
            return
        try:
            with self._lock:
                self._running, self._is_told, self._is_overdue = call, False, False
            while (received := self._talk(call, data)) is None:
                self._drop()
                if not self._has_process(is_asked_once=True):
                    call.future.set_exception(ServiceUnavailable(self._pool.failure or _ENDED))
                    return
        except (OSError, EOFError):
            call.future.set_exception(self._death(call))
            return
        finally:
            with self._lock:
                self._running = None
        self._pause_s = 0.0
        try:
            value = outcome_of(*received)
        except BaseException as error:
            call.future.set_exception(error)
        else:
            call.future.set_result(value)

    def _talk(self, call: Call, data: Buffer) -> tuple[bytes, bytearray] | None:
        """The result of a call; ``None`` if the process has ended and had not read the call."""
        from citius.web.execution.forker import has_ended, receive
        from citius.web.execution.messages import CALL, CANCEL, REPORT

        connection = self._connection
        assert connection is not None, "it has been started"
        if has_ended(self._status_pipe):
            return None
        try:
            with self._sending:
                connection.send(CALL, data)
        except OSError:
            if self._is_overdue:
                raise
            return None
        with self._lock:
            if self._is_told:
                connection.send(CANCEL)
        try:
            while (received := receive(connection, self._status_pipe))[0] == REPORT:
                call.on_report(bytes(received[1]))
        except ConnectionResetError:
            # It left unread bytes: the call, or that it is cancelled.
            if self._is_told or self._is_overdue:
                raise
            return None
        return received

    def _death(self, call: Call) -> Exception:
        """The error of a call whose process has ended."""
        pid, reason = self._pid, self._drop()
        body = f"{describe(call.function)} on {self._pool.name!r}"
        if self._is_overdue:
            logging.warning(
                f"{body} ran past its deadline; its process {pid} was ended and is replaced"
            )
        elif not self._pool.is_closed:
            logging.error(f"{body}: its process {pid} {reason} and is replaced")
        return ServiceUnavailable(f"the process of {describe(call.function)} {reason}")

    def _drop(self) -> str:
        from citius.web.execution.forker import exit_reason

        with self._lock:
            connection, self._connection = self._connection, None
            status_pipe, self._status_pipe = self._status_pipe, -1
        if connection is None:
            return ""
        connection.close()
        return exit_reason(status_pipe)

    def tell(self, call: Call) -> None:
        """Say that nothing waits for the call, if it is the one that runs."""
        from citius.web.execution.messages import CANCEL

        with self._lock, suppress(OSError):
            if self._running is not call or self._connection is None:
                return
            self._is_told = True
            if self._sending.acquire(blocking=False):
                try:
                    self._connection.send(CANCEL)
                finally:
                    self._sending.release()

    def end(self, call: Call | None) -> None:
        """End the process if it runs this call; ``None``: whatever it runs."""
        with self._lock:
            if self._connection is not None and (call is None or self._running is call):
                self._is_overdue = call is not None
                self._processes.kill(self._pid)


def _unread(report: bytes) -> None:
    """For calls without reports."""
