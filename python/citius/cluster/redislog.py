"""A message log in Redis or Valkey: a stream for each channel, and a publication of each record.

```text
PREFIX:log:{CHANNEL}    stream of records; identifiers are BIRTH-N
PREFIX:meta:{CHANNEL}   hash: b (BIRTH, when the log began), n (records so far), and of each sender the number
                        of its last message, and (@SENDER) of the record that has it
PREFIX:say:{CHANNEL}    what is published: "BIRTH-N" and the record
```

One script appends: it checks that the record continues what is there of its sender, numbers it, and
publishes it. So a record is in the log once, in the order of its sender, and N grows by one from record
to record. A node that receives N+2 after N, or comes back after an outage, reads what it has missed
from the stream; a Redis that was restarted (another ``run_id``) is read from the beginning, because it
may have gone back in time, and the numbers of the senders tell what is new, and what is no longer there.

Publications reach the nodes that have the room, and no others. The stream keeps ``keep`` records, about, and
ends ``keep_s`` after its last one. A sender that has no record among the last ones is forgotten, and begins
again if it is still there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from citius.cluster.engines import Backoff, EngineAway, Outcome, without_credentials
from citius.cluster.redisclient import Refusal, Script, checked, command
from citius.observability import logging
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.engines import Entry, Sink
    from citius.cluster.redisclient import RedisClient, RedisSubscriber

KEEP: Final = 1000
"""Records of a channel that are kept, about. Origin: some seconds of a busy room. Exceeded: nodes that
were away for longer miss what is older; their members are told, and ``Stats.gaps`` counts it."""
KEEP_S: Final = 3600.0
"""How long a channel is kept that nothing is sent on."""

# How often a subscription is asked for a sign of life, and for how many such times it may be silent.
_PING_S: Final = 0.5
_SILENCES_MAX: Final = 4
# Channels that are subscribed to, or caught up with, at once.
_CHANNELS_AT_ONCE: Final = 256
_READ_AT_ONCE: Final = 512

_APPEND: Final = """
local log, meta, say = KEYS[1], KEYS[2], KEYS[3]
local record, sender, last = ARGV[1], ARGV[2], tonumber(ARGV[4])
local known = redis.pcall('HMGET', meta, 'b', 'n', sender)
if known.err then
  -- Another program's key; the log begins anew.
  redis.call('DEL', meta)
  known = {}
end
local birth, n, kept = known[1], tonumber(known[2] or '0') or 0, tonumber(known[3] or '-1') or -1
if not birth or not string.find(birth, '^%d+$') then
  local time = redis.call('TIME')
  birth = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
  redis.call('DEL', log)
  n = 0
end
if kept >= last then return 0 end
if ARGV[5] ~= '1' then
  if kept < 0 then return 1 end
  if kept ~= tonumber(ARGV[8]) then return 2 end
end
n = n + 1
local id = birth .. '-' .. string.format('%.0f', n)
local added = redis.pcall('XADD', log, 'MAXLEN', '~', ARGV[6], id, 'r', record)
if type(added) == 'table' and added.err then
  -- Something else has written to the stream, or to its key: the log begins anew.
  if not string.find(added.err, 'XADD') and not string.find(added.err, 'WRONGTYPE') then return added end
  redis.call('DEL', log)
  birth = string.format('%.0f', tonumber(birth) + 1)
  n = 1
  id = birth .. '-1'
  redis.call('XADD', log, id, 'r', record)
end
redis.call('HSET', meta, 'b', birth, 'n', string.format('%.0f', n), sender, ARGV[4],
  '@' .. sender, string.format('%.0f', n))
if n % 256 == 0 then
  local all, last = redis.call('HGETALL', meta), {}
  for i = 1, #all, 2 do last[all[i]] = all[i + 1] end
  for name in pairs(last) do
    local at = last['@' .. name]
    if string.sub(name, 1, 1) ~= '@' and name ~= 'b' and name ~= 'n'
        and (not at or tonumber(at) + 2 * tonumber(ARGV[6]) < n) then
      redis.call('HDEL', meta, name, '@' .. name)
    end
  end
end
redis.call('PEXPIRE', meta, ARGV[7])
redis.call('PEXPIRE', log, ARGV[7])
redis.call('PUBLISH', say, id .. ' ' .. record)
return 0
"""
_OUTCOMES: Final = {0: Outcome.KEPT, 1: Outcome.UNKNOWN, 2: Outcome.MISSING}
_META_FIELDS: Final = {b"b", b"n"}


@known_options
class RedisLog:
    """One node's access to one Redis."""

    def __init__(
        self,
        client: RedisClient,
        prefix: str,
        *,
        keep: int = KEEP,
        keep_s: float = KEEP_S,
    ) -> None:
        self._client = client
        self._prefix = prefix.encode()
        self._keep = keep
        self._keep_ms = round(1000 * keep_s)
        self._append = Script(_APPEND)
        self._history: dict[bytes, int] = {}
        """Channels to be followed, and how many old records each wants."""
        self._positions: dict[bytes, tuple[int, int]] = {}
        """The identifier of the last record that was told, of channels that are caught up with."""
        self._published: dict[bytes, tuple[int, int]] = {}
        """The identifier of the last publication, of channels that are subscribed to."""
        self._run_id: str | None = None
        self._refusal = ""
        """Why Redis does not take records, once that is in the log."""
        self._subscriber: RedisSubscriber | None = None
        """The one that is listened to."""
        self._waking: asyncio.Future[None] | None = None
        self._new: list[bytes] = []
        self._subscribed: set[bytes] = set()

    def follow(self, channel: bytes, history: int) -> None:
        """Tell the records of a channel."""
        self._history[channel] = history
        self._new.append(channel)
        if self._subscriber is not None and self._waking is None:
            self._waking = asyncio.ensure_future(self._wake(self._subscriber))

    async def _wake(self, subscriber: RedisSubscriber) -> None:
        """Have ``_listen`` look for new channels: a sign of life is something that it hears."""
        try:
            # Not known before: those that are made in the same turn are looked for together.
            await asyncio.sleep(0)
            self._waking = None
            await subscriber.ping()
        except EngineAway:
            pass  # it begins anew

    async def run(self, sink: Sink) -> None:
        """Follow, and come back after each outage."""
        backoff = Backoff()
        while True:
            subscriber: RedisSubscriber | None = None
            try:
                subscriber = await self._client.subscriber()
                await self._begin(subscriber, sink)
                self._subscriber = subscriber
                backoff.reset()
                sink.connected()
                await self._listen(subscriber, sink)
            except EngineAway as error:
                sink.disconnected(error)
            finally:
                self._subscriber = None
                if subscriber is not None:
                    await subscriber.close()
            await backoff.wait()

    async def _begin(self, subscriber: RedisSubscriber, sink: Sink) -> None:
        """Subscribe, and tell what was missed."""
        self._subscribed.clear()
        self._published.clear()
        is_same = await self._is_same_server()
        # Always one, so that pings have something to be on.
        await subscriber.subscribe([self._prefix + b":say"])
        await self._add(subscriber, list(self._history), sink, is_same=is_same)

    async def _is_same_server(self) -> bool:
        info = await command(self._client, "INFO", "server")
        if isinstance(info, bytes):
            info = info.decode()
        if isinstance(info, str):
            info = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        before, self._run_id = self._run_id, info.get("run_id")
        # Of a cluster it is one node, and not that of each channel.
        return before == self._run_id and info.get("redis_mode") != "cluster"

    async def _add(
        self,
        subscriber: RedisSubscriber,
        channels: list[bytes],
        sink: Sink,
        *,
        is_same: bool = True,
    ) -> None:
        """Subscribe to channels, then read them: what is published in between is told once."""
        for at in range(0, len(channels), _CHANNELS_AT_ONCE):
            some = channels[at : at + _CHANNELS_AT_ONCE]
            await subscriber.subscribe([self._key(b"say", channel) for channel in some])
            self._subscribed.update(some)
            await self._read_all(some, sink, is_same=is_same)

    async def _listen(self, subscriber: RedisSubscriber, sink: Sink) -> None:
        clock = asyncio.get_running_loop().time
        pinged_at, silences = clock(), 0
        prefix = b"%b:say:{" % self._prefix
        while True:
            if self._new:
                new, self._new = self._new, []
                await self._add(
                    subscriber, [one for one in new if one not in self._subscribed], sink
                )
            said = await subscriber.next(_PING_S)
            now = clock()
            if said is not None:
                silences = 0
                name, data = said
                if name.startswith(prefix):
                    await self._heard(_channel(name[len(prefix) : -1]), data, sink)
            else:
                # Counted, not timed: a loop that stands still hears nothing, whatever has come.
                silences += 1
                if silences > _SILENCES_MAX:
                    raise EngineAway("the subscription is silent")
            if now - pinged_at > _PING_S:
                pinged_at = now
                await subscriber.ping()

    async def _heard(self, channel: bytes, data: bytes, sink: Sink) -> None:
        """A publication. What is not like one of ours is told as it is, to be counted."""
        head, space, record = data.partition(b" ")
        found = _position(head) if space else None
        last = self._positions.get(channel)
        if found is None or last is None:
            sink.record(channel, data, is_old=False)
            return
        published = self._published.get(channel)
        self._published[channel] = found
        if published is not None and found[0] == published[0] and found[1] <= published[1]:
            # A replica that was behind has taken the place of the node of a cluster that has the channel.
            if sink.record(channel, record, is_old=False):
                await self._read_all([channel], sink, is_same=False)
            return
        if found[0] == last[0] and found[1] <= last[1]:
            return
        if found == (last[0], last[1] + 1) or (found[0] != last[0] and found[1] == 1):
            # What another client has published must not take the place of the record with that number.
            if sink.record(channel, record, is_old=False):
                self._positions[channel] = found
        else:
            await self._read_all([channel], sink)

    # --- reading what was missed ---------------------------------------------------------------------

    async def _read_all(
        self, channels: Sequence[bytes], sink: Sink, *, is_same: bool = True
    ) -> None:
        metas = await self._client.pipeline(
            [["HGETALL", self._key(b"meta", channel)] for channel in channels]
        )
        for channel, reply in zip(channels, metas, strict=True):
            meta = _pairs(reply)
            end = (_number(meta.get(b"b")), _number(meta.get(b"n")))
            start = self._positions.get(channel)
            senders = {
                name: _number(value)
                for name, value in meta.items()
                if name not in _META_FIELDS and not name.startswith(b"@")
            }
            if start is None:
                await self._read_old(channel, end, sink)
                sink.told(channel, senders)
            elif not is_same or start[0] != end[0] or start[1] != end[1]:
                is_continued = is_same and start[0] == end[0] and start[1] <= end[1]
                await self._read(
                    channel, start if is_continued else (end[0], 0), sink, is_continued
                )
                # Read before the records: what is in neither is lost.
                sink.told(channel, senders)
            self._positions.setdefault(channel, end)

    async def _read_old(self, channel: bytes, end: tuple[int, int], sink: Sink) -> None:
        """Tell the history of a channel that is followed from now on."""
        count = self._history.get(channel, 0)
        if not count:
            return
        replies = await self._range("XREVRANGE", channel, _id(end), "-", count)
        for _, fields in reversed(replies):
            sink.record(channel, _record(fields), is_old=True)

    async def _read(
        self, channel: bytes, start: tuple[int, int], sink: Sink, is_continued: bool
    ) -> None:
        """Tell what came after ``start``."""
        begin = _id((start[0], start[1] + 1)) if is_continued else "-"
        last = start
        if not is_continued:
            sink.restarted(channel)
        while True:
            replies = await self._range("XRANGE", channel, begin, "+", _READ_AT_ONCE)
            for identifier, fields in replies:
                found = _position(identifier) or last
                self._positions[channel] = last = found
                sink.record(channel, _record(fields), is_old=False)
            if len(replies) < _READ_AT_ONCE:
                break
            begin = _id((last[0], last[1] + 1))
        if not is_continued or last != start:
            self._positions[channel] = last

    async def _range(
        self, name: str, channel: bytes, start: str, end: str, count: int
    ) -> list[Any]:
        """Entries of a channel's stream; none of what another program has put in its place."""
        call = [name, self._key(b"log", channel), start, end, "COUNT", count]
        (reply,) = replies = await self._client.pipeline([call])
        if isinstance(reply, Refusal) and str(reply).startswith("WRONGTYPE"):
            return []
        return checked(replies)[0]

    # --- appending ------------------------------------------------------------------------------------

    async def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append records, in one round trip."""
        calls = [
            self._append.call(
                [self._key(kind, entry.channel) for kind in (b"log", b"meta", b"say")],
                [
                    entry.data, entry.sender, entry.first, entry.last, int(entry.is_begin), self._keep,
                    self._keep_ms, entry.after,
                ],
            )
            for entry in entries
        ]  # fmt: skip
        replies = await self._append.replies(self._client, calls)
        return [self._outcome(reply) for reply in replies]

    def _outcome(self, reply: int | Refusal) -> Outcome:
        if not isinstance(reply, Refusal):
            outcome = _OUTCOMES[reply]
            if outcome is Outcome.KEPT:
                self._refusal = ""
            return outcome
        if not self._refusal:
            self._refusal = str(reply)
            logging.warning(
                f"cluster: redis refuses messages, which wait: {without_credentials(reply)}"
            )
        return Outcome.FAILED

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    def _key(self, kind: bytes, channel: bytes) -> bytes:
        return b"%b:%b:{%b}" % (self._prefix, kind, _name(channel))


def _name(channel: bytes) -> bytes:
    """A channel's part of the names of its keys, which are on one node of a cluster, by what is in braces.

    It is UTF-8, as names of subscriptions are, and not empty up to its first ``}``. Others are hexadecimal.
    """
    try:
        channel.decode()
    except UnicodeDecodeError:
        is_plain = False
    else:
        is_plain = channel[:1] not in (b"", b"}", b"%")
    return channel if is_plain else b"%" + channel.hex().encode()


def _channel(name: bytes) -> bytes:
    """The channel that ``_name`` has made a name of."""
    return bytes.fromhex(name[1:].decode()) if name[:1] == b"%" else name


def _position(identifier: bytes) -> tuple[int, int] | None:
    birth, _, n = identifier.partition(b"-")
    return (
        (int(birth), int(n)) if birth.isdigit() and n.isdigit() and len(identifier) < 40 else None
    )


def _id(position: tuple[int, int]) -> str:
    return f"{position[0]}-{position[1]}"


def _number(value: Any) -> int:
    return int(value) if isinstance(value, bytes) and value.isdigit() else 0


def _record(fields: Any) -> bytes:
    """The record of a stream's entry; of a foreign one what is no record."""
    pairs = _pairs(fields)
    found = pairs.get(b"r", b"")
    return found if isinstance(found, bytes) else b""


def _pairs(reply: Any) -> dict[bytes, Any]:
    """A reply of names and values, as RESP2 or RESP3 has it."""
    if isinstance(reply, dict):
        return reply  # pyright: ignore[reportUnknownVariableType]
    if isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2], strict=False))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {}
