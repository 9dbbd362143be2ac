"""Starts processes that cannot outlive the lab, and reads what they cost.

Every server and every load generator runs under ``guard.py``, which kills the process group it
started, and everything that group left behind, when the lab asks or dies. Nothing is ever killed
by name.

CPU time is the processes' CPU clock (nanoseconds, exited threads included), summed over all that the
guard has below it, and what ended there and was waited for (in the kernel's ticks, of 10 ms as a rule);
memory is PSS, so that pages shared by the workers of one server are counted once.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from citius_lab.definitions import wires
from citius_lab.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from citius_lab.definitions.contestants import Contestant
    from citius_lab.processes.services import Services


class Guarded:
    """One command under the guard.

    Args:
        cpus: CPUs it and its children may use; all if empty.
        grace_s: Seconds between SIGTERM and SIGKILL when it is stopped.

    Raises:
        LaunchError: The guard itself does not start.
    """

    def __init__(
        self,
        command: list[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        cpus: Iterable[int] = (),
        grace_s: float = 3.0,
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        stderr: IO[bytes] | int = subprocess.STDOUT,
    ) -> None:
        self.command = command
        self._grace_s = grace_s
        self._ended: int | None = None
        status_read, status_write = os.pipe()
        self._status = os.fdopen(status_read, "r")
        words = [str(status_write), str(os.getpid()), ",".join(map(str, cpus)), str(grace_s), "--"]
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), *words, *command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=None if env is None else dict(env),
                cwd=cwd,
                pass_fds=(status_write,),
                start_new_session=True,
            )
        except OSError as error:
            self._status.close()
            raise LaunchError(f"{sys.executable} does not start: {error}") from error
        finally:
            os.close(status_write)
        try:
            word, _, number = self._status.readline().partition(" ")
            if word != "pid":
                raise LaunchError(f"the guard of {command[0]} ended before it started it")
        except BaseException:
            self.stop()
            raise
        self.pid = int(number)

    @property
    def stderr(self) -> IO[bytes]:
        """The command's standard error, when it was asked for as a pipe."""
        assert self._guard.stderr is not None, "stderr=PIPE was not given"
        return self._guard.stderr

    def pids(self) -> list[int]:
        """Return its process and all that it started: the guard adopts those whose parent has ended."""
        return tree(self._guard.pid)[1:]

    def reaped_s(self) -> float:
        """Return the CPU time of those of its processes that have ended and were waited for."""
        return sum(map(_reaped_s, tree(self._guard.pid)))

    def ended(self) -> int | None:
        """Return its exit code (a negative signal number), ``None`` while it runs."""
        if self._ended is None and self._guard.poll() is not None:
            self._collect()
        return self._ended

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end; ``None`` if it still runs then."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(timeout_s)
            self._collect()
        return self._ended

    def stop(self) -> None:
        """End it and all it started; returns when they are gone."""
        while self._guard.poll() is None:
            self._guard.terminate()
            try:
                self._guard.wait(self._grace_s + 2.0)
            except subprocess.TimeoutExpired:
                # The guard is stuck; the command dies with it, by the kernel's hand.
                self._guard.kill()
        self._collect()

    def _collect(self) -> None:
        if not self._status.closed:
            for line in self._status.read().splitlines():
                word, _, number = line.partition(" ")
                if word == "ended":
                    self._ended = int(number)
            self._status.close()
        if self._ended is None:
            self._ended = self._guard.returncode
        if self._guard.stderr is not None:
            self._guard.stderr.close()


class Log:
    """What one process says, in a file of bounded size.

    A thread reads to the end and discards what is beyond ``LOG_BYTES_MAX``: the process must neither
    fill the disk nor wait for a full pipe.
    """

    def __init__(self, path: Path, first_line: str) -> None:
        # Unbuffered: on a full disk closing it has nothing left to write.
        self._file = path.open("ab", buffering=0)
        self._last = first_line.encode()
        self._file.write(self._last)
        self._left = LOG_BYTES_MAX
        self._reading, self.descriptor = os.pipe()
        self._thread = threading.Thread(target=self._copy, name="citius-lab-log", daemon=True)

    def begin(self) -> None:
        """Read from now on; the process has its copy of ``descriptor``, or did not start."""
        os.close(self.descriptor)
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of what a process said that has ended."""
        self._thread.join(LOG_END_S)

    def tail(self) -> str:
        """Return its last lines, as a terminal can show them."""
        lines = self._last.decode(errors="replace").splitlines()[-8:]
        return "\n".join(f"    {printable(line)}" for line in lines)

    def _copy(self) -> None:
        with self._file, os.fdopen(self._reading, "rb", buffering=0) as pipe:
            while piece := pipe.read(65536):
                self._last = (self._last + piece)[-LOG_TAIL_BYTES:]
                with contextlib.suppress(OSError):  # a full disk is the recorder's to tell
                    self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        kept, was_left = piece[: self._left], self._left
        self._left -= len(kept)
        self._file.write(kept)
        if was_left and not self._left:
            self._file.write(b"\n[the log is full: what follows is not kept]\n")


def printable(text: str) -> str:
    """Return ``text`` with control characters escaped, which could change what a terminal shows."""
    return "".join(
        char if char.isprintable() or char in "\t\n" else char.encode("unicode_escape").decode()
        for char in text
    )


class Server:
    """A contestant that listens on a port of 127.0.0.1; a context manager.

    Args:
        manner: Which of its starts, as ``Contestant.manner_of`` names it.
        services: Those of the run, which start what the contestant needs.
        host: A further address at which it has to accept; it listens on all of this machine then.
        prefix: Words before its command: a program that runs it.
    """

    def __init__(
        self,
        contestant: Contestant,
        *,
        workers: int,
        cpus: Iterable[int],
        log_path: Path,
        ready_s: float = 30.0,
        manner: str = "plain",
        services: Services | None = None,
        host: str | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self.contestant = contestant
        self._hosts = ("127.0.0.1", host) if host is not None else ("127.0.0.1",)
        needed = contestant.services
        where = {} if services is None else services.environment(needed)
        self.service_pids = () if services is None else services.pids(needed)
        self.port = free_port()
        self.log_path = log_path
        spoken = contestant.wires_of(manner)
        self._is_quic = any(map(wires.is_quic, spoken))
        self._is_tcp = not spoken or not all(map(wires.is_quic, spoken))
        words = contestant.command(
            port=self.port, workers=workers, manner=manner, is_reachable=host is not None
        )
        self.command = [*prefix, *words]
        started_at = time.monotonic()
        self._log = Log(log_path, f"$ {' '.join(self.command)}\n")
        try:
            self._process = Guarded(
                self.command,
                env=contestant.environment() | where,
                cwd=contestant.source,
                cpus=cpus,
                stdout=self._log.descriptor,
            )
        finally:
            self._log.begin()
        self.pid = self._process.pid
        try:
            self._wait_until_it_accepts(started_at + ready_s)
        except BaseException:
            self.stop()
            raise
        self.ready_after_s = time.monotonic() - started_at

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and all its children."""
        self._process.stop()
        self._log.join()

    def pids(self) -> list[int]:
        """Return all its processes."""
        return self._process.pids()

    def reaped_s(self) -> float:
        """Return the CPU time of those of its processes that have ended and were waited for."""
        return self._process.reaped_s()

    def ended(self, patience_s: float = 0.0) -> str | None:
        """Return how it ended, with the last lines of its log; ``None`` while it runs.

        Its sockets are closed a moment before its end is known: ``patience_s`` waits for that.
        """
        code = self._process.wait(patience_s) if patience_s else self._process.ended()
        if code is None:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
        self._log.join()
        return f"{self.contestant.name} {how}; the end of its log:\n{self._log.tail()}"

    def _wait_until_it_accepts(self, deadline: float) -> None:
        while True:
            if (how := self.ended()) is not None:
                raise LaunchError(f"{how}\n(it was starting on port {self.port})")
            host = self._hosts[0]
            with contextlib.suppress(OSError):
                for host in self._hosts:
                    if self._is_tcp:
                        socket.create_connection((host, self.port), timeout=1.0).close()
                    if self._is_quic:
                        _ask_for_versions(host, self.port)
                return
            if time.monotonic() > deadline:
                raise LaunchError(
                    f"{self.contestant.name} does not accept on {host}:{self.port}; "
                    f"the end of its log:\n{self._log.tail()}"
                )
            time.sleep(0.02)


def _ask_for_versions(host: str, port: int) -> None:
    """Send a packet of a version of QUIC that is none: a server answers with those it has (RFC 9000 §6).

    Raises:
        OSError: Nothing comes back.
    """
    packet = bytes([0xC0, *VERSION_NONE, 8, *bytes(8), 8, *bytes(8)]).ljust(PACKET_BYTES, b"\0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(ANSWER_S)
        asking.connect((host, port))
        asking.send(packet)
        asking.recv(PACKET_BYTES)


@contextlib.contextmanager
def signals_as_interrupts() -> Generator[None]:
    """Turn SIGINT, SIGTERM and SIGHUP into KeyboardInterrupt, so that all cleaning up is one path.

    SIGINT also where it is ignored: what a shell runs in the background begins like that, and who sends it
    by the process id means it. ``nohup`` is heeded.
    """

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = [signal.signal(number, interrupt) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)


def scratch() -> str:
    """Return a folder of this process for temporary files; it is removed when the lab ends."""
    if not _SCRATCH:
        folder = tempfile.mkdtemp(prefix="citius-lab-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _SCRATCH.append(folder)
    return _SCRATCH[0]


def free_port() -> int:
    """Return a port of 127.0.0.1 that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def accepts(port: int, patience_s: float) -> bool:
    """Wait until a process accepts on ``port``; return whether one does."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
            return True
        time.sleep(0.02)
    return False


def port_in_use(port: int) -> bool:
    """Tell whether a process listens on ``port``, also with SO_REUSEPORT."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def tree(pid: int) -> list[int]:
    """Return ``pid`` and all its descendants."""
    found: list[int] = []
    queue = [pid]
    while queue:
        pid = queue.pop()
        found.append(pid)
        # A process may end at any time, and a thread of one that is left.
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
                    queue.extend(map(int, words))
    return found


def wait_until_asleep(pids: Iterable[int], patience_s: float) -> None:
    """Wait until no thread of the processes runs.

    Raises:
        OSError: One still does after so long.
    """
    deadline = time.monotonic() + patience_s
    while any(map(_runs, pids)):
        if time.monotonic() > deadline:
            raise OSError("the server does not come to rest")
        time.sleep(0)


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):  # it may end at any time
        for thread in os.listdir(f"/proc/{pid}/task"):
            state = Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2]
            if state.split()[0] == "R":
                return True
    return False


def cpu_clocks_s(pids: Iterable[int]) -> dict[int, float]:
    """Return the CPU time each process used so far, threads that ended included."""
    clocks: dict[int, float] = {}
    for pid in pids:
        # The kernel's encoding of "the CPU clock of that process", CPUCLOCK_SCHED.
        with contextlib.suppress(OSError):
            clocks[pid] = time.clock_gettime((~pid << 3) | 2)
    return clocks


def _reaped_s(pid: int) -> float:
    """Return the CPU time of the children that a process has waited for, and of theirs."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[CUTIME]) + int(words[CSTIME])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def pss_kib(pids: Iterable[int]) -> int:
    """Return the memory of the processes, shared pages counted in proportion."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total


# Of one start's output.
LOG_BYTES_MAX = 1 << 20
# A version of the pattern that is reserved for being unknown, and the least that a first packet has.
VERSION_NONE = b"\x1a\x2a\x3a\x4a"
PACKET_BYTES = 1200
ANSWER_S = 0.2
LOG_TAIL_BYTES = 8192
# How long the end of the output may take once the process has ended.
LOG_END_S = 2.0
_SCRATCH: list[str] = []
# Fields of /proc/PID/stat behind the command's name (proc(5): 16 and 17).
CUTIME, CSTIME = 13, 14
GUARD = Path(__file__).with_name("guard.py")
