"""The reactor that serves on a thread's event loop, for clients that want to be carried by it.

A client that begins before the reactor (in a start-up hook), or outlives it (in a shutdown hook), is told
when it comes and when it goes. One that the hooks have opened for the worker, and that has to be on the
loop of whatever handler uses it, is opened on the loops of the worker's other reactors too (``share``).
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, Protocol

from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Reactor


class _Thread(threading.local):
    def __init__(self) -> None:
        self.reactor: Reactor | None = None
        self.followers: list[Callable[[Reactor | None], None]] = []


_thread = _Thread()


def make(gateway: Any, **options: Any) -> Reactor:
    """A reactor; what it refuses is an option's value.

    Raises:
        ConfigError: A limit is too large, or a path pattern is none.
    """
    from citius._core import Reactor

    try:
        return Reactor(gateway, **options)
    except ValueError as error:
        raise ConfigError(str(error)) from None


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


class OnEachLoop(Protocol):
    """A client, open on the worker's own loop, that the loops of other reactors need as well."""

    async def open_on_loop(self) -> None:
        """Open it on the running loop, whose thread calls it from then on."""
        ...

    async def close_on_loop(self) -> None:
        """Undo ``open_on_loop``."""
        ...


def share(client: OnEachLoop) -> None:
    """Have ``client`` opened on the loops of the reactors that are started from now on."""
    _shared.append(client)


def unshare(client: OnEachLoop) -> None:
    """Undo ``share``."""
    if client in _shared:
        _shared.remove(client)


def shared() -> list[OnEachLoop]:
    """What is opened on each loop."""
    return _shared[:]


_shared: list[OnEachLoop] = []


def _leave_to_parent() -> None:
    """In a forked child the reactor is a copy that carries nothing."""
    _thread.reactor = None
    _thread.followers.clear()
    _shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
