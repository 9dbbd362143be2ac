"""``os._exit`` of an application that does not serve yet: a failed start, and not a silent end with success.

No ``finally`` and no ``atexit`` sees such an end. Code in C, and what a child process of the application
calls, is not concerned. Tests: ``tests/cli/test_start_failures.py``.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from citius.observability import logging

exit_at_once = os._exit
"""For the server's own ends."""


def watch(code: int) -> None:
    """Have the process end with ``code``, and say so, if the application calls ``os._exit``."""
    global _code, _home
    _code, _home = code, os.getpid()
    os._exit = _exit


def leave() -> None:
    """The application serves or has failed: it may end the process."""
    global _home
    _home = 0
    if os._exit is _exit:
        os._exit = exit_at_once


def _exit(status: int) -> NoReturn:
    if os.getpid() == _home:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        logging.error(
            f"the application has ended its process at its start: os._exit({status}) in {place}"
        )
        status = _code
    exit_at_once(status)


_code = _home = 0
