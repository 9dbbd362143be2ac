"""Readers of runs: server-sent events and WebSocket messages, from any event on, in any worker.

A reader reads from the store at the pace of its client, so that a slow one costs no memory; what is no longer
kept when it gets there it is told as a gap. It is told by the run when there is more, and looks by itself
every :data:`LOOK_S`, so that nothing depends on a message between workers. The last event says how the run
has ended. Tests: ``tests/runs/``.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from citius._core import Response, WebSocket
from citius.cluster.engines import EngineAway
from citius.errors import ConnectionClosed
from citius.web.declarations.codecs import encode_json
from citius.web.realtime.events import Event
from citius.web.realtime.history import event_with_id, gap_text
from citius.web.realtime.runs.run_tasks import END, GAP, end_event

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from citius.web.realtime.runs.run_keeper import RunKeeper

LOOK_S: Final = 1.0
"""How long a reader waits to be told of events before it looks by itself. Origin: an end that nothing could
tell, of a worker that was killed, is told after twice that."""

_HEARTBEAT: Final = b":\n\n"


class Item(NamedTuple):
    """Something for a reader."""

    number: int
    """The event's number; 0 for what is no event of the run."""
    event: str
    data: str


NOTHING: Final = Item(0, "", "")
"""There was nothing for a while."""


async def items(
    keeper: RunKeeper, run: str, after: int, heartbeat_s: float | None
) -> AsyncGenerator[Item]:
    """What a reader gets, until the run is over or readers are sent away."""
    loop = asyncio.get_running_loop()
    follower = keeper.follow(run)
    said_at = loop.time()
    try:
        while not keeper.is_draining:
            follower.wake.clear()
            try:
                page = await keeper.store.read(run, after)
                if page is None:
                    # The engine has lost it, or it has not been kept for so long.
                    yield _item(0, end_event("cut_off", reason="lost"))
                    return
                if page.first > after + 1:
                    yield Item(0, GAP, gap_text(page.first - after - 1))
                    after = page.first - 1
                for after, kept in enumerate(page.events, page.first):
                    yield _item(after, kept)
                if page.record.is_over and after >= page.record.last:
                    return
                if page.events:
                    said_at = loop.time()
                    continue
            except EngineAway:
                pass
            try:
                async with asyncio.timeout(LOOK_S):
                    await follower.wake.wait()
                continue
            except TimeoutError:
                pass
            with suppress(EngineAway):
                await keeper.is_running(run)
            if heartbeat_s is not None and loop.time() - said_at >= heartbeat_s:
                said_at = loop.time()
                yield NOTHING
    finally:
        keeper.unfollow(run, follower)


def _item(number: int, kept: bytes) -> Item:
    event, _, data = kept.decode().partition("\n")
    return Item(number, event, data)


def event_response(
    keeper: RunKeeper,
    run: str,
    after: int,
    heartbeat_s: float | None,
    headers: dict[str, str] | None = None,
) -> Response:
    """A response of the events of a run."""
    fields = {"cache-control": "no-cache", "x-accel-buffering": "no", **(headers or {})}
    return Response(_encoded(keeper, run, after, heartbeat_s), 200, fields, "text/event-stream")


async def _encoded(
    keeper: RunKeeper, run: str, after: int, heartbeat_s: float | None
) -> AsyncGenerator[bytes]:
    yield _HEARTBEAT  # clients and proxies see the header section at once
    source = items(keeper, run, after, heartbeat_s)
    try:
        async for item in source:
            if item is NOTHING:
                yield _HEARTBEAT
                continue
            data = Event(item.data, item.event or None).encode()
            yield event_with_id(str(item.number), data) if item.number else data
            if item.event == END:
                return
    finally:
        await source.aclose()
    if keeper.spread_s:
        yield b"retry: %d\n\n" % random.randint(1, round(1000 * keeper.spread_s))


async def send_messages(keeper: RunKeeper, run: str, after: int, socket: WebSocket) -> None:
    """Send the events of a run as messages, until it is over or the client has left."""
    await socket.accept()
    sending = asyncio.ensure_future(_send_all(keeper, run, after, socket))
    try:
        with suppress(ConnectionClosed):
            async for _ in socket:  # clients have nothing to say
                pass
    finally:
        sending.cancel()
        await asyncio.wait([sending])


async def _send_all(keeper: RunKeeper, run: str, after: int, socket: WebSocket) -> None:
    source = items(keeper, run, after, None)
    try:
        async for item in source:
            if item is not NOTHING:
                said = {"id": item.number or None, "event": item.event or "message"}
                await socket.send(encode_json({**said, "data": item.data}).decode())
        if keeper.is_draining:
            await socket.close(1012, "the server restarts")
        else:
            await socket.close(1000)
    except ConnectionClosed:
        return
    finally:
        await source.aclose()
