"""``citius`` and ``python -m citius``: parses the command line, unloads the parser, and serves.

The parser and the flags of four servers are loaded only for what settings/commandline.py does not read, and
unloaded because a worker does not need them. An import loads them again.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import typing
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.process import signals, standard_streams

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from citius.settings.config import Config
    from citius.settings.sources import Job, Sources


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point."""
    # What is imported until the server begins stays: a search for garbage in it would find nothing.
    was_collecting = gc.isenabled()
    gc.disable()
    standard_streams.open_closed()
    is_ours = "click" not in sys.modules
    with _interruptible():
        job = _read(arguments)
        if is_ours and "click" in sys.modules:
            _forget()
    atexit.register(_turn_deaf)  # the first to be registered is the last to be called
    try:
        code = _serve(*job, was_collecting)
        _end_at_once_if_told(code)
    except KeyboardInterrupt:  # before or after there was a server that could stop
        code = 130
    raise SystemExit(code)  # an application may have replaced `sys.exit`


@contextmanager
def _interruptible() -> Generator[None]:
    """INT ends the process without a traceback: nothing has been begun that would have to be ended."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def _read(arguments: Sequence[str] | None) -> Job:
    # In a function of its own, so that no name holds on to the module.
    from citius.settings.commandline import read_plain

    refused = None
    plain = read_plain(sys.argv[1:] if arguments is None else arguments)
    if plain is not None:
        try:
            return _job(*plain)
        except ConfigError as error:
            refused = error
    from citius.cli import read

    return read(arguments, refused)


def _job(target: str, given: dict[str, Any]) -> Job:
    from citius.settings.sources import Job, Sources

    sources = Sources(given)
    return Job(target, sources.read(), sources)


def _forget() -> None:
    import citius.settings

    for name in [*sys.modules]:
        if name.partition(".")[0] == "click" or name in ("citius.cli", "citius.settings.compat"):
            del sys.modules[name]
    citius.__dict__.pop("cli", None)
    citius.settings.__dict__.pop("compat", None)
    # typing's registry of overloads and its caches hold functions and classes of click, and so its modules.
    typing.clear_overloads()
    for clear in getattr(typing, "_cleanups", ()):
        clear()
    gc.collect()


def _serve(target: str, config: Config, sources: Sources, is_collecting: bool) -> int:
    """Serve, under the reloader if that is wanted; ``is_collecting`` says whether garbage is looked for."""
    if config.reload:
        from citius.serving.reload import Reloader

        run = Reloader(target, config, sys.argv[2:], sources).run
    else:
        from citius.serving.server import serve

        run = partial(serve, target, config, sources)
    # Not in these modules, either: that would also copy their pages for each worker.
    gc.freeze()
    if is_collecting:
        gc.enable()
    return run()


# The command has ended with success: a further signal must not turn that into a failure. While threads of the
# application and its `atexit` functions still run, another signal ends the process at once. After that Python
# would restore the default handlers of the signals.


def _end_at_once_if_told(code: int) -> None:
    def end(number: int, frame: object) -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, RuntimeError, ValueError):
                stream.flush()
        os._exit(code)

    signals.on(end, *_ENDINGS)


def _turn_deaf() -> None:
    signals.on(signal.SIG_IGN, *_ENDINGS)


_ENDINGS = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGBREAK")


if __name__ == "__main__":
    main()
