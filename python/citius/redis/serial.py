"""Where code may wait: on an event loop it awaits, elsewhere it waits for itself."""

from __future__ import annotations

import asyncio

from citius.errors import ChannelMisuse
from citius.serial import is_serial


def has_loop() -> bool:
    """Whether an event loop runs on this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def refuse_loop(wrong: str, right: str) -> None:
    """Refuse to stop an event loop.

    Raises:
        ChannelMisuse: One runs on this thread, and this is no serial handler.
    """
    if has_loop() and not is_serial():
        raise ChannelMisuse(
            f"`{wrong}` would stop the event loop of this thread: use `{right}` (in `async def`), or add "
            "serial=True to the handler (a `def`)"
        )
