"""The loop of a service that begins without one, and what asks for it. The host is hosts/late.py.

Tests: ``tests/hosts/test_late_loop.py``.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

from citius.web.application.app import App

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from citius._core import Reactor
    from citius.serving.interfaces import Application
    from citius.serving.service import Service


def reason_for_loop(app: Application, service: Service) -> str:
    """Why a worker has an event loop from the start; empty if one that is asked for can be made then."""
    config = service.config
    if config.loop != "auto":
        return f"--loop {config.loop}"
    if service.is_hosted:
        return "the loop owns the sockets"
    if config.reactors > 1:
        return "each thread has a loop"
    if config.rpc:
        return "procedures are served"
    if config.sandbox:
        return "it is confined before it serves, and a loop takes files and sockets"
    if config.otel:
        return "spans are exported"
    if service.context.metrics_slot is not None:
        return "its delay is measured"
    if not isinstance(app, App):
        return app.needs_loop
    return app.uses_loop or ("asyncio is imported" if "asyncio" in sys.modules else "")


class LateLoop:
    """The loop of a service, from when it is asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._thread, self._process = get_ident(), os.getpid()
        self._is_making = False
        self._hooks: Any = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.reactor: Reactor | None = None
        self.is_wanted = False
        """It is there, or is to be made when the turn is over."""

    def make(self) -> None:
        """Make the loop, and have it be the running one of this thread; not in a forked child."""
        if self.loop is not None or self._is_making or os.getpid() != self._process:
            return
        self._is_making = True  # this imports asyncio
        try:
            import asyncio

            from citius.serving.hosts.asyncio import new_loop

            loop = new_loop("auto")
            asyncio.set_event_loop(loop)
            asyncio._set_running_loop(loop)  # pyright: ignore[reportPrivateUsage]
            # An asynchronous generator that begins before the loop runs ends with the loop too.
            self._hooks = sys.get_asyncgen_hooks()
            sys.set_asyncgen_hooks(
                firstiter=getattr(loop, "_asyncgen_firstiter_hook", None),
                finalizer=getattr(loop, "_asyncgen_finalizer_hook", None),
            )
            self.loop, self.is_wanted = loop, True
            self._service.loop_made(loop)
        finally:
            self._is_making = False

    def stand_down(self) -> None:
        """Undo what made it the running loop before it runs."""
        import asyncio

        asyncio._set_running_loop(None)  # pyright: ignore[reportPrivateUsage]
        sys.set_asyncgen_hooks(*self._hooks)

    def asyncio_is_imported(self) -> None:
        """Make the loop now; for another thread than the reactor's, after the turn.

        That one does not wait: it holds the lock of the import, which this thread needs. So a handler of the
        turn that goes on meanwhile still finds no running loop.
        """
        if get_ident() == self._thread:
            self.make()
        elif self.reactor is not None and os.getpid() == self._process:
            self.is_wanted = True
            self.reactor.leave()


@contextmanager
def hearing_of_asyncio(on_import: Callable[[], object]) -> Generator[None]:
    """Call ``on_import`` when asyncio has been imported meanwhile."""
    finder = _Finder(on_import)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)


class _Finder:
    """Finds asyncio as the others do, and says when it has been imported."""

    def __init__(self, on_import: Callable[[], object]) -> None:
        self._on_import = on_import

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "asyncio":
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(name, path, target)) is not None:
                loader: Any = _Loader(spec.loader, self._on_import)
                spec.loader = loader
                return spec
        return None


class _Loader:
    def __init__(self, loader: Any, on_import: Callable[[], object]) -> None:
        self._loader, self._on_import = loader, on_import

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None, "it is imported by it"
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._on_import()
