"""A transaction for each request, as a dependency of handlers.

``FromPool(pool)`` in, a ``Depends`` out, whose generator is a transaction of the pool. The functions are kept
by pool and way to begin, so that all who ask for the same one in a request share its transaction. Nothing of
``citius.pg`` is imported: any pool whose ``transaction`` is an asynchronous context manager will do. Tests:
tests/pg/test_dependencies.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator  # noqa: TC003 - the signature is read
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from citius.web.sources import Depends

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    Begins = Callable[[], AsyncGenerator[object]]


class Pool(Protocol):
    """What begins transactions, as ``citius.pg.Pool`` does."""

    @property
    def transaction(self) -> Callable[..., AbstractAsyncContextManager[object]]:
        """Makes a block that commits at its end and rolls back after an exception."""
        ...


def FromPool(pool: Pool, **options: object) -> Depends:  # noqa: N802 - it stands in annotations
    """Give a handler a transaction for its request.

    ``tx: Annotated[pg.Transaction, FromPool(pool)]`` is committed when the handler has returned, before the
    response is sent: a commit that fails is a 500. It is rolled back if the handler raises, even an
    ``HTTPError``, or its client leaves.

    Args:
        pool: Open while the application serves.
        options: Those of its ``transaction``: ``isolation``, ``readonly``, ``deferrable``.
    """
    known = _known.setdefault(pool, {})
    key = frozenset(options.items())
    if key not in known:

        async def transaction() -> AsyncGenerator[object]:
            async with pool.transaction(**options) as begun:
                yield begun

        known[key] = transaction
    return Depends(known[key])


_known: WeakKeyDictionary[Pool, dict[object, Begins]] = WeakKeyDictionary()
