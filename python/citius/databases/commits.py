"""What is done when a transaction has been committed: ``tx.on_commit(function, …)``.

Functions are called in the order in which they were given, once the transaction has ended and its connection
is back in the pool. Those of a savepoint wait for the transaction around it, and are dropped when it is
rolled back. Tests: ``tests/sqlite/test_on_commit.py``, ``tests/pg/test_on_commit.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from citius.observability.logging import log_exception

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Hook = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Commits:
    """The part of a transaction that has functions called after its commit."""

    _hooks: list[Hook] | None = None
    runs_inner_hooks = False
    """Whether functions of savepoints are called when these end: the transaction itself is a test's."""

    def on_commit(
        self, function: Callable[_P, _R], /, *args: _P.args, **options: _P.kwargs
    ) -> Callable[_P, _R]:
        """Call ``function`` once the transaction is committed; not if it is rolled back.

        What the function raises is logged: the transaction is committed. An ``async def`` is awaited, before
        the block ends. ``@tx.on_commit`` decorates one without arguments.

        Raises:
            RuntimeError: The transaction is not open.
        """
        self._check_open()
        if self._hooks is None:
            self._hooks = []
        self._hooks.append((function, args, options))
        return function

    def _check_open(self) -> None:
        raise NotImplementedError

    def take_hooks(self, outer: Commits | None) -> list[Hook]:
        """What is to be called now that it is committed; a savepoint hands it to what is around it."""
        hooks, self._hooks = self._hooks, None
        if not hooks:
            return []
        if outer is None or outer.runs_inner_hooks:
            return hooks
        outer._hooks = [*(outer._hooks or ()), *hooks]
        return []

    async def _carry_out(self, end: Coroutine[Any, Any, None], *, is_commit: bool) -> None:
        """Await the end of a block. A commit with functions after it goes on if the caller is cancelled."""
        await (_to_end(end) if is_commit and self._hooks else end)


async def call_hooks(hooks: list[Hook]) -> None:
    """Call functions, all of them even if the task is cancelled meanwhile: the commit has happened."""
    await _to_end(_call_each(hooks))


async def _to_end(work: Coroutine[Any, Any, None]) -> None:
    """Await a coroutine, which goes on if the caller is cancelled."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
    await asyncio.shield(task)


async def _call_each(hooks: list[Hook]) -> None:
    for function, args, options in hooks:
        try:
            value = function(*args, **options)
            if hasattr(value, "__await__"):
                await value
        except (Exception, asyncio.CancelledError, SystemExit, KeyboardInterrupt) as error:
            # One that awaits a cancelled task keeps no other from being called, nor does `sys.exit`.
            _log(function, error)


def call_sync_hooks(hooks: list[Hook]) -> None:
    """Call the hooks of a committed transaction in code without a loop; a coroutine is refused."""
    for function, args, options in hooks:
        try:
            value: Any = function(*args, **options)
            if hasattr(value, "__await__"):
                close = getattr(value, "close", None)
                if close is not None:
                    close()
                raise TypeError("on_commit of pool.sync takes a `def`, and this is `async def`")
        except Exception as error:
            _log(function, error)


def _log(function: Callable[..., Any], error: BaseException) -> None:
    name = getattr(function, "__qualname__", repr(function))
    log_exception(f"the on-commit function {name} failed; the transaction is committed", error)


_running: set[asyncio.Task[None]] = set()
"""Tasks whose callers may have been cancelled."""
