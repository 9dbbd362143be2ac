"""Where runs are kept, with their events: in memory of all workers of a machine, or in Redis.

A store is what all workers agree on: a run is over when the store has its end, and an event is part of it
when the store has taken it, so that readers of any worker see the same events. ``web/realtime/runs/`` has
what runs are. A worker that has runs says that it is alive: one of this machine holds a lock of the kernel,
which ends with its process; in Redis it renews a lease. Tests: ``tests/runs/``.
"""

from __future__ import annotations

import json
import time
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

from citius.cluster.redisclient import Script, checked, command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.redisclient import Argument, RedisClient
    from citius.process.sharedtable import SharedTable

LEASE_S: Final = 10.0
"""How long a worker is taken to be alive that has not said so to Redis. Origin: ten times the interval in
which it does, and longer than a handler should hold an event loop."""

DOUBT_S: Final = 3.0
"""How long it is taken to be alive still when its lease is found ended. Origin: it renews it sooner if Redis
stood still or was away for longer than a lease lasts, so that the worker could not."""
_DOUBT_KEPT_S: Final = 24 * 3600.0

PAGE_MAX: Final = 256
"""Events that are read at once."""

RUNNING: Final = "running"


class TooLong(ValueError):
    """An event is longer than the store can keep."""


@dataclass(slots=True)
class RunRecord:
    """What is known of a run besides its events."""

    worker: str
    """Which worker it is in."""
    owner: str = ""
    """A digest of who has begun it; empty if that is not known."""
    path: str = ""
    """A digest of the path that it was begun at."""
    keep_s: float = 300.0
    """How long it is kept when it is over."""
    state: str = RUNNING
    first: int = 1
    """The number of the oldest event that is kept."""
    last: int = 0
    """The number of the last one."""
    begun_at: float = field(default_factory=time.time)
    ended_at: float = 0.0
    end: str = ""
    """Its last event, where that is kept with it."""

    @property
    def is_over(self) -> bool:
        """Whether its last event is its end."""
        return self.state != RUNNING


class Page(NamedTuple):
    """Some events of a run."""

    record: RunRecord
    first: int
    """The number of the first one."""
    events: list[bytes]


class RunStore(Protocol):
    """Runs of all workers."""

    async def create(self, run: str, record: RunRecord, ttl_s: float) -> None:
        """Keep a new run, for so long at most."""

    async def find(self, run: str) -> RunRecord | None:
        """What is known of a run; ``None`` if it is not there."""
        ...

    async def append(
        self, run: str, record: RunRecord, events: Sequence[bytes], ttl_s: float
    ) -> bool:
        """Add events behind ``record.last``, and forget those before ``record.first``.

        ``False``: the run is over, or not there. To append the same again changes nothing.
        """
        ...

    async def read(self, run: str, after: int) -> Page | None:
        """What comes after an event; ``None`` if the run is not there."""
        ...

    async def end(self, run: str, state: str, event: bytes, keep_s: float, after: int = 0) -> bool:
        """End a run with an event; ``False`` if it was over before, or is not there.

        ``after`` is the number of its last event so far, as far as the caller knows.
        """
        ...

    async def forget(self, run: str) -> None:
        """Forget a run."""

    async def claim(self, key: str, run: str, ttl_s: float) -> str:
        """Give a run a key that no other one has; the run that has it."""
        ...

    async def claimed(self, key: str) -> str | None:
        """The run that has a key."""
        ...

    async def unclaim(self, key: str, run: str) -> None:
        """Take a key from a run that has it."""

    async def reserve(self, group: str, run: str, most: int, ttl_s: float) -> list[str] | None:
        """Count a run in a group; those in it if they are so many already."""
        ...

    async def release(self, group: str, run: str) -> None:
        """Count it no more."""

    async def renew(self, worker: str) -> None:
        """Say that a worker is alive."""

    async def is_alive(self, worker: str) -> bool:
        """Whether it is."""
        ...


class TableRuns:
    """Runs of all workers of one machine."""

    def __init__(self, table: SharedTable, prefix: str = "") -> None:
        self._table = table
        self._prefix = prefix.encode()
        # The locks of workers of this process; they are never given back.
        self._alive: dict[str, ExitStack] = {}

    @property
    def value_bytes_max(self) -> int:
        """Bytes that one event may have, with its key."""
        return self._table.value_bytes_max

    async def create(self, run: str, record: RunRecord, ttl_s: float) -> None:
        """Keep a new run."""
        self._table.set(self._key("run", run), _packed(record), ttl_s)

    async def find(self, run: str) -> RunRecord | None:
        """What is known of a run."""
        return _record(self._table.get(self._key("run", run)))

    async def append(
        self, run: str, record: RunRecord, events: Sequence[bytes], ttl_s: float
    ) -> bool:
        """Add events."""
        table, last = self._table, record.last
        for number, event in enumerate(events, last + 1):
            if not table.set(self._key("event", run, number), event, ttl_s):
                raise TooLong(
                    f"{len(event)} bytes are too many for memory of all workers: {table.value_bytes_max} can "
                    "be kept"
                )
        gone = 0

        def change(value: bytes | None) -> bytes | None:
            nonlocal gone
            found = _record(value)
            if found is None or found.is_over or found.worker != record.worker:
                return value
            gone, found.first, found.last = found.first, record.first, last + len(events)
            return _packed(found)

        found = _record(table.update(self._key("run", run), change, ttl_s))
        is_taken = bool(gone)
        for number in range(gone, record.first if is_taken else 0):
            table.delete(self._key("event", run, number))
        return is_taken and found is not None

    async def read(self, run: str, after: int) -> Page | None:
        """What comes after an event."""
        record = await self.find(run)
        if record is None:
            return None
        first = max(after + 1, record.first)
        events: list[bytes] = []
        for number in range(first, min(record.last, first + PAGE_MAX - 1) + 1):
            is_end = record.is_over and number == record.last
            event = (
                record.end.encode() if is_end else self._table.get(self._key("event", run, number))
            )
            if event is not None:
                events.append(event)
            elif not events:
                first = number + 1  # newer values have taken its place
            else:
                break
        return Page(record, first, events)

    async def end(self, run: str, state: str, event: bytes, keep_s: float, after: int = 0) -> bool:
        """End a run; memory does not go back in time, and has all events."""
        ended = False

        def change(value: bytes | None) -> bytes | None:
            nonlocal ended
            record = _record(value)
            if record is None or record.is_over:
                return value
            ended = True
            record.state, record.ended_at, record.last = state, time.time(), record.last + 1
            record.end = event.decode()
            return _packed(record)

        # Not of one that is over, which would be kept for so long again.
        if (before := await self.find(run)) is not None and not before.is_over:
            self._table.update(self._key("run", run), change, keep_s)
        return ended

    async def forget(self, run: str) -> None:
        """Forget a run."""
        record = await self.find(run)
        if record is not None:
            self._table.delete(self._key("run", run))
            for number in range(record.first, record.last + 1):
                self._table.delete(self._key("event", run, number))

    async def claim(self, key: str, run: str, ttl_s: float) -> str:
        """Give a run a key."""
        claimed = self._table.set_if_absent(self._key("key", key), run.encode(), ttl_s)
        return claimed.decode()

    async def claimed(self, key: str) -> str | None:
        """The run that has a key."""
        found = self._table.get(self._key("key", key))
        return None if found is None else found.decode()

    async def unclaim(self, key: str, run: str) -> None:
        """Take a key from a run."""
        self._table.discard(self._key("key", key), run.encode())

    async def reserve(self, group: str, run: str, most: int, ttl_s: float) -> list[str] | None:
        """Count a run."""
        full: list[str] | None = None
        now = time.time()

        def change(value: bytes | None) -> bytes:
            nonlocal full
            found: dict[str, float] = json.loads(value) if value else {}
            found = {name: until for name, until in found.items() if until > now}
            if len(found) >= most:
                full = list(found)
            else:
                found[run] = now + ttl_s
            return json.dumps(found).encode()

        self._table.update(self._key("group", group), change, ttl_s)
        return full

    async def release(self, group: str, run: str) -> None:
        """Count it no more."""
        key = self._key("group", group)
        value = self._table.get(key)
        if value is None:
            return
        longest = max([0.0, *json.loads(value).values()]) - time.time()

        def change(value: bytes | None) -> bytes | None:
            found: dict[str, float] = json.loads(value) if value else {}
            found.pop(run, None)
            return json.dumps(found).encode() if found else None

        self._table.update(key, change, max(longest, 1.0))

    async def renew(self, worker: str) -> None:
        """Hold the lock of a worker for as long as its process is there."""
        if worker not in self._alive:
            stack = self._alive[worker] = ExitStack()
            lock: AbstractContextManager[bool] = self._table.locked(self._key("worker", worker))
            if not stack.enter_context(lock):
                del self._alive[worker]

    async def is_alive(self, worker: str) -> bool:
        """Whether a process holds its lock."""
        if worker in self._alive:
            return True
        with self._table.locked(self._key("worker", worker)) as is_free:
            return not is_free

    def _key(self, kind: str, name: str, number: int = 0) -> bytes:
        return b"%b%b:%b:%d" % (self._prefix, kind.encode(), name.encode(), number)


_FIELDS: Final = tuple(one.name for one in fields(RunRecord))


def _packed(record: RunRecord) -> bytes:
    # Once per event: `asdict` takes longer than all the rest.
    return json.dumps([getattr(record, name) for name in _FIELDS]).encode()


def _record(value: bytes | None) -> RunRecord | None:
    return None if value is None else RunRecord(*json.loads(value))


# A record that ends before the event that comes next is an older state of it: Redis has gone back in time.
# What comes from here on is kept with its numbers, and what is before it is told as a gap.
_HOLE: Final = """
local function past_hole(had_last, had_first, last)
  if last <= had_last then return had_last, had_first end
  redis.call('DEL', KEYS[2])
  return last, last + 1
end
"""
_APPEND: Final = (
    _HOLE
    + """
local had = redis.call('HMGET', KEYS[1], 'state', 'worker', 'last', 'first')
if had[1] ~= 'running' or had[2] ~= ARGV[1] then return 0 end
local number = tonumber(ARGV[2])
local last, begin = past_hole(tonumber(had[3]), tonumber(had[4]), number - 1)
for at = 5, #ARGV do
  if number > last then redis.call('RPUSH', KEYS[2], ARGV[at]) last = number end
  number = number + 1
end
local first = math.max(tonumber(ARGV[3]), begin)
if first > begin then redis.call('LTRIM', KEYS[2], first - begin, -1) end
redis.call('HSET', KEYS[1], 'last', last, 'first', first)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
"""
)
_READ: Final = """
local had = redis.call('HGETALL', KEYS[1])
if #had == 0 then return false end
local first = math.max(tonumber(ARGV[1]) + 1, tonumber(redis.call('HGET', KEYS[1], 'first')))
local at = first - tonumber(redis.call('HGET', KEYS[1], 'first'))
return {had, first, redis.call('LRANGE', KEYS[2], at, at + tonumber(ARGV[2]) - 1)}
"""
_END: Final = (
    _HOLE
    + """
local had = redis.call('HMGET', KEYS[1], 'state', 'last', 'first')
if had[1] ~= 'running' then return 0 end
local last, first = past_hole(tonumber(had[2]), tonumber(had[3]), tonumber(ARGV[5]))
redis.call('HSET', KEYS[1], 'state', ARGV[1], 'ended_at', ARGV[2], 'last', last + 1, 'first', first)
redis.call('RPUSH', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
"""
)
_RESERVE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return redis.call('ZRANGE', KEYS[1], 0, -1) end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return false
"""
_UNCLAIM: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# A lease that has ended is doubted first: KEYS are the lease, and since when it is doubted.
_IS_ALIVE: Final = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local since = tonumber(redis.call('GET', KEYS[2]) or '')
if not since then
  redis.call('SET', KEYS[2], string.format('%.0f', now), 'PX', ARGV[2])
  return 1
end
return now - since < tonumber(ARGV[1]) and 1 or 0
"""


class RedisRuns:
    """Runs of all machines. A run's keys have one hash tag; every call is of the keys of one."""

    def __init__(self, client: RedisClient, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._append, self._read = Script(_APPEND), Script(_READ)
        self._end, self._reserve = Script(_END), Script(_RESERVE)
        self._unclaim, self._is_alive = Script(_UNCLAIM), Script(_IS_ALIVE)

    async def create(self, run: str, record: RunRecord, ttl_s: float) -> None:
        """Keep a new run."""
        fields = [part for pair in asdict(record).items() for part in pair]
        key = self._key("run", run)
        replies = await self._client.pipeline(
            [["HSET", key, *fields], ["PEXPIRE", key, _ms(ttl_s)]]
        )
        checked(replies)

    async def find(self, run: str) -> RunRecord | None:
        """What is known of a run."""
        fields = await command(self._client, "HGETALL", self._key("run", run))
        return _record_of(fields)

    async def append(
        self, run: str, record: RunRecord, events: Sequence[bytes], ttl_s: float
    ) -> bool:
        """Add events."""
        arguments: list[Argument] = [record.worker, record.last + 1, record.first, _ms(ttl_s)]
        return await self._call(self._append, self._keys(run), [*arguments, *events]) == 1

    async def read(self, run: str, after: int) -> Page | None:
        """What comes after an event."""
        reply = await self._call(self._read, self._keys(run), [after, PAGE_MAX])
        if not reply:
            return None
        fields, first, events = reply
        record = _record_of(fields)
        return None if record is None else Page(record, int(first), list(events))

    async def end(self, run: str, state: str, event: bytes, keep_s: float, after: int = 0) -> bool:
        """End a run."""
        arguments: list[Argument] = [state, time.time(), event, _ms(keep_s), after]
        return await self._call(self._end, self._keys(run), arguments) == 1

    async def forget(self, run: str) -> None:
        """Forget a run."""
        await command(self._client, "DEL", *self._keys(run))

    async def claim(self, key: str, run: str, ttl_s: float) -> str:
        """Give a run a key."""
        name = self._key("key", key)
        if await command(self._client, "SET", name, run, "NX", "PX", _ms(ttl_s)) is not None:
            return run
        return await self.claimed(key) or await self.claim(key, run, ttl_s)

    async def claimed(self, key: str) -> str | None:
        """The run that has a key."""
        found = await command(self._client, "GET", self._key("key", key))
        return None if found is None else bytes(found).decode()

    async def unclaim(self, key: str, run: str) -> None:
        """Take a key from a run."""
        await self._call(self._unclaim, [self._key("key", key)], [run])

    async def reserve(self, group: str, run: str, most: int, ttl_s: float) -> list[str] | None:
        """Count a run."""
        key: list[Argument] = [self._key("group", group)]
        reply = await self._call(self._reserve, key, [run, most, _ms(ttl_s)])
        return None if reply is None else [bytes(one).decode() for one in reply]

    async def release(self, group: str, run: str) -> None:
        """Count it no more."""
        await command(self._client, "ZREM", self._key("group", group), run)

    async def renew(self, worker: str) -> None:
        """Renew the lease of a worker."""
        lease: list[Argument] = ["SET", self._key("worker", worker), "1", "PX", _ms(LEASE_S)]
        replies = await self._client.pipeline([lease, ["DEL", self._key("doubted", worker)]])
        checked(replies)

    async def is_alive(self, worker: str) -> bool:
        """Whether its lease has not ended, or has been found ended for less than ``DOUBT_S``."""
        keys: list[Argument] = [self._key("worker", worker), self._key("doubted", worker)]
        return await self._call(self._is_alive, keys, [_ms(DOUBT_S), _ms(_DOUBT_KEPT_S)]) == 1

    async def _call(self, script: Script, keys: list[Argument], arguments: list[Argument]) -> Any:
        (reply,) = await script.replies(self._client, [script.call(keys, arguments)])
        checked([reply])
        return reply

    def _keys(self, run: str) -> list[Argument]:
        return [self._key("run", run), self._key("events", run)]

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}:{kind}:{{{name}}}"


def _ms(seconds: float) -> int:
    return max(1, round(1000 * seconds))


def _record_of(fields: Any) -> RunRecord | None:
    """The record of a hash; some clients make a mapping of its fields."""
    if isinstance(fields, dict):
        pairs = list(cast("dict[Any, Any]", fields).items())
    else:
        flat = list(fields or ())
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
    if not pairs:
        return None
    found = {bytes(name).decode(): bytes(value).decode() for name, value in pairs}
    return RunRecord(
        found["worker"], found["owner"], found["path"], float(found["keep_s"]), found["state"],
        int(found["first"]), int(found["last"]), float(found["begun_at"]), float(found["ended_at"]),
    )  # fmt: skip
