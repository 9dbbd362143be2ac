"""The task type of requests. Imported only where there is an event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from citius._core import count_touch


class RequestTask(asyncio.Task[Any]):
    """A task that remembers whether somebody did something to it that lasts.

    A handler that never suspends leaves its task to the next request (``citius-py/src/task.rs``),
    unless it did one of these or set an attribute.
    """

    touched = False

    def cancel(self, msg: Any | None = None) -> bool:
        self.touched = True
        return super().cancel(msg)

    def add_done_callback(self, fn: Any, /, *, context: Any = None) -> None:
        self.touched = True
        super().add_done_callback(fn, context=context)

    def set_name(self, value: object, /) -> None:
        self.touched = True
        super().set_name(value)

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__("touched", True)
        count_touch()
        super().__setattr__(name, value)
