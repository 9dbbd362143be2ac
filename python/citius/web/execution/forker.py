"""Processes that call functions for a worker: a process of one thread forks them.

The worker has threads and an event loop, so it does not fork; and where ``--sandbox`` is on it starts no
program once it serves. So a :class:`Forker` is started before, confines itself by the worker's rules, and
forks on request: each process is given a socket for its calls. It also ends them, for a confined worker may
send them no signal.

In (to the forker): ``F`` with two descriptors, for a process with this socket whose id and later exit status
are to be written to this pipe; ``K`` with a process id, to end it. The forker and its processes end when the
worker does.

A body may fork: its child has neither the socket nor the pipe, and ends when the body returns in it. That a
process has ended is told by the pipe, whatever else has its socket.

A process reads calls from its socket, one after the other, and writes reports of progress and one result for
each. ``C`` says that nothing waits for the call that runs. Tests: ``tests/server/test_executors.py``.
"""

from __future__ import annotations

import fcntl
import io
import os
import pickle
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import traceback
from contextlib import suppress
from multiprocessing import process, spawn
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, NoReturn, cast

from citius.process.forks import call_here
from citius.threads import Thread
from citius.web.execution import progress
from citius.web.execution.messages import CALL, CANCEL, ERROR, READY, REPORT, RESULT, Link

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from citius.process.sandbox import Rules

_COMMAND = struct.Struct("!cI")
_STATUS = struct.Struct("!i")
_NO_PROCESS = _STATUS.pack(0)
_START_S = 30.0
_FORK_S = 30.0
_END_S = 2.0


class Forker:
    """The process that forks, as its worker sees it."""

    def __init__(self, rules: Rules | None) -> None:
        """Start it, and wait until it is confined.

        Raises:
            OSError: It does not start, or cannot be confined.
        """
        self._lock = threading.Lock()
        self._control, its = socket.socketpair()
        self._control.settimeout(_START_S)
        source = (
            f"import sys; sys.path[:] = {sys.path!r}; from citius.web.execution.forker import main; "
            f"main({its.fileno()})"
        )
        flags = cast("list[str]", cast("Any", subprocess)._args_from_interpreter_flags())
        with its:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", source],
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
            )
        preparation: dict[str, Any] = spawn.get_preparation_data("citius-executor")
        preparation["authkey"] = bytes(
            preparation["authkey"]
        )  # it goes to a child, which may have it
        data = pickle.dumps((preparation, os.getpid(), rules))
        try:
            self._control.sendall(struct.pack("!I", len(data)) + data)
            reply = _read(self._control, 1)
            if reply != b"+":
                raise OSError(_rest(self._control) if reply else "it has ended at its start")
            self._control.settimeout(None)
        except OSError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def fork(self) -> tuple[Link, int, int]:
        """A new process: its socket, the reading end of a pipe that its exit status comes by, and its id.

        Raises:
            OSError: The forker has ended, or does not respond.
            EOFError: The system has no process.
        """
        ours, its = socket.socketpair()
        reading, writing = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._control, [_COMMAND.pack(b"F", 0)], [its.fileno(), writing])
        except OSError:
            ours.close()
            os.close(reading)
            raise
        finally:
            its.close()
            os.close(writing)
        connection = Link(ours)
        try:
            if not _is_readable(reading, _FORK_S):
                raise OSError("the process that forks has ended, or does not respond")
            if (data := os.read(reading, _STATUS.size)) == _NO_PROCESS:
                raise EOFError("it cannot be forked")
        except BaseException:
            connection.close()
            os.close(reading)
            raise
        return connection, reading, *_STATUS.unpack(data)

    def kill(self, pid: int) -> None:
        """End one of its processes, unless it has ended."""
        with self._lock, suppress(OSError):  # the forker has ended
            self._control.sendall(_COMMAND.pack(b"K", pid))

    def close(self) -> None:
        """End it; its processes end with their calls, or with this process."""
        self._control.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            with suppress(
                OSError
            ):  # it is confined, and this process is not, or the other way round
                self._process.kill()
                self._process.wait()


def receive(connection: Link, status_pipe: int) -> tuple[bytes, bytearray]:
    """The next message of a process.

    Raises:
        ConnectionResetError: It has ended, with bytes in its socket that it had not read.
        EOFError: It has ended.
    """
    waiting = select.poll()  # `select` itself has no place for descriptors from 1024 on
    for fd in (connection.fileno(), status_pipe):
        waiting.register(fd, select.POLLIN)
    while connection.fileno() not in (ready := dict(waiting.poll())):
        if ready[status_pipe] & select.POLLIN:
            # A child that it has forked keeps its socket open until it has left it.
            raise ConnectionResetError if _has_unread(connection) else EOFError
        waiting.unregister(status_pipe)  # the forker has ended, and not the process
    return connection.receive()


def _has_unread(connection: Link) -> bool:
    """Whether the other end of a Unix socket has not read all that was sent to it."""
    return fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)) != bytes(4)


def has_ended(status_pipe: int) -> bool:
    """Whether a process has ended."""
    return _is_readable(status_pipe, 0)


def _is_readable(fd: int, timeout_s: float) -> bool:
    """Whether there is something to read, and not an end alone."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    return any(event & select.POLLIN for _, event in waiting.poll(timeout_s * 1000))


def exit_reason(status_pipe: int) -> str:
    """Why a process has ended, for messages; the pipe is closed."""
    try:
        is_told = _is_readable(status_pipe, _END_S)
        data = os.read(status_pipe, _STATUS.size) if is_told else b""
    finally:
        os.close(status_pipe)
    if len(data) < _STATUS.size:
        return "has ended"
    code = os.waitstatus_to_exitcode(*_STATUS.unpack(data))
    if code >= 0:
        return f"has ended with exit code {code}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _read(control: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count and (piece := control.recv(count - len(data))):
        data += piece
    return data


def _rest(control: socket.socket) -> str:
    data = b""
    while piece := control.recv(4096):
        data += piece
    return data.decode()


# --- the forker -----------------------------------------------------------------------------------------


def main(fd: int) -> NoReturn:
    """Fork processes until the worker ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # signals of the terminal are the server's matter
    control = socket.socket(fileno=fd)
    control.set_inheritable(False)
    (size,) = struct.unpack("!I", _read(control, 4))
    preparation, worker, rules = pickle.loads(_read(control, size))
    if rules is not None:
        try:
            rules.enter()
        except OSError as error:
            control.sendall(b"-" + str(error).encode())
            os._exit(1)
    control.sendall(b"+")
    woken, wakeup = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    ended = _wait_for(worker)
    # The pipe for the exit status of each process.
    processes: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([control, woken, ended], [], [])
        if ended in ready:
            # A body may keep the interpreter, and with it the thread that would end its process.
            for pid in processes:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os._exit(0)
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4096)
            _reap(processes)
        if control in ready:
            command, fds, _, _ = socket.recv_fds(control, _COMMAND.size, 2)
            if len(command) < _COMMAND.size:
                os._exit(0)
            kind, pid = _COMMAND.unpack(command)
            if kind == b"F":
                _fork(fds, [control.fileno(), woken, wakeup, ended], processes, preparation, worker)
            elif pid in processes:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _nothing(number: int, frame: object) -> None:
    """The descriptor for signals has it."""


def _fork(
    fds: list[int], own: list[int], processes: dict[int, int], preparation: Any, worker: int
) -> None:
    calls, status_pipe = fds
    try:
        pid = os.fork()
    except OSError as error:
        print(
            f"citius: an executor's process cannot be forked: {error}", file=sys.stderr, flush=True
        )
        os.close(calls)
        os.write(status_pipe, _NO_PROCESS)
        os.close(status_pipe)
        return
    if pid:
        os.close(calls)
        processes[pid] = status_pipe
        with suppress(OSError):  # the worker does not wait for it any more
            os.write(status_pipe, _STATUS.pack(pid))
        return
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for fd in (*own, status_pipe, *processes.values()):
            os.close(fd)
        _serve(calls, preparation, worker)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(1)


def _reap(processes: dict[int, int]) -> None:
    for pid, status_pipe in list(processes.items()):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            del processes[pid]
            with suppress(OSError):  # nothing waits for it
                os.write(status_pipe, _STATUS.pack(status))
            os.close(status_pipe)


def _wait_for(worker: int) -> int:
    """A descriptor that is readable when the worker has ended."""
    try:
        return os.pidfd_open(worker)
    except ProcessLookupError:
        os._exit(0)


# --- a process ------------------------------------------------------------------------------------------


class _Channel:
    """The socket of a process, for the body that runs and for its reports."""

    def __init__(self, connection: Link) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_cancelled = False

    def next_call(self) -> bytearray:
        while (message := self._connection.receive())[0] != CALL:
            continue  # the call that it was about is done
        self._is_cancelled = False
        return message[1]

    def is_cancelled(self) -> bool:
        with self._lock:
            while not self._is_cancelled and _is_readable(self._connection.fileno(), 0):
                self._is_cancelled = self._connection.receive()[0] == CANCEL
            return self._is_cancelled

    def report(self, data: bytes) -> None:
        """Send a report, unless the worker has not read the ones before."""
        with self._lock:
            if select.select([], [self._connection], [], 0)[1]:
                self._connection.send(REPORT, data)

    def send(self, kind: bytes, data: Buffer = b"") -> None:
        with self._lock:
            self._connection.send(kind, data)

    def leave(self) -> None:
        """In a child that a body has forked: it has no calls, and sends no results."""
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self._connection.fileno(), inheritable=False)
        os.close(null)


def _serve(fd: int, preparation: Any, worker: int) -> None:
    _end_with(worker)
    # As spawn does: what the main module starts while it is imported is refused, with the reason.
    own = cast("Any", process.current_process())
    own._inheriting = True
    spawn.prepare(preparation)
    del own._inheriting
    channel = _Channel(Link(socket.socket(fileno=fd)))
    progress.channel = channel
    os.register_at_fork(after_in_child=channel.leave)
    channel.send(READY)
    with suppress(EOFError, ConnectionError):
        while True:
            channel.send(*_outcome(channel.next_call()))
    os._exit(0)


def _outcome(call: bytearray) -> tuple[bytes, bytes]:
    try:
        function, args, keywords = pickle.loads(call)
        value = call_here(function, *args, **keywords)
        return RESULT, _pickled(value)
    except BaseException as error:
        text = "".join(traceback.format_exception(error))
        try:
            data = _pickled((error, text))
            # An exception with arguments of its own fails here, not in the worker.
            pickle.loads(data)
        except Exception:
            data = pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), text))
        return ERROR, data


def _end_with(worker: int) -> None:
    """End when the worker of the server ends, also by a kill."""
    pidfd = _wait_for(worker)

    def wait() -> None:
        # Not by `select`, whose descriptors end at 1024.
        ended = select.poll()
        ended.register(pidfd, select.POLLIN)
        ended.poll()
        os._exit(0)

    Thread(target=wait, name="citius-lifeline", daemon=True).start()


def outcome_of(kind: bytes, data: bytearray) -> Any:
    """What the body has returned.

    Raises:
        BaseException: What it has raised, with the traceback of its process as the cause.
    """
    if kind == RESULT:
        return pickle.loads(data)
    error, text = cast("tuple[BaseException, str]", pickle.loads(data))
    error.__cause__ = RemoteTraceback(f'\n"""\n{text}"""')
    raise error


class RemoteTraceback(Exception):
    """The traceback of another process, as text."""


def call_data(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> bytes:
    """The data of a call, as a process reads it."""
    return _pickled((function, args, keywords))


def _pickled(value: object) -> bytes:
    # As `ForkingPickler.dumps`, which returns a view of its buffer. Beside a traceback both become garbage
    # at once, and the collector cannot clear a buffer before its view.
    buffer = io.BytesIO()
    ForkingPickler(buffer).dump(value)
    return buffer.getvalue()
