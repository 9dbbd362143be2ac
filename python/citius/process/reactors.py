"""The reactor that serves on a thread's event loop, for clients that want to be carried by it.

A client that begins before the reactor (in a start-up hook), or outlives it (in a shutdown hook), is told
when it comes and when it goes.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Reactor


class _Thread(threading.local):
    def __init__(self) -> None:
        self.reactor: Reactor | None = None
        self.followers: list[Callable[[Reactor | None], None]] = []


_thread = _Thread()


def enter(reactor: Reactor | None) -> None:
    """Say which reactor serves on this thread's loop from now on; ``None``: none does any more."""
    _thread.reactor = reactor
    for follower in list(_thread.followers):
        follower(reactor)


def current() -> Reactor | None:
    """The reactor that serves on this thread's loop."""
    return _thread.reactor


def follow(follower: Callable[[Reactor | None], None]) -> None:
    """Have ``follower`` called when that changes, on this thread."""
    _thread.followers.append(follower)


def unfollow(follower: Callable[[Reactor | None], None]) -> None:
    """Undo ``follow``."""
    if follower in _thread.followers:
        _thread.followers.remove(follower)
