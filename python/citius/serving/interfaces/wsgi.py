"""WSGI applications (PEP 3333): the values that their gateway gets once, and the threads that call them.

The requests themselves are in ``crates/citius-py/src/gateway/wsgi``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import monotonic
from typing import IO, TYPE_CHECKING, Any

from citius._core import Wsgi
from citius.errors import ConfigError
from citius.observability import logging
from citius.threads import Thread

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from citius.settings.config import Config


class WsgiApp:
    """A WSGI callable, as a worker serves it."""

    needs_loop = ""

    def __init__(self, app: Callable[..., Any], config: Config, *, notice: str = "") -> None:
        self.notice = notice
        self.thread_count = config.threads or 0
        self._app = app
        self._config = config
        self._threads: list[threading.Thread] = []
        self._gateway: Wsgi | None = None
        # `getsockname` of the first listener.
        self.address: Any = ("127.0.0.1", config.port)

    def trace(self) -> None:
        """Have the span of each request be the current one in the application; before ``freeze``."""
        from citius.observability.otel import around_wsgi

        self._app = around_wsgi(self._app)

    def freeze(self, make_pool: Callable[[], Any]) -> Wsgi:
        """Make the gateway; it does not use ``make_pool``, because WSGI has threads of its own."""
        config = self._config
        calls: dict[str, Any] = {}
        if config.loop == "gevent":
            from citius.serving.greenlets import Greenlets

            greenlets = Greenlets()
            calls = {"spawn": greenlets.spawn, "wait": greenlets.wait}
        elif self.thread_count:
            calls = {"queue_max": config.blocking_queue_max}
        root_path = config.root_path.rstrip("/")
        self._gateway = Wsgi(
            self._app, self._environ(), spool=_temporary_file, root_path=root_path, **calls
        )
        return self._gateway

    async def start(self) -> None:
        """Start all threads."""
        assert self._gateway is not None, "frozen first"
        if self._config.loop == "gevent":
            return
        for index in range(self.thread_count):
            # Daemons: an application that hangs must not keep the process from ending.
            thread = Thread(target=self._work, name=f"citius-wsgi-{index}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                raise ConfigError(f"--threads {self.thread_count}: {error}") from None
            self._threads.append(thread)

    def _work(self) -> None:
        """Run queued calls until the gateway is closed.

        An exception of a call ends with the call. After another exception ``work`` is called again; after
        repeated failures the worker ends, so that it is replaced instead of staying without threads.
        """
        assert self._gateway is not None, "frozen first"
        for _ in range(_FAILURES_MAX):
            try:
                return self._gateway.work()
            except BaseException as error:
                with suppress(Exception):  # there may be no memory to log with
                    logging.log_exception(
                        "a thread of --threads failed; it is started again", error
                    )
        os.write(2, b"citius: a thread of --threads failed again and again; the worker ends\n")
        os.abort()

    async def stop(self) -> None:
        """Let the threads end; calls that outlasted the drain are abandoned."""
        assert self._gateway is not None, "frozen first"
        self._gateway.close()
        until = monotonic() + _STOP_S
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))

    def _environ(self) -> dict[str, Any]:
        """The items that the environs of all requests share."""
        config = self._config
        # A Unix socket has no port. Frameworks require one, but use the Host field.
        is_internet = isinstance(self.address, tuple)
        host, port = self.address[:2] if is_internet else ("localhost", 80)
        return {
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": self.thread_count > 1
            or config.reactors > 1
            or config.loop == "gevent",
            "wsgi.multiprocess": config.workers > 1,
        }


def _temporary_file() -> IO[bytes]:
    """A file for a request body that is too long for memory, with ``--threads 0``."""
    from tempfile import TemporaryFile  # most applications never need it

    return TemporaryFile()


# Failures of one thread outside of the application's calls after which the worker ends.
_FAILURES_MAX = 10
# The drain has waited for every request: the clients of busy threads are disconnected.
_STOP_S = 0.5
