"""Functions of the application that clients call while they read what a server has sent.

One that raises is logged, and the client goes on: what it was doing belongs to others.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Callable


def refuse_coroutine(callback: Callable[..., object] | None, name: str) -> None:
    """Refuse an ``async def``, which a call does not execute.

    Raises:
        ConfigError: It is one.
    """
    if inspect.iscoroutinefunction(callback):
        raise ConfigError(
            f"{name} is called without await: expected a `def`, got the `async def` "
            f"{callback.__qualname__}; have a `def` start a task, or set an asyncio.Event"
        )


def call_back(callback: Callable[..., object], *arguments: object, name: str) -> None:
    """Call it; what it raises is logged."""
    try:
        callback(*arguments)
    except (Exception, asyncio.CancelledError) as error:
        logging.log_exception(f"{name} has failed", error)
