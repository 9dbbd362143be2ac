"""The management port: ``/metrics``, ``/live`` and ``/ready``, by a small server of our own.

It lives beside the workers, not in one: in the supervisor's loop, or, where there is only one worker, in a
thread. So it answers while a worker hangs, and says so.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from citius._core import Reactor, Request, Response
from citius.observability import logging
from citius.serving.listeners import bind_beside
from citius.web.app import App

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.observability.metrics import MetricsRegistry
    from citius.settings.config import Config

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

LIMITS = {
    "connections_max": 256, "body_bytes_max": 1024, "keep_alive_ms": 75_000, "descriptors_spare": 9,
}  # fmt: skip
"""Scrapers and probes are few, and their requests have no content. Eight are answered though the process has
no descriptor left, as it may where the worker is in it."""


class Management:
    """The server; its owner waits for ``fileno`` and calls ``turn``, or calls ``start`` once."""

    def __init__(
        self,
        registry: MetricsRegistry,
        config: Config,
        expected: Callable[[], int],
        *,
        takes_over: bool = False,
    ) -> None:
        """Bind and listen.

        Args:
            registry: What it tells about.
            config: Says at which address.
            expected: How many workers there should be; 0 when the server is about to stop.
            takes_over: The server before us still holds the address.

        Raises:
            ConfigError: The address cannot be had.
        """
        assert config.management is not None, "the caller has looked"
        made = bind_beside(config.management, config, takes_over=takes_over)
        self._listener = listener = made.sockets[0]
        self._path = made.path
        listener.listen(64)
        self._reactor: Reactor | None = Reactor(
            _application(registry, expected).freeze(_no_pool), limits=LIMITS, server_header="citius",
            log=logging.log, makes_room=True,
        )  # fmt: skip
        self._reactor.listen(listener.fileno())
        self._fileno = self._reactor.fileno()
        self._thread: threading.Thread | None = None
        logging.info(f"metrics and health are at {made.url}")

    def fileno(self) -> int:
        """Readable when ``turn`` has something to do."""
        return self._fileno

    def turn(self) -> None:
        """Serve what has arrived; never blocks."""
        if self._reactor is not None:
            self._reactor.turn()

    def start(self) -> None:
        """Answer in a thread, until ``close``."""
        assert self._reactor is not None, "it has not been closed"
        self._thread = threading.Thread(
            target=self._reactor.run, name="citius-management", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody."""
        if self._reactor is not None:
            if self._thread is not None:
                self._reactor.stop()
                self._thread.join(1.0)
            self._reactor.close()
        self._listener.close()
        if self._path is not None:
            self._path.remove()  # unless a server that takes over has put its own socket there

    def leave(self) -> None:
        """Let go of everything in a forked child, without a word to those who are connected."""
        # Its sockets are closed when it is dropped. To close *it* would change the epoll set, and that
        # belongs to the parent as well.
        self._reactor = None
        self._listener.close()


def _no_pool() -> Any:
    raise AssertionError("no handler of ours blocks")


def _application(registry: MetricsRegistry, expected: Callable[[], int]) -> App:
    app = App()

    @app.get("/metrics")
    def metrics(request: Request) -> Response:
        openmetrics = "application/openmetrics-text" in (request.header("accept") or "")
        text = registry.render(openmetrics=openmetrics)
        return Response(text, content_type=OPENMETRICS if openmetrics else PROMETHEUS)

    @app.get("/live")
    def live() -> Response:
        # That this is answered is the whole of it: the process that watches the workers is well.
        return _json({"status": "live"}, 200)

    @app.get("/ready")
    def ready() -> Response:
        count = expected()
        if count == 0:
            return _json({"status": "stopping"}, 503)
        is_ready, details = registry.health(count)
        return _json(details, 200 if is_ready else 503)

    @app.get("/")
    def index() -> str:
        return "/metrics\n/live\n/ready\n"

    return app


def _json(value: dict[str, Any], status: int) -> Response:
    return Response(
        value, status, headers={"cache-control": "no-store"}, content_type="application/json"
    )
