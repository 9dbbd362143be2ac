"""Messages of channels: one connection for all subscriptions of a client, made again when it is lost.

Subscribers of the same channel share the server's subscription. A subscriber that is too slow loses its
oldest messages, and delays no other. Sharded channels have a connection to each node that has some of them.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Self

from citius.databases.callbacks import call_back, refuse_coroutine
from citius.redis.commands.base import Data
from citius.redis.errors import ClientClosed, ServerError, TimedOut
from citius.redis.homes import Promise
from citius.redis.serial import refuse_loop
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import TracebackType

    from citius.redis.connections import Connections
    from citius.redis.homes import Home
    from citius.redis.links import Link

Manner = Literal["channel", "pattern", "shard"]
Channel = tuple[Manner, str]
_PREFIX: dict[Manner, str] = {"channel": "", "pattern": "P", "shard": "S"}
_CONFIRMED: dict[bytes, Manner] = {
    b"subscribe": "channel", b"psubscribe": "pattern", b"ssubscribe": "shard",
}  # fmt: skip
_MESSAGES: dict[bytes, Manner] = {
    b"message": "channel",
    b"pmessage": "pattern",
    b"smessage": "shard",
}


_ENDED: dict[bytes, Manner] = {
    b"unsubscribe": "channel",
    b"punsubscribe": "pattern",
    b"sunsubscribe": "shard",
}
# The node of a sharded channel is another one, or not known until a replica has taken its place.
_ELSEWHERE = ("MOVED", "CLUSTERDOWN")


@dataclass(frozen=True, slots=True)
class Message(Generic[Data]):
    """What a publisher has sent."""

    channel: str
    data: Data
    pattern: str | None = None
    """The pattern that the channel matches, for a subscriber of patterns."""


@known_options
class Subscription(Generic[Data]):
    """``async with redis.subscribe("news") as messages: async for message in messages``.

    ``with`` and ``for`` do the same in a thread or a greenlet. Of several loops over one subscription each
    message goes to one.
    """

    def __init__(
        self,
        subscriber: Subscriber,
        manner: Manner,
        channels: tuple[str, ...],
        queue_max: int,
        on_gap: Callable[[], object] | None,
    ) -> None:
        if not channels:
            raise ValueError("expected names of channels")
        if queue_max < 1:
            raise ValueError(f"queue_max must be at least 1, got {queue_max}")
        refuse_coroutine(on_gap, "on_gap")
        self._subscriber, self.channels = subscriber, channels
        self.manner: Manner = manner
        self._on_gap = on_gap
        self._queue: deque[Message[Data]] = deque(maxlen=queue_max)
        self._news: Promise[None] | None = None
        self._end: BaseException | None = None
        self.is_open = False
        self.dropped = 0
        """Messages that were dropped because the consumer was too slow."""

    async def __aenter__(self) -> Self:
        self._enter()
        try:
            await self._subscriber.add(self)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def __enter__(self) -> Self:
        refuse_loop("with", "async with")
        self._enter()
        try:
            self._subscriber.add(self).wait()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    async def __aiter__(self) -> AsyncIterator[Message[Data]]:
        while True:
            while self._queue:
                yield self._queue.popleft()
            await self._next_news()

    def __iter__(self) -> Iterator[Message[Data]]:
        while True:
            while self._queue:
                yield self._queue.popleft()
            self._next_news().wait()

    def _enter(self) -> None:
        if self.is_open:
            raise RuntimeError("a subscription is entered once")
        self.is_open = True

    def _leave(self) -> None:
        self.is_open = False
        self._subscriber.remove(self)
        if self._news is not None:
            self._news.resolve(error=ClientClosed("the subscription is closed"))

    def _next_news(self) -> Promise[None]:
        if not self.is_open:
            raise self._end or ClientClosed(
                "the subscription is not open: use `async with redis.subscribe(…)`"
            )
        # Others may wait for the same.
        news = self._news
        if news is None or news.is_done:
            made: Promise[None] = Promise(self._subscriber.home)
            self._news = news = made
        if self._queue:
            # It has come in another thread meanwhile.
            news.resolve()
        return news

    # --- called by the subscriber ---

    def take(self, message: Message[Data]) -> None:
        """A message has come."""
        is_full = len(self._queue) == self._queue.maxlen
        self._queue.append(message)
        if is_full:
            # The oldest one is gone.
            self.dropped += 1
            self.miss()
        if self._news is not None:
            self._news.resolve()

    def miss(self) -> None:
        """Messages may have been missed."""
        if self._on_gap is not None:
            call_back(self._on_gap, name="Redis: on_gap")

    def close(self, error: BaseException) -> None:
        """No more messages come, because of this error."""
        self.is_open, self._end = False, error
        if self._news is not None:
            self._news.resolve(error=error)


class Subscriber:
    """All subscriptions of a client. But for ``add`` and ``remove`` on the thread of its home only."""

    def __init__(
        self, home: Home, connections: Connections, *, is_text: bool, timeout_s: float | None
    ) -> None:
        self.home, self.connections, self.is_text = home, connections, is_text
        self._timeout_s = timeout_s
        # By the number of the server; -1: any server of a cluster has what is not sharded.
        self._hubs: dict[int, _Hub] = {}
        self._moving: list[tuple[list[Subscription[Any]], list[_All]]] = []
        self._is_closed = False
        self.on_moved: Callable[[], object] = lambda: None
        """Sharded channels belong to another node than they did."""

    def add(self, subscription: Subscription[Any]) -> Promise[None]:
        """Subscribe; done when the server has confirmed all channels."""
        confirmed: Promise[None] = Promise(self.home)
        self._run(lambda: self._add(subscription, confirmed))
        return confirmed

    def remove(self, subscription: Subscription[Any]) -> None:
        """Unsubscribe from channels that no other subscription has."""
        self._run(lambda: self._remove(subscription))

    def close(self) -> None:
        """Close all connections; the subscriptions end."""
        self._is_closed = True
        for subscribed, waits in self._moving:
            _close(subscribed, waits)
        for hub in self._hubs.values():
            hub.close()

    def _run(self, callback: Callable[[], object]) -> None:
        if self.home.is_here():
            callback()
        else:
            self.home.run(callback)

    def _add(self, subscription: Subscription[Any], confirmed: Promise[None]) -> None:
        if self._is_closed:
            return confirmed.resolve(error=ClientClosed("the client is closed"))
        if (timeout_s := self._timeout_s) is not None:
            error = TimedOut(f"no confirmation of the subscription within {timeout_s:g} s")
            self.home.later(timeout_s, lambda: confirmed.resolve(error=error))
        names = set(subscription.channels)
        waits = _All(len(names), confirmed)
        for name in names:
            self.hub_of(subscription.manner, name).add(
                (subscription.manner, name), subscription, waits
            )

    def _remove(self, subscription: Subscription[Any]) -> None:
        for hub in self._hubs.values():
            hub.remove(subscription)

    def hub_of(self, manner: Manner, name: str, named: int | None = None) -> _Hub:
        """The connection for a channel; ``named`` is the server that has it, as another one has said."""
        node = -1
        if manner == "shard":
            node = self.connections.core.node_of(name) if named is None else named
        if node not in self._hubs:
            self._hubs[node] = _Hub(self, node)
        return self._hubs[node]

    def move(
        self,
        channel: Channel,
        subscribed: list[Subscription[Any]],
        waits: list[_All],
        named: int | None,
    ) -> None:
        """Subscribe to a sharded channel where it is now; what was said meanwhile is unknown.

        Those that wait for a confirmation wait for that of its new node.
        """
        self.on_moved()
        moving = subscribed, waits
        self._moving.append(moving)

        def again() -> None:
            if not self._is_closed:
                self._moving.remove(moving)
                if opened := [one for one in subscribed if one.is_open]:
                    self.hub_of(*channel, named).add_again(channel, opened, waits)

        self.home.later(_MOVED_S, again)


# When a channel that belongs to another node is subscribed to there: the slots have been read by then.
_MOVED_S = 0.1


class _All:
    """Resolves a promise when several channels are confirmed, or one of them is refused."""

    def __init__(self, count: int, promise: Promise[None]) -> None:
        self._left, self._promise = count, promise

    def done(self, error: BaseException | None = None) -> None:
        self._left -= 1
        if error is not None or self._left == 0:
            self._promise.resolve(error=error)


def _close(subscribed: list[Subscription[Any]], waits: list[_All]) -> None:
    error = ClientClosed("the client is closed")
    for subscription in list(subscribed):
        subscription.close(error)
    for one in list(waits):
        one.done(error)


class _Hub:
    """The subscriptions of one connection."""

    def __init__(self, owner: Subscriber, node: int) -> None:
        self._owner, self._node = owner, node
        self._channels: dict[Channel, list[Subscription[Any]]] = {}
        self._waits: dict[Channel, list[_All]] = {}
        # Commands under way in their order: what comes for one is about the first. `True`: it subscribes.
        self._asked: deque[tuple[bool, Channel]] = deque()
        # How many of them subscribe to a channel: the confirmation of the last one counts.
        self._asking: Counter[Channel] = Counter()
        self._confirmed: set[Channel] = set()
        # Their messages are missed until they are confirmed again.
        self._missed: set[Channel] = set()
        self._link: Link | None = None
        self._is_keeping = self._is_closed = False

    def add_again(
        self, channel: Channel, subscribed: list[Subscription[Any]], waits: list[_All]
    ) -> None:
        """Add what another server had; it is told of the gap when this one has it."""
        if channel in self._confirmed:
            # By another subscription meanwhile.
            for subscription in subscribed:
                self._channels[channel].append(subscription)
                subscription.miss()
            for one in waits:
                one.done()
            return
        self._missed.add(channel)
        self._waits.setdefault(channel, []).extend(waits)
        for subscription in subscribed:
            self.add(channel, subscription, None)

    def add(self, channel: Channel, subscription: Subscription[Any], waits: _All | None) -> None:
        """Add a subscription to a channel."""
        self._channels.setdefault(channel, []).append(subscription)
        if channel in self._confirmed:
            return waits.done() if waits is not None else None
        if waits is not None:
            self._waits.setdefault(channel, []).append(waits)
        if self._link is not None:
            self._ask(self._link, channel)
        elif not self._is_keeping:
            self._is_keeping = True
            self._owner.connections.spawn(self, self._keep())
        return None

    def remove(self, subscription: Subscription[Any]) -> None:
        """Remove a subscription from its channels."""
        for name in subscription.channels:
            channel: Channel = (subscription.manner, name)
            subscribed = self._channels.get(channel, [])
            if subscription in subscribed:
                subscribed.remove(subscription)
                if not subscribed:
                    self._forget(channel)
                    if self._link is not None:
                        self._asked.append((False, channel))
                        self._link.core.send(f"{_PREFIX[channel[0]]}UNSUBSCRIBE", name)

    def close(self) -> None:
        """Close the connection; the subscriptions end."""
        self._is_closed = True
        for channel, subscribed in list(self._channels.items()):
            _close(subscribed, self._waits.get(channel, []))
        if self._link is not None:
            self._link.close()

    def _forget(self, channel: Channel) -> list[Subscription[Any]]:
        self._confirmed.discard(channel)
        self._missed.discard(channel)
        self._waits.pop(channel, None)
        return self._channels.pop(channel, [])

    def _move(self, channel: Channel, named: int | None = None) -> None:
        waits = self._waits.pop(channel, [])
        self._owner.move(channel, self._forget(channel), waits, named)

    def _named(self, error: ServerError) -> int | None:
        """The server that ``MOVED 3300 10.0.0.1:6379`` names, if it does."""
        address = error.message.rpartition(" ")[2]
        if error.code != "MOVED" or address.rpartition(":")[0] in ("", "?"):
            return None
        return self._owner.connections.core.node(address)

    def _ask(self, link: Link, channel: Channel) -> None:
        self._asked.append((True, channel))
        self._asking[channel] += 1
        # One command for each: an error does not say which channel it is about.
        link.core.send(f"{_PREFIX[channel[0]]}SUBSCRIBE", channel[1])

    async def _keep(self) -> None:
        connections = self._owner.connections
        try:
            while self._channels and not self._is_closed:
                link = await connections.try_until_open(
                    self._server, "subscriber", lambda: bool(self._channels),
                    is_anywhere=self._node < 0, on_push=self._take, on_refused=self._refuse,
                )  # fmt: skip
                if link is None:
                    return
                self._link = link
                for channel in self._channels:
                    self._ask(link, channel)
                await connections.until_lost(link)
                self._link = None
                self._asked.clear()
                self._asking.clear()
                self._missed |= self._confirmed
                self._confirmed.clear()
        finally:
            self._is_keeping = False
            self._link = None

    def _server(self) -> int:
        """The server to connect to. Sharded channels that another one has by now go there."""
        connections = self._owner.connections
        core = connections.core
        if self._node < 0:
            return connections.any_node()
        for channel in list(self._channels):
            if core.node_of(channel[1]) != self._node:
                self._move(channel)
        return self._node

    # --- what comes ---

    def _take(self, push: list[Any]) -> None:
        kind = push[0]
        if (manner := _MESSAGES.get(kind)) is not None:
            self._deliver(manner, push)
        elif (manner := _CONFIRMED.get(kind)) is not None:
            self._confirm((manner, push[1].decode(errors="replace")))
        elif (manner := _ENDED.get(kind)) is not None:
            self._ended((manner, push[1].decode(errors="replace")))

    def _deliver(self, manner: Manner, push: list[Any]) -> None:
        *named, data = push[1:]
        names = [name.decode(errors="replace") for name in named]
        if self._owner.is_text:
            data = data.decode(errors="replace")
        message: Message[Any] = Message(names[-1], data, names[0] if manner == "pattern" else None)
        for subscription in list(self._channels.get((manner, names[0]), ())):
            subscription.take(message)

    def _is_last(self, channel: Channel) -> bool:
        """Whether no other command that subscribes to it is under way behind one that has ended."""
        self._asking[channel] -= 1
        if self._asking[channel] > 0:
            return False
        del self._asking[channel]
        return True

    def _ended(self, channel: Channel) -> None:
        if self._asked and self._asked[0] == (False, channel):
            # Asked for; it may have been subscribed to again since.
            self._asked.popleft()
        elif channel[0] == "shard" and channel in self._channels:
            # It belongs to another node now.
            self._move(channel)

    def _confirm(self, channel: Channel) -> None:
        if (True, channel) in self._asked:
            self._asked.remove((True, channel))
            if not self._is_last(channel):
                # It was left since, and asked for again.
                return
        if channel in self._channels:
            self._confirmed.add(channel)
        if channel in self._missed:
            # Not before: what was said until now is missed too.
            self._missed.discard(channel)
            for subscription in list(self._channels.get(channel, ())):
                subscription.miss()
        for waits in self._waits.pop(channel, []):
            waits.done()

    def _refuse(self, error: BaseException) -> None:
        """The server refuses what was asked for first of what it has not confirmed."""
        if not self._asked:
            return
        subscribes, channel = self._asked.popleft()
        if not subscribes or not self._is_last(channel):
            return
        if isinstance(error, ServerError) and error.code in _ELSEWHERE and channel[0] == "shard":
            return self._move(channel, self._named(error))
        waits = self._waits.pop(channel, [])
        for subscription in self._forget(channel):
            # One that was confirmed before hears nothing any more, and ends.
            subscription.close(error)
        for one in waits:
            one.done(error)
