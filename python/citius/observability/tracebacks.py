"""Tracebacks of an application's import and start-up, without frames of the server and the import system.

Tests: ``tests/cli/test_serve.py``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def trim(error: BaseException) -> None:
    """Have the tracebacks of ``error`` and of its causes begin with the application's first line."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        left += [one.__cause__, one.__context__]
        trimmed = _of_application(one.__traceback__)
        # A syntax error is raised by the import system; its text has the place. Others are ours, then.
        if trimmed is not None or isinstance(one, (SyntaxError, ImportError)):
            one.__traceback__ = trimmed


def _of_application(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without frames of the import system, and without our first ones."""
    while traceback is not None and _is_hidden(traceback, ours=True):
        traceback = traceback.tb_next
    last = traceback
    while last is not None:
        while last.tb_next is not None and _is_hidden(last.tb_next, ours=False):
            last.tb_next = last.tb_next.tb_next
        last = last.tb_next
    return traceback


def _is_hidden(traceback: TracebackType, *, ours: bool) -> bool:
    file = traceback.tb_frame.f_code.co_filename
    if file.startswith("<frozen importlib") or file.endswith(_IMPORTLIB):
        return True
    return ours and (file.startswith(_OURS) or file.endswith(_LOOPS))


_IMPORTLIB = os.path.join("importlib", "__init__.py")
_LOOPS = (
    *(os.path.join("asyncio", name) for name in ("base_events.py", "runners.py", "events.py")),
    os.path.join("uvloop", "loop.pyx"),
)
