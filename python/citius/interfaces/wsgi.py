"""WSGI applications (PEP 3333): what their gateway is told once, and the threads they are called in.

The requests themselves are in ``crates/citius-py/src/gateway/wsgi``.
"""

from __future__ import annotations

import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius._core import Wsgi
from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.config import Config


class WsgiApp:
    """A WSGI callable, as a worker serves it."""

    needs_loop = ""

    def __init__(self, app: Callable[..., Any], config: Config) -> None:
        self._app = app
        self._config = config
        self._threads: list[threading.Thread] = []
        self._gateway: Wsgi | None = None
        # As `getsockname` has it, of the first listener.
        self.address: Any = ("127.0.0.1", config.port)

    def freeze(self, make_pool: Callable[[], Any]) -> Wsgi:
        """The gateway; it has threads of its own."""
        config = self._config
        calls: dict[str, Any] = {}
        if config.loop == "gevent":
            from citius.greenlets import Greenlets

            greenlets = Greenlets()
            calls = {"spawn": greenlets.spawn, "wait": greenlets.wait}
        elif config.threads:
            calls = {"queue_max": config.blocking_queue_max}
        root_path = config.root_path.rstrip("/")
        self._gateway = Wsgi(self._app, self._environ(), root_path=root_path, **calls)
        return self._gateway

    async def start(self) -> None:
        """Start the threads, all of them: they are few, and asked for by number."""
        assert self._gateway is not None, "frozen first"
        if self._config.loop == "gevent":
            return
        for index in range(self._config.threads):
            # Daemons: an application that hangs must not keep the process from ending.
            thread = threading.Thread(
                target=self._gateway.work, name=f"citius-wsgi-{index}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:
                raise ConfigError(f"--threads {self._config.threads}: {error}") from None
            self._threads.append(thread)

    async def stop(self) -> None:
        """Let the threads go; answers that nobody has waited for are left behind."""
        assert self._gateway is not None, "frozen first"
        self._gateway.close()
        until = monotonic() + _STOP_S
        for thread in self._threads:
            thread.join(max(0.0, until - monotonic()))

    def _environ(self) -> dict[str, Any]:
        """What the environs of all requests say of this server."""
        config = self._config
        # A Unix socket has no port; frameworks want one, and go by Host anyway.
        is_internet = isinstance(self.address, tuple)
        host, port = self.address[:2] if is_internet else ("localhost", 80)
        return {
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": config.threads > 1 or config.loop == "gevent",
            "wsgi.multiprocess": config.workers > 1,
        }


# The drain has waited for every request; a thread that is at work now works for nobody.
_STOP_S = 0.5
