"""Log of the server: one readable line per event, on standard error.

Notices and exceptions go through the standard library's logger ``citius``, so that an application may add
handlers of its own; `logging` itself is imported with the first notice. Access log lines do not pass here:
the extension makes and writes them (``observe.py``).
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger

_LEVELS = {"critical": 50, "error": 40, "warning": 30, "info": 20, "debug": 10, "trace": 5}


def configure(level: str, colors: bool | None = None) -> None:
    """Show notices at ``level`` and above.

    Args:
        level: The least important that is shown.
        colors: Whether levels are coloured; ``None``: where standard error is a terminal and NO_COLOR unset.
    """
    global _level, _configured, _colors
    _level = _LEVELS[level]
    _configured = False
    if colors is None:
        colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    _colors = colors


def log(level: int, message: str) -> None:
    """Log a notice; levels are those of the standard library (20: info, 30: warning, 40: error)."""
    if level >= _level:
        _logger().log(level, "%s", message)


def info(message: str) -> None:
    """Log what the operator may want to know."""
    log(20, message)


def warning(message: str) -> None:
    """Log a condition that the server could handle."""
    log(30, message)


def error(message: str) -> None:
    """Log a failure."""
    log(40, message)


def log_exception(message: str, exception: BaseException) -> None:
    """Log an unhandled exception with its traceback, and count it."""
    if _count_exception is not None:
        _count_exception()
    _logger().error("%s", message, exc_info=(type(exception), exception, exception.__traceback__))


def log_failure(message: str) -> None:
    """Log a failure of a handler that raised no exception; counted like an exception."""
    if _count_exception is not None:
        _count_exception()
    error(message)


def count_exceptions(count: Callable[[], object] | None) -> None:
    """Set the function that is called for every unhandled exception; ``None``: none."""
    global _count_exception
    _count_exception = count


def _logger() -> Logger:
    """The logger ``citius``; unless the application gave it handlers, it writes to standard error."""
    global _configured
    import logging

    logger = logging.getLogger("citius")
    if not _configured:
        _configured = True
        logger.setLevel(_level)
        if not logger.handlers:
            logger.addHandler(_handler())
            logger.propagate = False
    return logger


def _handler() -> Any:
    import logging

    class Formatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            name = _SHORT.get(record.levelname, record.levelname)
            name = f"{name:<5}"
            if _colors:
                name = f"\x1b[{_COLORS.get(record.levelno, 36)}m{name}\x1b[0m"
            text = f"{_stamp(record.created)} {name} {record.getMessage()}"
            if record.exc_info:
                text = f"{text}\n{self.formatException(record.exc_info)}"
            return text

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    return handler


def _stamp(now: float | None = None) -> str:
    """``2026-01-31 12:34:56.789`` in local time; the part up to the second is made once a second."""
    global _second
    now = time.time() if now is None else now
    second = int(now)
    known, text = _second
    if second != known:
        text = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
        _second = second, text
    return f"{text}.{int((now - second) * 1000):03}"


_SHORT = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_COLORS = {20: 32, 30: 33, 40: 31, 50: 31}  # green, yellow, red (ECMA-48 SGR)
_colors = False
_level = _LEVELS["info"]
_configured = False
_count_exception: Callable[[], object] | None = None
_second = -1, ""
