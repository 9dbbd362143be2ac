"""The lifespan of an ASGI application: start and stop as messages to a task of its own.

Tests: ``tests/asgi/test_lifespan.py``, ``tests/interop/test_mounts.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from citius.errors import StartupError
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from citius.settings.config import Lifespan as Mode

    Message = MutableMapping[str, Any]


class Lifespan:
    """The lifespan task and its messages."""

    def __init__(self, app: Callable[..., Any], state: dict[str, Any], mode: Mode) -> None:
        self._app = app
        self._state = state
        self._mode = mode
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._started: asyncio.Future[str | None]
        self._stopped: asyncio.Future[str | None]

    async def start(self) -> None:
        """Send ``lifespan.startup`` and wait for the application's response.

        Raises:
            StartupError: The application sent ``lifespan.startup.failed``, or raised in the mode ``on``.
        """
        loop = asyncio.get_running_loop()
        self._started, self._stopped = loop.create_future(), loop.create_future()
        scope: Message = {
            "type": "lifespan",
            "asgi": {"version": "3.0", "spec_version": "2.0"},
            "state": self._state,
        }
        self._inbox.put_nowait({"type": "lifespan.startup"})
        self._task = loop.create_task(self._run(scope), name="citius-lifespan")
        failure = await self._started
        if failure is not None:
            raise StartupError(f"the application's start-up failed{failure}")

    async def stop(self) -> None:
        """Send ``lifespan.shutdown`` and wait for the application's response."""
        if self._task is None or self._task.done():
            return
        self._inbox.put_nowait({"type": "lifespan.shutdown"})
        failure = await self._stopped
        if failure is not None:
            logging.error(f"the application's shutdown failed{failure}")
        # Work after the application's last message is part of its shutdown.
        await asyncio.wait([self._task], timeout=1.0)

    async def _run(self, scope: Message) -> None:
        try:
            result: Awaitable[Any] = self._app(scope, self._inbox.get, self._send)
            await result
        except Exception as error:
            self._ended(error)
        except BaseException as error:
            if not self._started.done():
                self._started.set_exception(error)  # `start` raises it, so the start fails
                return
            self._ended(error)
            raise
        else:
            self._ended(None)

    def _ended(self, error: BaseException | None) -> None:
        """The application has returned or raised: wake ``start`` or ``stop``, or fail the start."""
        if self._started.done():
            if not self._stopped.done():
                if isinstance(error, Exception):
                    logging.log_exception("the application's lifespan failed", error)
                self._stopped.set_result(None)
            return
        if error is None:
            # As in other servers: an application that returns without a response has no start-up.
            logging.log(10, "the application returned from its lifespan without a response")
            self._started.set_result(None)
        elif self._mode == "on":
            if isinstance(error, Exception):
                logging.log_exception("the application's lifespan failed", error)
            self._started.set_result(
                f": {type(error).__name__}: {error}. If it has no lifespan, use --lifespan off"
            )
        else:
            logging.log(
                10,
                "the application does not support lifespan events: it raised "
                f"{type(error).__name__}: {error} (--lifespan on makes that an error)",
            )
            self._started.set_result(None)

    async def _send(self, message: Message) -> None:
        kind = message["type"]
        detail = f": {message['message']}" if message.get("message") else ""
        expected = self._stopped if self._started.done() else self._started
        phase = "shutdown" if self._started.done() else "startup"
        if kind not in (f"lifespan.{phase}.complete", f"lifespan.{phase}.failed"):
            raise RuntimeError(
                f"expected 'lifespan.{phase}.complete' or 'lifespan.{phase}.failed', got {kind!r}"
            )
        if expected.done():
            raise RuntimeError(f"the lifespan is over, but {kind!r} was sent")
        expected.set_result(detail if kind.endswith(".failed") else None)
