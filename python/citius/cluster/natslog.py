"""A message log in NATS (JetStream): one stream for all channels of an application.

```text
stream   citius-APPLICATION
subjects citius.APPLICATION.CHANNEL (in hexadecimal)
```

Each node has one ordered consumer, which tells all records of the application from a number of the
stream on; those of channels that are not here are left aside. So a node receives what all nodes send:
rooms that are each on few nodes are better in Redis. A record is published with an identifier, by which
JetStream drops it if it comes again, and the next one of its channel only once it is confirmed, which
keeps the order of each sender. After an outage the node goes on behind the last number that it has
told; a stream that was made anew is told from its beginning, and senders send theirs again.

Needs nats-py: ``pip install citius[nats]``. Tests: ``tests/cluster/test_nats_rooms.py``.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from citius.cluster.engines import Backoff, EngineAway, Outcome, without_credentials
from citius.cluster.records import SENDER_BYTES
from citius.errors import ConfigError
from citius.unknown_options import known_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.cluster.engines import Entry, Sink

TIMEOUT_S: Final = 2.0
"""How long a request to NATS may take."""
SILENT_S: Final = 2.0
"""How long the consumer may be silent before NATS is asked whether it is there."""
DUPLICATES_S: Final = 120.0
"""For how long JetStream knows identifiers of records. Origin: its default, longer than retries."""

_SENDER_HEADER: Final = "Citius-Record"


@known_options
class NatsLog:
    """One node's access to NATS.

    Args:
        urls: Servers of one cluster of NATS; ``tls://HOST:PORT``, with
            ``?ssl_ca_certs=FILE&ssl_certfile=FILE&ssl_keyfile=FILE`` for files of one's own.
        application: Part of the names of stream and subjects.
        keep: Records of each channel that are kept.
        keep_s: How long they are kept.
    """

    def __init__(
        self,
        urls: Sequence[str],
        application: str,
        *,
        keep: int = 1000,
        keep_s: float = 3600.0,
    ) -> None:
        self._nats: Any = check_installed()
        self._urls = [url.partition("?")[0] for url in urls]
        self._stream = f"citius-{application}"
        self._subject = f"citius.{application}"
        self._keep, self._keep_s = keep, keep_s
        self._tls = _tls_of(urls[0])
        self._client: Any = None
        self._history: dict[bytes, int] = {}
        self._new: list[bytes] = []
        self._born = ""
        """When the stream was made."""
        self._begun: set[tuple[bytes, bytes]] = set()
        """Channels and senders that the stream knows, since it was made."""
        self._position = 0
        """The number of the last record that was told."""
        self._connecting = asyncio.Lock()

    def follow(self, channel: bytes, history: int) -> None:
        """Tell the records of a channel."""
        self._history[channel] = history
        self._new.append(channel)

    # --- following ------------------------------------------------------------------------------------

    async def run(self, sink: Sink) -> None:
        """Follow, and come back after each outage."""
        backoff = Backoff()
        while True:
            try:
                await self._run_once(sink, backoff)
            except EngineAway as error:
                sink.disconnected(error)
            except Exception as error:
                if not self._is_outage(error):
                    raise
                sink.disconnected(EngineAway(without_credentials(repr(error))))
            await backoff.wait()

    async def _run_once(self, sink: Sink, backoff: Backoff) -> None:
        jetstream = await self._jetstream()
        info = await jetstream.stream_info(self._stream)
        born, last = str(info.created), int(info.state.last_seq)
        is_first, is_new = not self._born, born != self._born
        if is_new:
            self._begun.clear()
            if not is_first:
                for channel in self._history:
                    sink.restarted(channel)
                self._position = 0
            self._born = born
        if is_first:
            self._position = last
        for channel in self._take_new():
            await self._tell_old(jetstream, channel, sink)
        first = int(info.state.first_seq)
        if self._position and first > self._position + 1 and not is_first:
            for channel in self._history:
                sink.gap(channel, 1)
        subscription = await self._subscribe(jetstream)
        try:
            backoff.reset()
            sink.connected()
            await self._listen(jetstream, subscription, sink)
        finally:
            with suppress(Exception):  # its connection may be closed
                await subscription.unsubscribe()

    async def _subscribe(self, jetstream: Any) -> Any:
        api = self._nats.js.api
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self._position + 1,
            ack_policy=api.AckPolicy.NONE,
        )
        return await jetstream.subscribe(
            f"{self._subject}.>", stream=self._stream, ordered_consumer=True, config=config,
            pending_msgs_limit=-1, pending_bytes_limit=-1,
        )  # fmt: skip

    async def _listen(self, jetstream: Any, subscription: Any, sink: Sink) -> None:
        while True:
            for channel in self._take_new():
                await self._tell_old(jetstream, channel, sink)
            try:
                message = await subscription.next_msg(
                    timeout=SILENT_S / 4 if self._new else SILENT_S
                )
            except self._nats.errors.TimeoutError:
                await self._check(jetstream)
                continue
            number = int(message.metadata.sequence.stream)
            if number <= self._position:
                continue
            self._position = number
            channel = self._channel(message.subject)
            if channel in self._history:
                sink.record(channel, message.data, is_old=False)

    async def _check(self, jetstream: Any) -> None:
        """Ask whether the stream is there still, and as far as it was told."""
        info = await jetstream.stream_info(self._stream)
        if str(info.created) != self._born:
            raise EngineAway("the stream was made anew")
        if int(info.state.last_seq) > self._position:
            raise EngineAway("the consumer is silent")
        if int(info.state.last_seq) < self._position:
            self._born = "gone back in time"
            raise EngineAway("the stream has gone back in time")

    def _take_new(self) -> list[bytes]:
        new, self._new = self._new, []
        return new

    async def _tell_old(self, jetstream: Any, channel: bytes, sink: Sink) -> None:
        """Tell the history of a channel up to where the consumer begins, and who has sent what."""
        api = self._nats.js.api
        senders: dict[bytes, int] = {}
        records: list[bytes] = []
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.ALL, ack_policy=api.AckPolicy.NONE
        )
        subscription = await jetstream.subscribe(
            self._subject_of(channel), stream=self._stream, ordered_consumer=True, config=config
        )
        try:
            while True:
                try:
                    message = await subscription.next_msg(timeout=0.25)
                except self._nats.errors.TimeoutError:
                    break
                if int(message.metadata.sequence.stream) > self._position:
                    break
                records.append(message.data)
                headers: dict[str, str] = message.headers or {}
                sender, _, last = headers.get(_SENDER_HEADER, "").partition(" ")
                if len(sender) == SENDER_BYTES and last.isdigit():
                    senders[sender.encode()] = int(last)
                if not message.metadata.num_pending:
                    break
        finally:
            await subscription.unsubscribe()
        for data in (
            records[len(records) - self._history[channel] :] if self._history[channel] else ()
        ):
            sink.record(channel, data, is_old=True)
        sink.told(channel, senders)

    # --- appending ------------------------------------------------------------------------------------

    async def append(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Append records: those of a channel one after the other, channels beside one another."""
        try:
            jetstream = await self._jetstream()
        except Exception as error:
            raise EngineAway(without_credentials(repr(error))) from None
        places: dict[bytes, list[int]] = {}
        for at, entry in enumerate(entries):
            places.setdefault(entry.channel, []).append(at)
        outcomes = [Outcome.FAILED] * len(entries)

        async def append(its: list[int]) -> None:
            for at in its:
                outcomes[at] = await self._append(jetstream, entries[at])
                if outcomes[at] is not Outcome.KEPT:
                    return

        await asyncio.gather(*map(append, places.values()))
        return outcomes

    async def _append(self, jetstream: Any, entry: Entry) -> Outcome:
        place = entry.channel, entry.sender
        if not entry.is_begin and place not in self._begun:
            return Outcome.UNKNOWN  # the stream was made anew
        born, sender = self._born, entry.sender.decode()
        headers = {
            "Nats-Msg-Id": f"{entry.channel.hex()}-{sender}-{entry.first}-{entry.last}",
            _SENDER_HEADER: f"{sender} {entry.last}",
        }
        try:
            await jetstream.publish(
                self._subject_of(entry.channel), entry.data, timeout=TIMEOUT_S, stream=self._stream,
                headers=headers,
            )  # fmt: skip
        except Exception as error:
            if not self._is_outage(error):
                raise
            return Outcome.FAILED
        if born == self._born:
            self._begun.add(place)
        return Outcome.KEPT

    async def close(self) -> None:
        """Let go of connections."""
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # it may be closed by the other side
                await client.close()

    # --- connecting -----------------------------------------------------------------------------------

    async def _jetstream(self) -> Any:
        async with self._connecting:
            client = self._client
            if client is None or not client.is_connected:
                if client is not None:
                    with suppress(Exception):  # it may be closed by the other side
                        await client.close()
                self._client = client = await asyncio.wait_for(self._connect(), 2 * TIMEOUT_S)
                await self._make_stream(client.jetstream(timeout=TIMEOUT_S))
            return client.jetstream(timeout=TIMEOUT_S)

    async def _connect(self) -> Any:
        options: dict[str, Any] = {"tls": self._tls} if self._tls is not None else {}

        async def on_error(_: Exception) -> None:
            """Not logged: the caller that waits gets the error too, and its text may contain the URL."""

        return await self._nats.connect(
            self._urls, allow_reconnect=False, connect_timeout=TIMEOUT_S, ping_interval=1,
            max_outstanding_pings=2, error_cb=on_error, **options,
        )  # fmt: skip

    async def _make_stream(self, jetstream: Any) -> None:
        api = self._nats.js.api
        config = api.StreamConfig(
            name=self._stream,
            subjects=[f"{self._subject}.>"],
            max_msgs_per_subject=self._keep,
            max_age=self._keep_s,
            discard=api.DiscardPolicy.OLD,
            duplicate_window=min(DUPLICATES_S, self._keep_s),
            storage=api.StorageType.FILE,
            allow_direct=True,
        )
        try:
            await jetstream.add_stream(config)
        except self._nats.js.errors.BadRequestError:
            return  # another node has made it, perhaps with other options

    def _is_outage(self, error: Exception) -> bool:
        return isinstance(error, (OSError, TimeoutError, self._nats.errors.Error))

    def _subject_of(self, channel: bytes) -> str:
        return f"{self._subject}.{channel.hex()}"

    def _channel(self, subject: str) -> bytes:
        try:
            return bytes.fromhex(subject[len(self._subject) + 1 :])
        except ValueError:
            return b""


def _tls_of(url: str) -> object:
    """What connections are secured with, of the query of a URL as that of a Redis."""
    parts = urlsplit(url)
    if parts.scheme != "tls":
        return None
    import ssl

    given = dict(parse_qsl(parts.query))
    context = ssl.create_default_context(cafile=given.get("ssl_ca_certs"))
    if "ssl_certfile" in given:
        context.load_cert_chain(given["ssl_certfile"], given.get("ssl_keyfile"))
    return context


def check_installed() -> Any:
    """nats-py.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        for name in ("nats.js.api", "nats.js.errors", "nats.errors"):
            import_module(name)
        return import_module("nats")
    except ModuleNotFoundError:
        raise ConfigError("nats-py is not installed: pip install citius[nats]") from None
