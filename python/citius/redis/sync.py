"""Redis for code without ``await``: threads, greenlets, goroutines, WSGI, scripts.

``redis.sync`` has the methods of a client, and each returns its result. The connections are those of the
client; one that is not open is opened by the first call. Types are in ``sync.pyi``, which
``scripts/redis_sync_stub.py`` makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from citius.redis.commands import Commands
from citius.redis.commands.base import Data
from citius.redis.serial import refuse_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from citius.redis.client import Redis
    from citius.redis.commands.base import Key, Word
    from citius.redis.commands.scripting import Script
    from citius.redis.sessions import Acquiring, Session
    from citius.redis.subscriptions import Subscription
    from citius.redis.transactions import Transaction


class SyncCommands(Commands[Data]):
    """Commands whose methods return their results."""

    def _make(self) -> Commands[Data]:
        """What makes the calls."""
        raise NotImplementedError

    def _call(
        self,
        *words: Word,
        as_: Any = None,
        then: Callable[[Any], Any] | None = None,
        blocks_ms: int | None = None,
        node: int | None = None,
    ) -> Any:
        make = self._make()
        return make._call(*words, as_=as_, then=then, blocks_ms=blocks_ms, node=node).wait()

    def _nodes(self) -> list[int | None]:
        return self._make()._nodes()

    def _scan(
        self,
        portion: Callable[[bytes, int | None], Any],
        elements: Callable[[Any], list[Any]],
        nodes: Callable[[], list[int | None]] = lambda: [None],
    ) -> Any:
        def found() -> Iterator[Any]:
            for node in nodes():
                cursor: Any = None
                while cursor not in (b"0", "0"):
                    cursor, part = portion(cursor or b"0", node)
                    yield from elements(part)

        return found()

    def call_script(
        self, script: Script[Data], arguments: tuple[Any, ...], is_read_only: bool, as_: Any
    ) -> Any:
        """Execute a script; what ``Script`` calls."""
        return self._make().call_script(script, arguments, is_read_only, as_).wait()


class SyncRedis(SyncCommands[Data]):
    """What ``redis.sync`` is."""

    def __init__(self, redis: Redis[Data]) -> None:
        self._redis = redis

    def _make(self) -> Redis[Data]:
        self._redis.open_here()
        return self._redis

    def open(self) -> None:
        """Connect, which the first call does otherwise."""
        self._redis.open_here()

    def close(self) -> None:
        """Close all connections; the next call opens the client again."""
        refuse_loop("redis.sync.close()", "await redis.close()")
        self._redis.close_here()

    def __enter__(self) -> SyncRedis[Data]:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def transaction(self) -> Transaction[Data]:
        """``with redis.sync.transaction() as tx: total = tx.incr("n")``; behind it ``total.wait()``."""
        return self._make().transaction()

    def watch(self, *keys: Key) -> SyncAcquiring[Data]:
        """``with redis.sync.watch("stock") as watched``, then ``with watched.transaction() as tx``."""
        return SyncAcquiring(self._make().watch(*keys))

    def connection(self, key: Key | None = None) -> SyncAcquiring[Data]:
        """A connection of its own, which is closed at the end of the block."""
        return SyncAcquiring(self._make().connection(key))

    def subscribe(
        self, *channels: str, queue_max: int = 1000, on_gap: Callable[[], object] | None = None
    ) -> Subscription[Data]:
        """``with redis.sync.subscribe("news") as messages: for message in messages``."""
        return self._make().subscribe(*channels, queue_max=queue_max, on_gap=on_gap)

    def psubscribe(
        self, *patterns: str, queue_max: int = 1000, on_gap: Callable[[], object] | None = None
    ) -> Subscription[Data]:
        """Subscribe to the channels whose names match patterns."""
        return self._make().psubscribe(*patterns, queue_max=queue_max, on_gap=on_gap)

    def ssubscribe(
        self, *channels: str, queue_max: int = 1000, on_gap: Callable[[], object] | None = None
    ) -> Subscription[Data]:
        """Subscribe to sharded channels."""
        return self._make().ssubscribe(*channels, queue_max=queue_max, on_gap=on_gap)


class SyncSession(SyncCommands[Data]):
    """Commands on a connection of their own."""

    def __init__(self, session: Session[Data]) -> None:
        self._session = session

    def _make(self) -> Session[Data]:
        return self._session

    def transaction(self) -> Transaction[Data]:
        """Commands between ``MULTI`` and ``EXEC``."""
        return self._session.transaction()


class SyncAcquiring(Generic[Data]):
    """A block with a connection of its own."""

    def __init__(self, block: Acquiring[Data]) -> None:
        self._block = block

    def __enter__(self) -> SyncSession[Data]:
        return SyncSession(self._block.__enter__())

    def __exit__(self, *error: Any) -> None:
        self._block.__exit__(*error)
