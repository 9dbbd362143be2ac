"""A server under valgrind's callgrind, and what its processes have counted since they were last asked.

Nothing is counted while it starts (``--instr-atstart=no``: that is several times as fast). From then on
each process is asked by ``vgdb`` to write what it has counted, and begins again at 0. Counted are
instructions of user space: what the kernel does for the server is not in them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

from citius_lab.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def missing() -> str | None:
    """Return why nothing can be counted on this machine, ``None`` if it can."""
    for tool in ("valgrind", "vgdb"):
        if shutil.which(tool) is None:
            return f"counting instructions needs {tool}, which is not on PATH (Debian: valgrind)"
    return None


def version() -> str:
    """Return what valgrind says its version is."""
    return _output(["valgrind", "--version"]).strip()


class Callgrind:
    """Counts the instructions of one server.

    Args:
        folder: For what callgrind writes; one of its own, which exists.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def words(self) -> list[str]:
        """Return the words before the server's command."""
        return [
            "env", *ENVIRONMENT,
            "valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--trace-children=yes",
            f"--callgrind-out-file={self._folder}/counts.%p", f"--vgdb-prefix={self._folder}/vgdb",
        ]  # fmt: skip

    def begin(self, pids: Sequence[int]) -> None:
        """Count from now on, in all these processes."""
        self._tell(pids, "instrumentation", "on")

    def taken(self, pids: Sequence[int]) -> int:
        """Return how many instructions the processes have executed since this was last asked.

        Raises:
            LaunchError: A process does not run under valgrind, or wrote no count.
        """
        return sum(map(total_of, self.dumps(pids)))

    def dumps(self, pids: Sequence[int]) -> list[str]:
        """Return what callgrind writes of the processes' threads since this was last asked.

        Raises:
            LaunchError: A process does not run under valgrind, or wrote no count.
        """
        self._tell(pids, "dump")
        return [dump for pid in pids for dump in self._read(pid)]

    def _tell(self, pids: Sequence[int], *words: str) -> None:
        for pid in pids:
            _output(["vgdb", f"--vgdb-prefix={self._folder}/vgdb", f"--pid={pid}", *words])

    def _read(self, pid: int) -> list[str]:
        """Return what a process has written, and remove it."""
        found = list(self._folder.glob(f"counts.{pid}.*"))
        if not found:
            raise LaunchError(f"callgrind wrote no count of process {pid}")
        dumps = [path.read_text(errors="replace") for path in found]
        for path in found:
            path.unlink()
        return dumps


def crash(log: Path) -> str | None:
    """Return what valgrind says in a server's log of its own end, ``None`` if it says nothing."""
    match = re.search(CRASH, log.read_text(errors="replace"), re.MULTILINE)
    return match and f"valgrind ended the server: {match[0]}"


def total_of(dump: str) -> int:
    """Return what a dump counts over all threads.

    Raises:
        LaunchError: It has no sum.
    """
    match = re.search(r"^summary: (\d+)", dump, re.MULTILINE)
    if match is None:
        raise LaunchError("callgrind wrote a count without its sum")
    return int(match[1])


def within(dump: str, piece: str) -> int:
    """Return what a dump counts within the objects whose path has ``piece`` in it.

    These are its lines of cost, but for those of calls: ``ob=(2) /path`` names the object of the functions
    that follow, later ``ob=(2)`` alone.
    """
    names: dict[str, str] = {}
    is_own = is_call = False
    found = 0
    for line in dump.splitlines():
        if line.startswith(("ob=", "cob=")):
            number, _, name = line.partition("=")[2].partition(" ")
            names.setdefault(number, name)
            if line.startswith("ob="):
                is_own = piece in names[number]
        elif line.startswith("calls="):
            is_call = True
        elif is_call:
            is_call = False
        elif is_own and line[:1] in COST_BEGINS:
            found += int(line.split()[1])
    return found


def _output(command: list[str]) -> str:
    """Return what a program of valgrind says.

    Raises:
        LaunchError: It fails, or does not end.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except OSError as error:
        raise LaunchError(f"{command[0]}: {error}") from error
    except subprocess.TimeoutExpired as error:
        # Its options name a folder of this machine, which would stand in kept results.
        raise LaunchError(f"{command[0]}: a process gave no answer in {PATIENCE_S:g} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise LaunchError(f"{command[0]}: {said[-1] if said else f'code {done.returncode}'}")
    return done.stdout


# Positions in a line of cost are absolute, relative to the line before, or the same.
COST_BEGINS = frozenset("0123456789+-*")
# What valgrind writes when an assertion of its own fails, or when it cannot go on.
CRASH = r"^(Callgrind: .* failed\.|valgrind: .*|vex .*: .*)$"
ENVIRONMENT = (
    # The order of Python's sets and dicts of strings would be another one with each start.
    "PYTHONHASHSEED=0",
    # Go interrupts a goroutine that has run for 10 ms by a signal. Under valgrind they run that long, and
    # callgrind of valgrind 3.19 ends the server at some of these signals (an assertion of post_signal).
    "GODEBUG=asyncpreemptoff=1",
)
# A process answers when it is in a system call, or after some thousand of its blocks.
PATIENCE_S = 60.0
