"""Runs one command so that nothing of it outlives the lab.

A program of its own, without imports from the package:
``python -I -S guard.py STATUS_FD PARENT CPUS GRACE_S -- COMMAND…``.

The guard is a session leader, told by the kernel when the lab dies, and the reaper of everything
the command leaves behind; the command leads a process group of its own and dies with the guard.
SIGTERM to the guard (also what the kernel sends) means: SIGTERM to the group, GRACE_S later
SIGKILL to all that is left. The command's process id, and later how it ended, go to STATUS_FD as
one line each.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time


def main() -> int:
    """Start, wait, clean up; return the command's exit code as a shell would."""
    status_fd, parent, cpus, grace_s = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    command = sys.argv[6:]
    libc = ctypes.CDLL(None, use_errno=True)
    watched = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        return 1  # the lab died before the kernel knew whom to tell
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        start(command, cpus, libc, guard, status_fd)
    os.write(status_fd, b"pid %d\n" % child)
    code = wait(child, watched, float(grace_s))
    os.write(status_fd, b"ended %d\n" % code)
    return code if code >= 0 else 128 - code


def start(command: list[str], cpus: str, libc: ctypes.CDLL, guard: int, status_fd: int) -> None:
    """Become the command; never returns."""
    os.setpgid(0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != guard:
        os._exit(1)
    if cpus:
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    try:
        os.set_inheritable(status_fd, False)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def wait(child: int, watched: set[signal.Signals], grace_s: float) -> int:
    """Wait until the command ends or the lab wants it to end; leave no process behind."""
    code = None
    while code is None:
        if signal.sigwait(watched) == signal.SIGCHLD:
            code = reap(child)
        else:
            send(-child, signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while code is None and (left := deadline - time.monotonic()) > 0:
                signal.sigtimedwait({signal.SIGCHLD}, left)
                code = reap(child)
            break
    while True:
        send(-child, signal.SIGKILL)
        for pid in children():
            send(pid, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            return -signal.SIGKILL if code is None else code
        if pid == child and code is None:
            code = os.waitstatus_to_exitcode(status)


def reap(child: int) -> int | None:
    """Collect all that ended; return the command's exit code if it is among them."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            code = os.waitstatus_to_exitcode(status)


def children() -> list[int]:
    """Return the guard's children, among them the orphans it adopted."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def send(pid: int, number: int) -> None:
    """Signal a process or, negative, a group that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

if __name__ == "__main__":
    sys.exit(main())
