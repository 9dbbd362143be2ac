"""Rooms and broadcasts over machines: what is sent goes through an engine, and comes back in its order.

```text
room.send ── queue of its channel ──┐                                ┌── room._deliver ── members here
                                    ├─ append ── engine ── record ──┤
broadcast.send ── queue ────────────┘        (MessageLog)            └── broadcast._deliver ── streams here
```

A message is delivered nowhere before the engine has given it its place, so that all nodes have the same
order in each room. While one append is under way, what is sent meanwhile waits and becomes the next
batch: one record for each room.

Nothing is lost while a node lives: a batch stays in the queue until the engine has confirmed it, and is
sent again with the same numbers if that is not known. An engine that has lost its memory does not know the
sender any more; it gets the batches of the last ``retained_s`` seconds again. Each node keeps the number of
the last message that it has delivered of each sender, and drops what is not above it.

What is lost is told to the members, on each node that it is lost for, as a gap. Senders number their messages
without holes, so a node that finds a hole knows how many it has missed: what a full queue has refused (which
is returned to the room, too, as ``Room.missed``), and what the engine no longer had when the node came back.

Tests: ``tests/cluster/test_rooms.py`` (faults, in one process), ``tests/cluster/test_redis_rooms.py``,
``tests/cluster/test_bed.py`` (nodes in network namespaces).
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import threading
import time
from collections import OrderedDict, deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, Protocol

from citius.cluster.channels import Batch, Channel
from citius.cluster.engines import (
    BACKOFF_S,
    BACKOFF_S_MAX,
    Backoff,
    EngineAway,
    Entry,
    Outcome,
    cancel,
    without_credentials,
)
from citius.cluster.records import (
    MESSAGES_MAX,
    SENDER_BYTES,
    ForeignRecord,
    Message,
    Record,
    pack,
    unpack,
)
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius.cluster.engines import MessageLog
    from citius.cluster.records import Reason
    from citius.cluster.stats import Stats

QUEUE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes that wait for the engine. Origin: ten seconds of a busy node. Exceeded: the message is lost."""
RETAINED_S: Final = 30.0
"""For how long confirmed batches are kept, to be sent again. Origin: longer than an engine's restart."""
RETAINED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of them. Exceeded: the oldest are given up."""
FLUSH_WAIT_S: Final = 2.0
"""How long a node that stops waits for the engine to take what is queued."""

# A room that is made while the node serves is followed within this, where the engine is there.
_FOLLOW_S: Final = 0.25
# What a message costs besides its bytes, about.
_OVERHEAD_BYTES: Final = 128
# Bytes of messages joined to one record; a single message may be longer.
_BATCH_BYTES_MAX: Final = 1024 * 1024
# Entries of one append.
_ENTRIES_MAX: Final = 512
# Of these for one channel, so that a busy one leaves room for the others.
_ENTRIES_OF_CHANNEL_MAX: Final = 32
_APPEND_BYTES_MAX: Final = 4 * 1024 * 1024

WhenDown = Literal["queue", "local"]


class SharedRoom(Protocol):
    """A room or a broadcast, as the cluster sees it."""

    def _deliver(self, is_text: bool, payload: bytes) -> None: ...

    def _set_relay(self, relay: Callable[..., int] | None, is_ordered: bool = False) -> None: ...


class ClusterRooms:
    """The rooms of one node, and the engine that they go over; ``Cluster`` makes it."""

    def __init__(
        self,
        log: MessageLog,
        key: bytes,
        stats: Stats,
        *,
        when_down: WhenDown = "queue",
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        retained_s: float = RETAINED_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._key = key
        self._stats = stats
        self._when_down = when_down
        self._queue_bytes_max = queue_bytes_max
        self._retained_s = retained_s
        self._retained_bytes = 0
        self._clock = clock
        self._sender = secrets.token_hex(SENDER_BYTES // 2).encode()
        self._channels: dict[bytes, Channel] = {}
        # Channels with something to send, in the order in which they got it.
        self._ready: OrderedDict[bytes, Channel] = OrderedDict()
        # Guards what `_send` changes, which any thread may call.
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._wakeup: asyncio.Event | None = None
        self._is_wanted = False
        self._tasks: list[asyncio.Task[None]] = []
        self._caught_up: asyncio.Event | None = None
        self._idle: asyncio.Event | None = None
        self._has_logged_loss = False
        self._away_since = math.inf
        """When the engine was found away that is away."""
        self._doubted_until = 0.0
        """Until then an unknown sender may be one of whose messages this node has missed the first."""

    # --- what an application's start and stop call ---------------------------------------------------

    def share(self, name: str, room: SharedRoom) -> None:
        """Make the rooms of this name one, on all nodes."""
        encoded = name.encode("utf-8", "surrogatepass")
        history = getattr(room, "_history_max", 0)
        channel = self._channels[encoded] = Channel(encoded, room, history)
        room._set_relay(self._relay(channel), True)  # pyright: ignore[reportPrivateUsage]
        loop = self._loop
        if loop is not None:
            channel.complete_until = self._clock() + _FOLLOW_S
        if loop is None or threading.get_ident() == self._thread:
            self._log.follow(encoded, history)
        else:
            loop.call_soon_threadsafe(self._log.follow, encoded, history)

    async def start(self, wait_s: float) -> None:
        """Connect to the engine, and wait so long for it; a node also starts without."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._wakeup, self._caught_up = asyncio.Event(), asyncio.Event()
        self._idle = asyncio.Event()
        self._tasks = [
            self._loop.create_task(self._follow(), name="citius-cluster-follow"),
            self._loop.create_task(self._run(), name="citius-cluster-send"),
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._caught_up.wait()
        # Members come now, of rooms that are not followed yet, too.
        for channel in list(self._channels.values()):
            channel.complete_until = min(channel.complete_until, self._clock() + _FOLLOW_S)

    async def stop(self) -> None:
        """Hand over what is queued, as far as the engine takes it, and let go."""
        if self._loop is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_WAIT_S):
                while self._stats.queued_bytes and self._idle is not None:
                    self._idle.clear()
                    await self._idle.wait()
        await cancel(self._tasks)
        if left := self._stats.queued_bytes:
            logging.warning(f"cluster: {left} bytes of messages were not sent before the stop")
        for channel in self._channels.values():
            channel.room._set_relay(None)
        await self._log.close()
        self._loop = None

    @property
    def is_connected(self) -> bool:
        """Whether the engine is there and this node has caught up."""
        return self._stats.is_connected

    # --- sending, from any thread --------------------------------------------------------------------

    def _relay(self, channel: Channel) -> Callable[..., int]:
        def send(is_text: bool, payload: bytes, exclude: object = None) -> int:
            """Returns 1 if the message is lost."""
            message = Message(is_text, payload)
            size = len(payload) + _OVERHEAD_BYTES
            with self._lock:
                channel.sent += 1
                number = channel.sent
                is_lost = self._stats.queued_bytes + size > self._queue_bytes_max
                if is_lost:
                    # Its number makes the loss known to all nodes.
                    self._stats.lost += 1
                else:
                    self._stats.queued_bytes += size
                    channel.waiting.append((number, message))
                    if exclude is not None:
                        channel.exclude[number] = exclude
                    if self._when_down == "local":
                        channel.local.append((number, message))
                self._ready[channel.name] = channel
                is_first, self._is_wanted = not self._is_wanted, True
            if is_first:
                self._wake()
            return self._log_loss() if is_lost else 0

        return send

    def _log_loss(self) -> int:
        if not self._has_logged_loss:
            self._has_logged_loss = True
            logging.warning(
                f"cluster: {self._stats.queued_bytes} bytes wait for the engine; messages beyond that are "
                "lost, and Room.missed counts them"
            )
        return 1

    def _wake(self) -> None:
        loop, wakeup = self._loop, self._wakeup
        if loop is None or wakeup is None:
            return  # what is sent before the start waits for it
        if threading.get_ident() == self._thread:
            loop.call_soon(self._on_wake)
        else:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._on_wake)

    def _on_wake(self) -> None:
        if self._wakeup is not None:
            self._wakeup.set()
        if self._when_down == "local" and not self._stats.is_connected:
            for channel in list(self._channels.values()):
                self._deliver_local(channel)

    # --- the tasks -----------------------------------------------------------------------

    async def _follow(self) -> None:
        backoff = Backoff()
        while True:
            try:
                await self._log.run(self)
            except Exception as error:
                self._report(error)
                self.disconnected(error)
            await backoff.wait()

    def _report(self, error: Exception) -> None:
        """A defect, of this package or of the engine's client: rooms go on all the same."""
        logging.log_exception("cluster: what was not expected", error)

    async def _run(self) -> None:
        backoff = Backoff()
        assert self._wakeup is not None, "the start has made it"
        while True:
            entries = self._entries()
            if not entries:
                await self._wait()
                continue
            try:
                outcomes = await self._log.append([entry for _, _, entry in entries])
            except EngineAway:
                await backoff.wait()
                continue
            except Exception as error:
                self._report(error)
                await backoff.wait()
                continue
            self._take(entries, outcomes)
            backoff.reset()

    async def _wait(self) -> None:
        """Wait for something to send, or until a channel that was refused is tried again."""
        assert self._wakeup is not None, "the start has made it"
        if self._idle is not None and not self._ready:
            self._idle.set()
        retries = [channel.retry_at for channel in self._ready.values() if channel.is_followed]
        wait_s = max(0.0, min(retries) - self._clock()) if retries else None
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._wakeup.wait()
        self._wakeup.clear()

    def _entries(self) -> list[tuple[Channel, Batch, Entry]]:
        """The next batches of all channels that have something, oldest first."""
        with self._lock:
            self._is_wanted = False
            ready = list(self._ready.values())
            for channel in ready:
                self._form_batches(channel)
        entries: list[tuple[Channel, Batch, Entry]] = []
        size, now = 0, self._clock()
        for channel in ready:
            if channel.retry_at > now or not channel.is_followed:
                continue
            is_begin = not channel.is_begun
            for batch in islice(channel.queue, _ENTRIES_OF_CHANNEL_MAX):
                size += len(batch.data)
                if len(entries) == _ENTRIES_MAX or (entries and size > _APPEND_BYTES_MAX):
                    return entries
                entry = Entry(
                    channel.name, self._sender, batch.first, batch.last, is_begin, batch.data,
                    batch.after,
                )  # fmt: skip
                entries.append((channel, batch, entry))
                is_begin = False
        return entries

    def _form_batches(self, channel: Channel) -> None:
        """Number what waits and pack it, under the lock."""
        waiting = channel.waiting
        at = 0
        while at < len(waiting):
            first, end, size = waiting[at][0], at, 0
            while end < len(waiting) and end - at < MESSAGES_MAX:
                number, message = waiting[end]
                more = len(message.payload) + _OVERHEAD_BYTES
                if number != first + end - at or (end > at and size + more > _BATCH_BYTES_MAX):
                    break
                size += more
                end += 1
            self._form_batch(channel, first, tuple(one for _, one in waiting[at:end]), size)
            at = end
        channel.waiting = []
        if channel.number < channel.sent and not channel.queue:
            # What was lost last is followed by nothing that tells of it.
            self._form_batch(channel, channel.sent + 1, (), 0)

    def _form_batch(
        self, channel: Channel, first: int, messages: tuple[Message, ...], size: int
    ) -> None:
        last = first + len(messages) - 1
        data = pack(self._key, channel.name, Record(self._sender, first, messages))
        channel.queue.append(Batch(first, last, data, size, self._clock(), channel.number))
        channel.number = last

    def _take(self, entries: list[tuple[Channel, Batch, Entry]], outcomes: list[Outcome]) -> None:
        """Go by what the engine says of each entry."""
        stopped: set[bytes] = set()
        for (channel, batch, _), outcome in zip(entries, outcomes, strict=True):
            if channel.name in stopped:
                continue
            if outcome is Outcome.KEPT:
                self._confirm(channel, batch)
                continue
            stopped.add(channel.name)
            if outcome is Outcome.FAILED or not channel.is_begun:
                channel.retry_s = min(2 * channel.retry_s or BACKOFF_S, BACKOFF_S_MAX)
                channel.retry_at = self._clock() + channel.retry_s * random.uniform(0.5, 1.0)
            if outcome is not Outcome.FAILED:
                self._begin_again(channel)

    def _confirm(self, channel: Channel, batch: Batch) -> None:
        channel.is_begun = True
        channel.retry_s = 0.0
        if channel.queue[0] is batch:
            channel.queue.popleft()
        else:  # a retained one was put before it meanwhile
            channel.queue.remove(batch)
        if batch.size:
            self._stats.messages_sent += batch.last - batch.first + 1
        self._stats.batches_sent += 1
        with self._lock:
            self._stats.queued_bytes -= batch.size
            self._has_logged_loss = False
            if not channel.queue and channel.number == channel.sent:
                self._ready.pop(channel.name, None)
        # It no longer counts in the queue if it is sent again.
        channel.retained.append(batch._replace(size=0))
        self._retained_bytes += len(batch.data)
        self._forget_retained(channel)

    def _forget_retained(self, channel: Channel) -> None:
        oldest = self._clock() - self._retained_s
        retained = channel.retained
        while retained and (
            retained[0].made_at < oldest or self._retained_bytes > RETAINED_BYTES_MAX
        ):
            self._retained_bytes -= len(retained.popleft().data)

    def _begin_again(self, channel: Channel) -> None:
        """The engine has lost what it had of this channel, or of this sender: send what is retained again."""
        self._forget_retained(channel)
        channel.is_begun = False
        again = list(channel.retained)
        channel.retained.clear()
        self._retained_bytes -= sum(len(batch.data) for batch in again)
        # By their numbers: what was asked for again may have been confirmed after what follows it.
        channel.queue = deque(sorted([*again, *channel.queue]))
        self._stats.republished += sum(batch.last - batch.first + 1 for batch in again)

    # --- what the engine tells -----------------------------------------------------------------------

    def record(self, channel: bytes, data: bytes, *, is_old: bool) -> bool:
        """Deliver what a node has sent to the members here; ``False`` if none has."""
        room = self._channels.get(channel)
        if room is None:
            return False
        try:
            record = unpack(self._key, channel, data)
        except ForeignRecord as foreign:
            self._drop(channel, foreign.reason)
            return False
        self._stats.batches_received += 1
        number = record.first
        before = room.saw(record.sender, number + len(record.messages) - 1)
        is_ours = record.sender == self._sender
        if not is_old:
            self._tell_missed(room, before, number - 1)
        seen = before or 0
        for message in record.messages:
            if number <= seen:
                self._stats.duplicates += 1
            else:
                self._deliver(room, message, number, is_ours=is_ours, is_old=is_old)
            number += 1
        return True

    def _drop(self, channel: bytes, reason: Reason) -> None:
        counts = self._stats.foreign
        if not counts.get(reason):
            logging.warning(
                f"cluster: a record on {channel!r} was dropped, {_WRONG[reason]}; further ones "
                "are counted only"
            )
        counts[reason] = counts.get(reason, 0) + 1

    def told(self, channel: bytes, senders: Mapping[bytes, int]) -> None:
        """What was sent so far, by the numbers of its senders' last messages."""
        room = self._channels.get(channel)
        if room is None:
            return
        for sender, number in senders.items():
            before = room.saw(sender, number)
            if room.is_followed:
                self._tell_missed(room, before, number)
        if senders and not room.is_followed and self._clock() > room.complete_until:
            # Its first members may be older than what is told from here on.
            self._tell_gap(room, 0)
        # What is sent from here before that would be told as what was there before.
        room.is_followed = True
        if self._wakeup is not None:
            self._wakeup.set()

    def _tell_missed(self, channel: Channel, before: int | None, number: int) -> None:
        """Messages of a sender up to ``number`` have not come, if they are above ``before``."""
        if before is None:
            # A sender that began while this node was away, or one that it has not known for long.
            before = 0 if self._clock() < self._doubted_until else number
        if number > before:
            self._tell_gap(channel, number - before)

    def _tell_gap(self, channel: Channel, count: int) -> None:
        """Tell the members here that messages are lost for them; 0: perhaps, and it is not known how many."""
        self._stats.gaps += max(1, count)
        logging.warning(
            f"cluster: {count or 'perhaps some'} messages of {channel.name!r} are lost for this node: they "
            "found a full queue where they were sent (queue_bytes_max=), or were no longer in the engine "
            "when this node came back to it (keep=); its members are told"
        )
        tell = getattr(channel.room, "_gap", None)
        if tell is not None:
            tell(count)

    def _deliver(
        self, channel: Channel, message: Message, number: int, *, is_ours: bool, is_old: bool
    ) -> None:
        self._stats.messages_received += 1
        if is_old:
            deliver_old = getattr(channel.room, "_deliver_old", None)
            if deliver_old is not None:
                deliver_old(*message)
            return
        exclude = channel.exclude.pop(number, None) if is_ours else None
        if is_ours and channel.local and channel.local[0][0] <= number:
            channel.local.popleft()
        if exclude is None:
            channel.room._deliver(*message)
        else:
            channel.room._deliver(*message, exclude)

    def _deliver_local(self, channel: Channel) -> None:
        """The engine is away: deliver here what this node has sent, and drop it when it comes back."""
        while channel.local:
            number, message = channel.local[0]
            if number > channel.seen.get(self._sender, 0):
                before = channel.saw(self._sender, number)
                self._tell_missed(channel, before or 0, number - 1)
                self._deliver(channel, message, number, is_ours=True, is_old=False)
            if channel.local and channel.local[0][0] == number:
                channel.local.popleft()

    def restarted(self, channel: bytes) -> None:
        """The engine has lost records, which come again, perhaps in another order."""
        room = self._channels.get(channel)
        if room is None:
            return
        disorder = getattr(room.room, "_disorder", None)
        if disorder is not None:
            disorder()
        if room.is_followed and self._clock() - self._away_since > self._retained_s:
            # Senders send the last of theirs again, and what came before is nowhere.
            self._tell_gap(room, 0)

    def gap(self, channel: bytes, count: int) -> None:
        """Records that this node has missed are no longer there."""
        room = self._channels.get(channel)
        if room is not None:
            self._tell_gap(room, 0)

    def connected(self) -> None:
        """The engine is there."""
        was_away, self._stats.is_connected = not self._stats.is_connected, True
        self._away_since = math.inf
        self._doubted_until = min(self._doubted_until, self._clock() + 2 * self._retained_s)
        if self._caught_up is not None:
            if was_away and self._caught_up.is_set():
                logging.warning("cluster: the engine serves again")
                self._ask_what_is_kept()
            self._caught_up.set()

    def _ask_what_is_kept(self) -> None:
        """Append the last batches again: an engine that has lost its memory says that it does not know us."""
        with self._lock:
            for channel in self._channels.values():
                self._forget_retained(channel)
                if channel.retained:
                    last = channel.retained.pop()
                    self._retained_bytes -= len(last.data)
                    channel.queue.appendleft(last)
                    self._ready[channel.name] = channel
        if self._wakeup is not None:
            self._wakeup.set()

    def disconnected(self, error: Exception) -> None:
        """The engine is away."""
        if self._stats.is_connected or not self._stats.outages:
            self._stats.outages += 1
            logging.warning(
                f"cluster: the engine does not serve: {without_credentials(repr(error))}"
            )
        self._stats.is_connected = False
        self._away_since = min(self._away_since, self._clock())
        if self._caught_up is not None and self._caught_up.is_set():
            self._doubted_until = math.inf
        if self._when_down == "local":
            for channel in list(self._channels.values()):
                self._deliver_local(channel)


_WRONG: Final = {
    "not ours": "which is not of this framework",
    "version": "whose sender has another version of the format",
    "key": "whose sender does not have the secret of this cluster",
    "malformed": "which is malformed",
}
