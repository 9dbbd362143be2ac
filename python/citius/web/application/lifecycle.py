"""Start and stop of an application: lifespans, hooks, and dependencies of the application.

The order is: the lifespan and the hooks of the outer application, then those of mounted ones, then
dependencies; a stop is the reverse. Tests: ``tests/gateway/test_app.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from citius.records import record
from citius.threads import Timer
from citius.web.declarations import checks
from citius.web.routing.request_chain import finish, log_ended

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from citius.web.binding.depends.dependencies import AppDependencies

    Hook = Callable[[], Any]
    Lifespan = Callable[[Any], AbstractAsyncContextManager[object]]


@record(slots=True)
class Hooks:
    """What one application wants to have called."""

    lifespan: Lifespan | None
    startup: list[Hook] = field(default_factory=list["Hook"])
    shutdown: list[Hook] = field(default_factory=list["Hook"])
    entered: AbstractAsyncContextManager[object] | None = None
    """The lifespan between start and stop."""
    app: Any = None
    """The application that has them."""

    async def leave(self) -> None:
        """Leave the lifespan, if it has been entered."""
        manager, self.entered = self.entered, None
        if manager is not None:
            try:
                await manager.__aexit__(None, None, None)
            except BaseException as error:
                log_ended("the end of the lifespan", error)


async def start(
    app: object,
    all_hooks: Sequence[Hooks],
    of_app: AppDependencies,
    on_broken: Callable[[], bool],
) -> Callable[[], Awaitable[None]]:
    """Start an application; returns what stops it.

    ``on_broken`` is called if a task group of its lifespans or dependencies ends before that, and returns
    whether it will be stopped then.
    """
    is_kept = any(hooks.lifespan is not None for hooks in all_hooks) or bool(of_app.by_call)
    if not is_kept or "asyncio" not in sys.modules:
        await _start(app, all_hooks, of_app)
        return lambda: _stop(all_hooks, of_app)
    from citius.web.application.lifetime import Lifetime

    lifetime = Lifetime(
        lambda: _start(app, all_hooks, of_app), lambda: _stop(all_hooks, of_app), on_broken
    )
    await lifetime.start()
    return lifetime.stop


async def _start(app: object, all_hooks: Sequence[Hooks], of_app: AppDependencies) -> None:
    """Enter lifespans, call start-up hooks, make the values of the application's dependencies.

    A mapping that a lifespan yields is the state with which requests of its application begin, and of those
    that are mounted in it.
    """
    outer: dict[str, object] = {}
    try:
        for hooks in all_hooks:
            state: dict[str, object] = {}
            if hooks.lifespan is not None:
                manager = hooks.lifespan(hooks.app)
                checks.check_manager(manager, hooks.lifespan)
                entered = await manager.__aenter__()
                hooks.entered = manager
                if isinstance(entered, Mapping):
                    given = cast("Mapping[object, object]", entered)
                    state = checks.checked_state(given, hooks.lifespan)
            if hooks.app is app:
                outer = state
            if hooks.app is not None:
                hooks.app.set_lifespan_state({**outer, **state} or None)
            for hook in hooks.startup:
                await finish(hook())
        await of_app.start(app)
    except BaseException:
        await _stop_dependencies(of_app)
        for hooks in reversed(all_hooks):
            await hooks.leave()
        raise


async def _stop(all_hooks: Sequence[Hooks], of_app: AppDependencies) -> None:
    """Undo ``_start`` in reverse; the log says what takes long."""
    waits = _Waits()
    try:
        waits.what = "the end of the application's dependencies"
        await _stop_dependencies(of_app)
        for hooks in reversed(all_hooks):
            if hooks.app is not None:
                hooks.app.set_lifespan_state(None)
            for hook in reversed(hooks.shutdown):
                waits.what = f"the shutdown hook {checks.describe(hook)}"
                try:
                    await finish(hook())
                except BaseException as error:
                    log_ended(waits.what, error)
            if hooks.entered is not None:
                waits.what = f"the end of the lifespan {checks.describe(hooks.lifespan)}"
            await hooks.leave()
    finally:
        waits.timer.cancel()


class _Waits:
    """What a stop waits for; told by a thread, for a hook that is a ``def`` may hold the event loop."""

    def __init__(self) -> None:
        self.what = ""
        self.timer = Timer(NOTICE_S, self._tell)
        self.timer.daemon = True
        with suppress(RuntimeError):  # there is no thread to be had
            self.timer.start()

    def _tell(self) -> None:
        from citius.observability.logging import warning

        warning(f"the server stops and has waited {NOTICE_S:g} s; now for {self.what}")


NOTICE_S = 5.0
"""Seconds that a stop may take until the log says what it waits for."""


async def _stop_dependencies(of_app: AppDependencies) -> None:
    try:
        await of_app.stop()
    except BaseException as error:
        log_ended("the end of a dependency of the application", error)
