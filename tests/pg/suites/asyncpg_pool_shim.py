"""The pool of ``citius.pg.asyncpg`` in the place of asyncpg's, for its own tests: a plugin of pytest."""

# pyright: basic

from __future__ import annotations

import functools
from typing import Any

import asyncpg
from asyncpg import _testbase
from asyncpg import pool as theirs
from citius.pg.asyncpg import Pool, create_pool
from not_applicable import expect_failures


class _Holder:
    """What their tests look into: a place of the pool, with its connection."""

    def __init__(self, connection: Any) -> None:
        self._con = connection

    def is_connected(self) -> bool:
        return self._con is not None and not self._con.is_closed()


class _Queue:
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def qsize(self) -> int:
        return self._pool._maxsize - len(self._pool._used)


class _Shown(Pool):
    """The pool, with some of what theirs is made of."""

    @property
    def _holders(self) -> Any:
        places = [_Holder(connection) for connection in self._all]
        return places + [_Holder(None) for _ in range(self._maxsize - len(places))]

    @_holders.setter
    def _holders(self, value: Any) -> None:
        pass

    @property
    def _queue(self) -> Any:
        return _Queue(self)

    @_queue.setter
    def _queue(self, value: Any) -> None:
        pass


NOT_APPLICABLE = {
    "looks into asyncpg's pool: its holders, and proxies around connections": (
        "TestPool::test_pool_04",
        "TestPool::test_pool_07",
        "TestPool::test_pool_08",
        "TestPool::test_pool_11",
        "TestPool::test_pool_release_after_protocol_abort",
    )
}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    expect_failures(items, NOT_APPLICABLE)


def pytest_configure(config: Any) -> None:
    # There is no proxy around a connection.
    asyncpg.Connection._con = property(lambda self: self)
    asyncpg.create_pool = create_pool
    theirs.create_pool = create_pool
    # asyncpg's tests see a connection after each release as new: so it is made to be.
    made = functools.partial(_Shown, always_reset=True)
    original = _testbase.create_pool

    def create(dsn: Any = None, *, pool_class: Any = theirs.Pool, **options: Any) -> Any:
        return original(
            dsn, pool_class=made if pool_class is theirs.Pool else pool_class, **options
        )

    _testbase.create_pool = create
