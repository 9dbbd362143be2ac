"""Futures of any executor, and what is particular to those that are not our own: sub-interpreters, Dask."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import socket
import sys
import tempfile
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from citius.errors import ConfigError
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

    from citius.web.execution.executors import Submits


async def outcome(future: Future[Any]) -> Any:
    """What a future of any executor comes to.

    ``asyncio.wrap_future`` would wait for ever for a body that has raised ``StopIteration``, which no future
    of asyncio takes, and would return the value of a subclass of it; here both are a ``RuntimeError``, and so
    are ``SystemExit`` and ``KeyboardInterrupt``, which would end the event loop of the task that waits.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def tell() -> None:
        if not done.done():
            done.set_result(None)

    def tell_loop(_: object) -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell)

    future.add_done_callback(tell_loop)
    await done
    try:
        return future.result()
    except CancelledError as error:
        raise asyncio.CancelledError(*error.args) from None
    except (SystemExit, KeyboardInterrupt) as error:
        raise RuntimeError(f"a handler raised {error!r}") from error


def interpreter_pool() -> Any:
    """The class of pools of sub-interpreters.

    Raises:
        ConfigError: This interpreter has none.
    """
    try:
        from concurrent.futures import InterpreterPoolExecutor  # type: ignore[attr-defined]
    except ImportError:
        raise ConfigError(
            "interpreters= needs CPython 3.14 or later, this is "
            f"{sys.version_info.major}.{sys.version_info.minor}; use processes= here"
        ) from None
    return InterpreterPoolExecutor  # pyright: ignore[reportUnknownVariableType]


def is_interpreter_pool(executor: object) -> bool:
    """Whether it is a pool of sub-interpreters."""
    return type(executor).__name__ == "InterpreterPoolExecutor"


def has_lost_interpreter(executor: object, error: Exception) -> bool:
    """Whether a body has closed the interpreter of a thread, for which every later call would fail."""
    return is_interpreter_pool(executor) and type(error).__name__ == "InterpreterNotFoundError"


def follow(executor: object, stuck: Future[Any]) -> None:
    """Let another interpreter take the place of one that is stuck, until its call is done."""
    pool = cast("Any", executor)

    def widen(by: int) -> None:
        with pool._shutdown_lock:  # under which the pool reads it
            pool._max_workers += by

    widen(1)
    stuck.add_done_callback(lambda _: widen(-1))


def reason(error: BaseException) -> str:
    """What went wrong in an interpreter; the first error is the text of the last one's cause."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    found = re.search(r"^\w+Error: .+$", str(error), re.M)
    return found[0] if found else f"{type(error).__name__}: {error}"


def shut_down(executor: Executor) -> None:
    """End one that is no longer used, or broken."""
    try:
        if type(executor).__module__.startswith("distributed."):
            cast("Any", executor).shutdown(wait=False)  # it does not know the other one
        else:
            executor.shutdown(wait=False, cancel_futures=True)
    except Exception as error:
        logging.warning(f"an executor that is broken did not end: {error}")


def reports_directory() -> str:
    """A directory for the socket on which processes report; those of workers that were killed are removed."""
    for left in Path(tempfile.gettempdir()).glob(f"{_REPORTS}*"):
        with suppress(OSError):
            if left.lstat().st_uid == os.geteuid() and not _is_served(left / "reports"):
                shutil.rmtree(left)
    return tempfile.mkdtemp(prefix=_REPORTS)


_REPORTS = "citius-jobs-"


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True  # it is just being made, or not ours
    return True


def has_left(executor: Submits | None) -> bool:
    """Whether the client of an executor of Dask is closed."""
    return cast("Any", executor)._client.status in ("closed", "closing")


def dask_again(executor: Submits) -> Submits:
    """An executor of a new client of the same scheduler."""
    import distributed

    before = cast("Any", executor)._client
    client = distributed.Client(before._start_arg, security=before.security, set_as_default=False)
    return cast("Submits", cast("Any", client).get_executor())


# The next two are sent by their code, not by their names: they use no globals.


def set_path(path: list[str]) -> None:
    """Let an interpreter find the modules that this one finds."""
    import sys

    sys.path[:] = path


def take_body(body: Callable[..., Any]) -> None:
    """Take a body, for which its module is imported."""
