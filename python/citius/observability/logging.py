"""Log of the server: one readable line per event, on standard error.

Notices and exceptions go through the standard library's logger ``citius``. Which handlers write a record is
decided for each record, because an application may configure logging at any time, in any process:

- handlers of the logger ``citius`` (and of the root logger, if ``propagate`` is set), where there are some;
- otherwise a handler of our own, which writes to standard error.

Levels, handlers and ``propagate`` that an application sets for ``citius`` hold. What it does to logging as a
whole does not: ``disable_existing_loggers``, the default of ``dictConfig`` and ``fileConfig``,
``logging.disable``, another ``sys.stderr``. If another handler or a filter raises, our own handler writes the
record as well.

With ``--log-config`` (``logconfig.py``) the file has the say: records reach the root logger's handlers unless
the file has some for ``citius``. Access log lines do not pass here: the extension makes and writes them
(``observe.py``).
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
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
    global _level, _prepared, _colors, _said
    _said = level
    _prepared = False
    if colors is None:
        colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    _colors = colors
    if _by_file:
        govern()
    else:
        _level = _LEVELS[level]
        prepare()  # before the application has configured logging, in every process


def keep_stream() -> None:
    """Write to standard error as it is now, whatever stream an application puts in its place."""
    global _stream
    _stream = sys.stderr


def govern() -> None:
    """Leave the handlers and levels of the logger to the file of ``--log-config``, which has been applied.

    ``--log-level``, if it is not the default, is a further bound.
    """
    global _by_file, _level, _prepared
    import logging

    logger = logging.getLogger("citius")
    if not _by_file and not logger.handlers:
        logger.propagate = True
    _by_file = _prepared = True
    of_file = logger.getEffectiveLevel()
    _level = of_file if _said == "info" else max(of_file, _LEVELS[_said])


def log(level: int, message: str) -> None:
    """Log a notice; levels are those of the standard library (20: info, 30: warning, 40: error)."""
    if level >= _level:
        _write(level, message)


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
    _write(40, message, exception)


def log_failure(message: str) -> None:
    """Log a failure of a handler that raised no exception; counted like an exception."""
    if _count_exception is not None:
        _count_exception()
    error(message)


def count_exceptions(count: Callable[[], object] | None) -> None:
    """Set the function that is called for every unhandled exception; ``None``: none."""
    global _count_exception
    _count_exception = count


def prepare() -> Logger:
    """The logger ``citius`` before the application or a file has configured it.

    Records do not reach the root logger as well: an application with handlers there and on ``citius`` would
    have each record twice.
    """
    global _prepared
    import logging

    logger = logging.getLogger("citius")
    if not _prepared:
        _prepared = True
        logger.setLevel(_level)
        logger.propagate = False
    return logger


def _logger() -> Logger:
    """The logger ``citius``, with our own handler if no other takes its records."""
    global _own
    logger = prepare()
    logger.disabled = False
    if _own is None:
        _own = _handler()
    others = [handler for handler in logger.handlers if handler is not _own]
    if others or (logger.propagate and _root_handlers()):
        logger.removeHandler(_own)
    else:
        logger.addHandler(_own)
    return logger


def _write(level: int, message: str, exception: BaseException | None = None) -> None:
    """Hand a record to the handlers that take it, or to our own if one of them, or a filter, raises."""
    logger = _logger()
    if level < logger.getEffectiveLevel():
        return
    exc_info = None
    if exception is not None:
        exc_info = (type(exception), exception, exception.__traceback__)
    try:
        # Not by a method that asks `logging.disable`.
        logger.handle(
            logger.makeRecord(logger.name, level, __file__, 0, "%s", (message,), exc_info)
        )
    except Exception as failure:
        from logging import LogRecord

        text = f"{message} [the application's logging raised {failure!r}]"
        assert _own is not None, "`_logger` has made it"
        _own.handle(LogRecord(logger.name, level, __file__, 0, "%s", (text,), exc_info))


def child(name: str) -> Logger:
    """The logger ``citius.NAME``, which no configuration of the application has silenced by the way."""
    import logging

    if _prepared:
        _logger()
    logger = logging.getLogger(f"citius.{name}")
    logger.disabled = False
    return logger


def _root_handlers() -> list[Any]:
    """The handlers of the root logger."""
    import logging

    return logging.getLogger().handlers


def _handler() -> Any:
    import logging

    class OwnHandler(logging.Handler):
        """Writes to standard error; to its descriptor if the application has closed the stream."""

        def emit(self, record: logging.LogRecord) -> None:
            text = self.format(record) + "\n"
            stream = _stream or sys.stderr
            try:
                stream.write(text)
                stream.flush()
            except Exception:
                with suppress(OSError):
                    os.write(2, text.encode(errors="backslashreplace"))

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

    handler = OwnHandler()
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
_said = "info"
_prepared = False
_by_file = False
_own: Any = None
_stream: Any = None
"""Standard error when the server was started; `None`: what `sys.stderr` is."""
_count_exception: Callable[[], object] | None = None
_second = -1, ""
