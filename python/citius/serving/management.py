"""The management port: ``/metrics``, ``/live`` and ``/ready``.

It runs in the supervisor's loop or, beside a single worker, in a thread. So it responds while a worker hangs,
and reports that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius._core import Reactor, Request, Response
from citius.observability import logging
from citius.observability.observe import without_signals
from citius.process.turns import is_hosted
from citius.serving.bind import bind_beside
from citius.threads import Thread
from citius.web.application.app import App

if TYPE_CHECKING:
    import socket
    import threading
    from collections.abc import Callable

    from citius.observability.metrics import MetricsRegistry
    from citius.serving.transports import SocketHost
    from citius.settings.config import Config

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

LIMITS = {
    "connections_max": 256, "body_bytes_max": 1024, "keep_alive_ms": 75_000, "descriptors_spare": 9,
}  # fmt: skip
"""Scrapers and probes are few, and their requests have no content. Eight connections are served even if the
process has no free descriptor, as can happen beside a worker."""


class Management:
    """The management server; its owner polls ``fileno`` and calls ``turn``, or calls ``start`` once."""

    def __init__(
        self,
        registry: MetricsRegistry,
        config: Config,
        expected: Callable[[], int],
        *,
        takes_over: bool = False,
        in_thread: bool = False,
    ) -> None:
        """Bind and listen.

        Args:
            registry: The metrics that it serves.
            config: Has the address.
            expected: Returns how many workers there should be; 0 when the server is about to stop.
            takes_over: The previous server still listens at the address.
            in_thread: The owner calls ``start``.

        Raises:
            ConfigError: The address cannot be bound.
        """
        assert config.management is not None, "the caller has checked"
        made = bind_beside(config.management, config, takes_over=takes_over)
        self._listener = listener = made.sockets[0]
        self._path = made.path
        listener.listen(64)
        self._sockets: SocketHost | None = None
        if in_thread and is_hosted(config.poller):
            import asyncio

            from citius.serving.transports import SocketHost

            self._sockets = SocketHost(asyncio.new_event_loop(), LIMITS)
        sockets = self._sockets
        self._reactor: Reactor | None = Reactor(
            _application(registry, expected).freeze(_no_pool), limits=LIMITS, server_header="citius",
            log=logging.log, makes_room=True, host=sockets, on_memory=sockets and sockets.hear,
        )  # fmt: skip
        self._fileno = -1
        if sockets is not None:
            sockets.take(self._reactor, [listener], 64)
        else:
            self._reactor.listen(listener.fileno())
            self._fileno = self._reactor.fileno()
        self._thread: threading.Thread | None = None
        logging.info(f"metrics and health are at {made.url}")

    @property
    def sockets(self) -> list[socket.socket]:
        """Those that listen."""
        return [self._listener]

    def fileno(self) -> int:
        """Readable when ``turn`` has something to do."""
        return self._fileno

    def turn(self) -> None:
        """Serve the requests that have arrived; never blocks."""
        if self._reactor is not None:
            self._reactor.turn()

    def start(self) -> None:
        """Serve in a thread, until ``close``."""
        assert self._reactor is not None, "it has not been closed"
        sockets = self._sockets
        target = self._reactor.run if sockets is None else sockets.run
        self._thread = Thread(target=target, name="citius-management", daemon=True)
        with without_signals():
            self._thread.start()

    def close(self) -> None:
        """Close the listener and all connections."""
        if self._reactor is not None:
            if self._thread is not None:
                if self._sockets is not None:
                    self._sockets.end()
                self._reactor.stop()
                self._thread.join(1.0)
            self._reactor.close()
        self._listener.close()
        if self._path is not None:
            self._path.remove()  # unless a server that takes over has put its own socket there

    def leave(self) -> None:
        """Release everything in a forked child without closing the parent's connections."""
        # Dropping the reactor closes the child's copies of its sockets. `close` would also change the epoll
        # set, which the child shares with the parent.
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
        # A response is all that is needed: it shows that the process that watches the workers runs.
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
