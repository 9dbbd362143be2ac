"""Bodies for executors; for sub-interpreters, too: of Citius this imports web.execution.progress alone."""

# pyright: basic

import ctypes
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from citius.web.execution.progress import JobCancelled, Progress


@dataclass
class Size:
    width: int
    height: int


def interpreter() -> int:
    """The number of this interpreter; 0: the main one."""
    if sys.version_info < (3, 14):
        return 0
    from concurrent import interpreters

    return interpreters.get_current().id


def close_interpreters() -> int:
    """Closes the other interpreters that do not run, as a library that has made some might; how many."""
    from concurrent import interpreters

    found = interpreters.list_all()  # pyright: ignore[reportAttributeAccessIssue]  typeshed lacks it
    others = [one for one in found if one.id not in (0, interpreter())]
    idle = [one for one in others if not one.is_running()]
    for one in idle:
        one.close()
    return len(idle)


@dataclass
class Text:
    text: str


def backwards(text: Text) -> str:
    return text.text[::-1]


def where(n: int = 1) -> dict:
    thread = threading.current_thread().name
    return {"n": n, "pid": os.getpid(), "thread": thread, "interpreter": interpreter()}


def meet(own: str, other: str) -> int:
    """The interpreter of a body that runs at the same time as another one."""
    Path(own).touch()
    wait_for_file(other)
    return interpreter()


def area(size: Size) -> int:
    return size.width * size.height


def fail(text: str) -> None:
    raise KeyError(text)


def wait_for_file(path: str) -> str:
    while not Path(path).exists():
        time.sleep(0.01)
    return "there"


def steps(path: str, progress: Progress) -> str:
    """Reports until the file is there, or it is cancelled; leaves a mark."""
    number = 0
    try:
        while not Path(path).exists():
            number += 1
            progress(min(1.0, number / 1000), {"step": number})
            time.sleep(0.01)
    except JobCancelled:
        Path(path + ".cancelled").touch()
        raise
    return "done"


def measured(path: str, progress: Progress) -> Size:
    """Reports once, and returns a record or fails."""
    progress(0.5, {"step": 1})
    if path == "fail":
        raise ValueError(path)
    return Size(3, 4)


def crash(how: str) -> None:
    if how == "exit":
        os._exit(9)
    os.kill(os.getpid(), getattr(signal, how))


def fork(n: int) -> int:
    """Returns in the child as well."""
    os.fork()
    return n


def fork_and_hold(go: str) -> int:
    """The child outlives its parent, until a file is there."""
    if os.fork() == 0:
        wait_for_file(go)
        os._exit(0)
    return os.getpid()


def fork_unseen_and_hold(go: str) -> int:
    """The child has copies of all descriptors, and no function of Python is told of it."""
    if ctypes.PyDLL(None).fork() == 0:
        wait_for_file(go)
        os._exit(0)
    return os.getpid()


def loop(path: str) -> None:
    """Has no end, and tells when it has begun."""
    Path(path).touch()
    while True:
        pass


def hold(path: str, go: str) -> str:
    """Leaves a mark when it begins."""
    Path(path).touch()
    return wait_for_file(go)


def add_routes(app, *names: str) -> None:
    for name in names:
        app.get(f"/{name}/where/{{n:int}}", executor=name)(where)
        app.post(f"/{name}/area", executor=name)(area)
        app.post(f"/{name}/backwards", executor=name)(backwards)
        app.get(f"/{name}/fail", executor=name)(fail)
        app.get(f"/{name}/wait", executor=name)(wait_for_file)
        app.get(f"/{name}/meet", executor=name)(meet)
        app.get(f"/{name}/steps", executor=name)(steps)
        app.get(f"/{name}/measured", executor=name)(measured)
    app.get("/pid")(os.getpid)


class Ended(StopIteration):
    """What a library may raise for an empty result."""


def end(how: str) -> int:
    raise {"StopIteration": StopIteration, "Ended": Ended}[how](7)
