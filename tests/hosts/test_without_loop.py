"""The end of a worker without an event loop."""

from __future__ import annotations

import _thread
import threading
from types import SimpleNamespace
from typing import Any

from citius.serving import without_loop
from citius.serving.without_loop import Standalone


class Service(SimpleNamespace):
    async def stop(self) -> None:
        pass


def test_it_does_not_end_before_its_thread_has_begun(monkeypatch) -> None:
    """CPython 3.11 crashed: the thread of the drain began while the interpreter was going."""
    may_begin, has_begun = threading.Event(), threading.Event()

    def start_late(work: Any, arguments: tuple[()]) -> None:
        def begin() -> None:
            may_begin.wait(30)
            has_begun.set()
            work(*arguments)

        _thread.start_new_thread(begin, ())

    monkeypatch.setattr(without_loop, "start_new_thread", start_late)
    reactor: Any = SimpleNamespace(close=lambda: None, run=lambda *_: None)
    service: Any = Service(
        config=SimpleNamespace(drain_s=60.0), drain=lambda done: None,
        reactor=reactor, heartbeat_interval_s=None,
    )  # fmt: skip
    host = Standalone(service)
    host.turn(reactor)
    host._stop()  # pyright: ignore[reportPrivateUsage]
    threading.Timer(0.05, may_begin.set).start()
    host.finish(reactor)
    assert has_begun.is_set()
