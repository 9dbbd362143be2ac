"""ASGI applications: the lifespan protocol, and what happens once per process.

Requests go through ``crates/citius-py/src/gateway/asgi/``. The lifespan (citius/web/interop/lifespan.py)
runs in a task of its own, as the specification says; the ``state`` that the application fills is copied
into the scope of each request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius._core import Asgi
from citius.web.interop.lifespan import Lifespan

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from citius.settings.config import Lifespan as Mode
    from citius.web.execution.thread_pool import BlockingPool

    Message = MutableMapping[str, Any]


class AsgiApp:
    """An ASGI 3 application as a worker serves it."""

    def __init__(
        self,
        app: Callable[..., Any],
        *,
        root_path: str = "",
        lifespan: Mode = "auto",
        debug: bool = False,
        webtransport: bool = False,
        notice: str = "",
    ) -> None:
        """Wrap an application.

        Args:
            app: ``app(scope, receive, send)`` returns an awaitable.
            root_path: Where the application is mounted, for ``scope["root_path"]``.
            lifespan: ``auto`` sends lifespan events and continues if the application does not support them.
            debug: Offer ``http.response.debug``.
            notice: Description of the application in the log.
            webtransport: Offer sessions to clients of HTTP/3.
        """
        self.notice = notice
        self.app = app
        self._mode: Mode = lifespan
        self.state: dict[str, Any] = {}
        self._root_path = root_path.rstrip("/")
        self._debug = debug
        self._webtransport = webtransport
        self._lifespan = None if lifespan == "off" else Lifespan(app, self.state, lifespan)

    @property
    def needs_loop(self) -> str:
        """Why it cannot be served without an event loop."""
        return "an ASGI application needs one"

    def trace(self) -> None:
        """Have the span of each request be the current one in the application; before ``freeze``."""
        from citius.observability.otel import around_asgi

        self.app = around_asgi(self.app)

    def freeze(self, make_pool: Callable[[], BlockingPool]) -> Asgi:
        """The gateway to it."""
        return Asgi(
            self.app,
            root_path=self._root_path,
            state=self.state,
            debug=self._debug,
            webtransport=self._webtransport,
        )

    def of_thread(self) -> AsgiApp | None:
        """The application with a lifespan and a state of its own, as ASGI wants it for each event loop."""
        if self._lifespan is None:
            return None
        return AsgiApp(
            self.app,
            root_path=self._root_path,
            lifespan=self._mode,
            debug=self._debug,
            webtransport=self._webtransport,
        )

    async def start(self) -> None:
        """Send ``lifespan.startup`` and wait for the application's response.

        Raises:
            StartupError: The application sent ``lifespan.startup.failed``, or raised with ``lifespan="on"``.
        """
        if self._lifespan is not None:
            await self._lifespan.start()

    async def stop(self) -> None:
        """Send ``lifespan.shutdown`` and wait for the application's response."""
        if self._lifespan is not None:
            await self._lifespan.stop()


def from_asgi2(app: Callable[[Message], Callable[..., Awaitable[Any]]]) -> Callable[..., Any]:
    """An ASGI 3 application of a double callable, ``app(scope)(receive, send)``."""

    async def application(scope: Message, receive: Any, send: Any) -> None:
        await app(scope)(receive, send)

    return application
