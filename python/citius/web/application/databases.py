"""Databases as dependencies of handlers: a transaction for each request, a client of Redis.

``FromPool(pool)`` in, a ``Depends`` out, whose generator is a transaction of the pool. The functions are kept
by pool and way to begin, so that all who ask for the same one in a request share its transaction. Nothing of
``citius.pg`` is imported: any pool whose ``transaction`` is an asynchronous context manager will do.
``FromRedis(redis)`` is a ``Depends`` whose function returns the client, so that tests can put another in its
place. Tests: tests/pg/test_dependencies.py, tests/redis/test_dependencies.py.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator  # noqa: TC003 - the signature is read
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from citius import option_values
from citius.errors import ConfigError
from citius.unknown_options import caller, refuse_unknown
from citius.web.declarations.parameters.sources import Depends

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


def FromPool(pool: Pool, **options: object) -> Any:  # noqa: N802 - it stands in annotations
    """Give a handler a transaction for its request.

    ``tx: Annotated[pg.Transaction, FromPool(pool)]`` is committed when the handler has returned, before the
    response is sent: a commit that fails is a 500. It is rolled back if the handler raises, even an
    ``HTTPError``, or its client leaves.

    Args:
        pool: Open while the application serves.
        options: Those of its ``transaction``: ``isolation``, ``readonly``, ``deferrable``.

    Raises:
        ConfigError: The pool's transactions have no such option.
    """
    _check_options(pool, options)
    known = _known.setdefault(pool, {})
    key = frozenset(options.items())
    if key not in known:

        async def transaction() -> AsyncGenerator[object]:
            async with pool.transaction(**options) as begun:
                yield begun

        known[key] = transaction
    return Depends(known[key])


def _check_options(pool: Pool, options: dict[str, object]) -> None:
    """Refuse what no transaction of the pool can begin with, before a request finds out.

    Raises:
        ConfigError: An option, its value, or what is no pool.
    """
    if not callable(getattr(pool, "transaction", None)):
        raise ConfigError(f"FromPool ({caller()}) takes a pool, got {pool!r}")
    try:
        parameters = list(inspect.signature(pool.transaction).parameters.values())
    except (TypeError, ValueError):
        return  # some functions in C do not tell
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        known = {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
        refuse_unknown("FromPool", options, known)
    for one in parameters:
        kinds = option_values.kinds_of(one.name, one.annotation) if one.name in options else []
        if mistake := option_values.mistake(one.name, options.get(one.name), kinds):
            raise ConfigError(f"FromPool ({caller()}): {mistake}")
    isolation = options.get("isolation")
    if isolation is not None and isolation not in _ISOLATIONS:
        raise ConfigError(
            f"FromPool ({caller()}): isolation is one of {', '.join(_ISOLATIONS)}; got {isolation!r}"
        )


_ISOLATIONS: Final = ("read uncommitted", "read committed", "repeatable read", "serializable")
"""Those of SQL."""

_known: WeakKeyDictionary[Pool, dict[object, Begins]] = WeakKeyDictionary()


def FromRedis(redis: object) -> Any:  # noqa: N802 - it stands in annotations
    """Give a handler a client of Redis.

    ``redis: Annotated[Redis[bytes], FromRedis(redis)]`` is the client itself, or in tests what
    ``app.dependency_overrides[FromRedis(redis).call]`` returns.

    Args:
        redis: Open while the application serves.

    Raises:
        ConfigError: It is no client.
    """
    if not callable(getattr(redis, "execute", None)):
        raise ConfigError(f"FromRedis ({caller()}) takes a client of Redis, got {redis!r}")
    if redis not in _clients:

        def client() -> object:
            return redis

        _clients[redis] = client
    return Depends(_clients[redis])


_clients: WeakKeyDictionary[object, Callable[[], object]] = WeakKeyDictionary()
