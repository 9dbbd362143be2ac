"""What the server says: one readable line per event, access lines in batches.

Two ways out, both plain text: notices and exceptions through the standard library's logger
``citius`` (an application may add handlers of its own), access lines straight to standard output, one
``write`` per turn of the reactor. `logging` itself is imported with the first notice.
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


def configure(level: str) -> None:
    """Show notices at ``level`` and above."""
    global _level, _configured
    _level = _LEVELS[level]
    _configured = False


def log(level: int, message: str) -> None:
    """A notice; levels are those of the standard library (20: info, 30: warning, 40: error)."""
    if level >= _level:
        _logger().log(level, "%s", message)


def info(message: str) -> None:
    """A notice for whoever watches."""
    log(20, message)


def warning(message: str) -> None:
    """Something odd that was coped with."""
    log(30, message)


def error(message: str) -> None:
    """Something that did not work."""
    log(40, message)


def log_exception(message: str, exception: BaseException) -> None:
    """An exception nobody caught, with its traceback."""
    _logger().error("%s", message, exc_info=(type(exception), exception, exception.__traceback__))


def access_line(record: tuple[Any, ...]) -> str:
    """``127.0.0.1:5000 - "GET / HTTP/1.1" 200 9B 0.1ms``.

    The target is the only text a client chooses: whatever is not printable ASCII is escaped, so that
    no request forges a line or a terminal sequence.
    """
    client, method, target, version, status, body_bytes, duration_us = record
    peer = f"{client[0]}:{client[1]}" if client else "-"
    if isinstance(target, bytes):
        target = target.decode("latin-1")
    if not target.isascii() or not target.isprintable() or '"' in target:
        target = "".join(
            c if " " <= c <= "~" and c not in '"\\' else f"\\x{ord(c):02x}" for c in target
        )
    return (
        f'{peer} - "{method} {target} HTTP/{version}" {status} {body_bytes}B '
        f"{duration_us / 1000:.1f}ms"
    )


def access_writer(fd: int | None = None) -> Callable[[list[tuple[Any, ...]]], None]:
    """A function that writes the access lines of one turn with one system call.

    A reader that went away (a closed pipe) or is full ends no worker: those lines are lost.
    """
    out = sys.stdout.fileno() if fd is None else fd

    def write(records: list[tuple[Any, ...]]) -> None:
        stamp = _stamp()
        text = "".join(f"{stamp} INFO  {access_line(record)}\n" for record in records)
        try:
            os.write(out, text.encode())
        except OSError:
            return

    return write


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
            text = f"{_stamp(record.created)} {name:<5} {record.getMessage()}"
            if record.exc_info:
                text = f"{text}\n{self.formatException(record.exc_info)}"
            return text

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Formatter())
    return handler


def _stamp(now: float | None = None) -> str:
    """``2026-01-31 12:34:56.789`` in local time; the part up to the second is made once a second."""
    global _second, _second_text
    now = time.time() if now is None else now
    second = int(now)
    if second != _second:
        _second, _second_text = second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second))
    return f"{_second_text}.{int((now - second) * 1000):03}"


_SHORT = {"WARNING": "WARN", "CRITICAL": "FATAL"}
_level = _LEVELS["info"]
_configured = False
_second = -1
_second_text = ""
