"""Ends child processes that application code forks when the application returns in them.

Such a child has copies of the worker's sockets, and must neither serve nor clean up.
``citius-py/src/fork.rs`` does the same for handlers; this module is for all other calls of the application
(import, hooks, readiness checks).
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Callable

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def end_child(pid: int, error: BaseException | None = None) -> None:
    """End this process unless it is ``pid``; ``error`` is what the application has raised."""
    if os.getpid() == pid:
        return
    code = 1
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    else:
        how = "returned" if error is None else f"raised {error!r}"
        logging.error(
            f"a forked child ended (exit code 1), because it cannot serve: its function {how}; "
            "end a child with os._exit() or sys.exit()"
        )
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def call_here(
    function: Callable[_Parameters, _Result],
    *arguments: _Parameters.args,
    **more: _Parameters.kwargs,
) -> _Result:
    """Call a function that runs code of the application; a child that it forks ends there."""
    home = os.getpid()
    try:
        result = function(*arguments, **more)
    except BaseException as error:
        end_child(home, error)
        raise
    end_child(home)
    return result
