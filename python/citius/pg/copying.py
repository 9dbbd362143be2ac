"""COPY: bytes of a table to and from the client, as they come, or rows that become its text format."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import decimal
import enum
import functools
import ipaddress
import uuid
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

import msgspec

from citius.databases.wakeups import Wakeups
from citius.pg import infinity
from citius.pg.errors import PostgresError, block_over

if TYPE_CHECKING:
    from types import TracebackType

    from citius._core import PgCall
    from citius.pg.pool import Pool
    from citius.pg.session import Session
    from citius.pg.transactions import Transaction

CopyItem: TypeAlias = "bytes | bytearray | memoryview | tuple[object, ...] | list[object]"
CopySource: TypeAlias = (
    "bytes | bytearray | memoryview | Iterable[CopyItem] | AsyncIterable[CopyItem]"
)

# Bytes that small items are collected to, that are sent at once, and that wait for a consumer before the
# server has to.
_CHUNK_BYTES, _PIECE_BYTES = 64 * 1024, 128 * 1024
_WAITING_BYTES_MAX = 256 * 1024
# What the server waits for, as it says, when it has read all that it got, or cannot send: `Session.copying`.
_SENDING = "ClientRead"
_READING = "ClientWrite", 0
# Letters of the reason for which a COPY fails: with 10 000 bytes the server ends the session.
_REASON_MAX = 2000


class CopyOut:
    """Data of ``COPY … TO STDOUT``: ``async with pool.copy_out(sql) as chunks``, then ``async for``.

    What the consumer has not taken is bounded; the server waits for it. Leaving the block early cancels the
    COPY, which fails the transaction that it is part of.
    """

    def __init__(self, pool: Pool, sql: str, transaction: Transaction | None = None) -> None:
        self._pool, self._sql, self._transaction = pool, sql, transaction
        self._session: Session | None = None
        self._chunks: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._is_paused = self._is_cut = False
        self._call: PgCall | None = None
        self._task: asyncio.Task[int] | None = None
        self._news = Wakeups()

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise RuntimeError("a COPY is entered once")
        if self._transaction is None:
            self._session = await self._pool.acquire()
        else:
            self._transaction.check_block()
            self._session = self._transaction.live_session()
        self._session.hold()
        self._session.copies.add(self._cut)
        self._session.copying = _READING
        self._call = self._pool.core.copy(self._sql, self._session.core, self._take)
        self._task = asyncio.get_running_loop().create_task(_wait_for(self._call))
        self._task.add_done_callback(self._ended)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, session = self._task, self._session
        assert task is not None
        assert session is not None
        is_clean = task.done() and not task.cancelled() and task.exception() is None
        task.cancel()
        self._chunks.clear()
        # What comes now is dropped where it comes.
        self._resume(session)
        session.copies.discard(self._cut)
        session.copying = None
        session.let_go()
        if self._transaction is None:
            (self._pool.release if is_clean else self._pool.roll_back)(session)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._task is None or self._session is None:
            raise RuntimeError("use `async with pool.copy_out(…) as chunks`")
        while not self._chunks:
            if self._is_cut:
                raise block_over(None)
            if self._task.done():
                self._task.result()
                raise StopAsyncIteration
            await self._news.wait()
        chunk = self._chunks.popleft()
        self._waiting_bytes -= len(chunk)
        if self._is_paused and self._waiting_bytes <= _WAITING_BYTES_MAX // 2:
            self._session.copying = _READING
            self._resume(self._session)
        return chunk

    def _resume(self, session: Session) -> None:
        if self._is_paused:
            self._is_paused = False
            session.resume_reading()

    def _cut(self) -> None:
        """Have nothing more, if its block is rolled back: that comes behind the data."""
        if self._transaction is None or not self._transaction.is_over:
            return
        assert self._task is not None
        assert self._session is not None
        self._is_cut = True
        self._chunks.clear()
        self._task.cancel()
        self._resume(self._session)

    def _take(self, data: bytes | None) -> None:
        assert self._session is not None
        if data is None:
            # COPY FROM STDIN: there is no data here.
            assert self._call is not None
            return self._session.core.end_copy(self._call, "copy_out is for COPY … TO STDOUT")
        self._chunks.append(data)
        self._waiting_bytes += len(data)
        if not self._is_paused and self._waiting_bytes > _WAITING_BYTES_MAX:
            self._is_paused = True
            self._session.copying = None
            self._session.pause_reading()
        self._news.wake()

    def _ended(self, task: asyncio.Task[int]) -> None:
        if not task.cancelled():
            task.exception()
        self._news.wake()


async def _wait_for(call: Any) -> int:
    return await call


async def copy_in_alone(pool: Pool, sql: str, source: CopySource) -> int:
    """Send the data of a COPY in a session of its own; the number of rows."""
    session, is_clean = await pool.acquire(), False
    try:
        rows = await copy_in(pool, session, sql, source)
        is_clean = True
        return rows
    finally:
        (pool.release if is_clean else pool.roll_back)(session)


async def copy_in(pool: Pool, session: Session, sql: str, source: CopySource) -> int:
    """Send the data of ``COPY … FROM STDIN``; the number of rows.

    If the source fails, so does the COPY; nothing of it is kept.
    """
    loop = asyncio.get_running_loop()
    wanted: asyncio.Future[None] = loop.create_future()

    def take(data: bytes | None) -> None:
        if data is None and not wanted.done():
            wanted.set_result(None)

    session.hold()
    call = pool.core.copy(sql, session.core, take)
    cut = functools.partial(session.core.end_copy, call, "the block around it has ended")
    session.copies.add(cut)
    task = loop.create_task(_wait_for(call))
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    try:
        await asyncio.wait({wanted, task}, return_when=asyncio.FIRST_COMPLETED)
        if not wanted.done():
            task.result()
            raise ValueError("copy_in is for COPY … FROM STDIN")
        await _send(session, call, task, source)
        return await task
    except BaseException:
        session.core.end_copy(call, "the client has no more data")
        raise
    finally:
        task.cancel()
        session.copies.discard(cut)
        session.copying = None
        session.let_go()


async def _send(
    session: Session, call: PgCall, task: asyncio.Task[int], source: CopySource
) -> None:
    number = 0
    try:
        async for chunk in _chunks(source):
            if task.done():
                # The server has refused a line.
                return
            session.core.copy_data(call, chunk)
            number += 1
            session.copying = _SENDING, number
            await session.drained()
            session.copying = None
    except Exception as error:
        session.core.end_copy(call, _reason(error))
        with contextlib.suppress(PostgresError):
            await task
        raise
    session.core.end_copy(call)
    session.copying = _SENDING, number + 1
    await session.drained()


def _reason(error: Exception) -> str:
    """Why a COPY ends, for the server's log; the caller gets the exception itself, whatever its text is."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # of its own `__str__`
        text = type(error).__name__
    return text[:_REASON_MAX].encode("utf-8", "replace").decode()


async def _chunks(source: CopySource) -> AsyncIterator[bytes]:
    if isinstance(source, str):
        raise TypeError("the data of a COPY is bytes, or rows; got str")
    if isinstance(source, bytes | bytearray | memoryview):
        for piece in _pieces(memoryview(source).cast("B")):
            yield piece
        return
    held = bytearray()
    if isinstance(source, AsyncIterable):
        async for item in source:
            held += _encoded(item)
            if len(held) >= _CHUNK_BYTES:
                full, held = held, bytearray()
                for piece in _pieces(memoryview(full)):
                    yield piece
    else:
        for item in source:
            held += _encoded(item)
            if len(held) >= _CHUNK_BYTES:
                full, held = held, bytearray()
                for piece in _pieces(memoryview(full)):
                    yield piece
    if held:
        yield bytes(held)


def _pieces(view: memoryview) -> Iterator[bytes]:
    """What is sent at once, however much an item is: others get their turn, and the server's pace is kept."""
    for at in range(0, len(view), _PIECE_BYTES):
        yield bytes(view[at : at + _PIECE_BYTES])


def _encoded(item: object) -> bytes:
    if isinstance(item, tuple | list):
        return ("\t".join(map(_field, cast("list[object]", item))) + "\n").encode()
    if isinstance(item, bytes):
        return item
    if isinstance(item, bytearray | memoryview):
        return bytes(cast("bytearray", item))
    raise TypeError(f"the data of a COPY is bytes, or rows; got {type(item).__name__}")


_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_PLAIN = (
    int, float, decimal.Decimal, uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address,
    ipaddress.IPv4Interface, ipaddress.IPv6Interface, ipaddress.IPv4Network, ipaddress.IPv6Network,
)  # fmt: skip


def _field(value: object) -> str:
    """A value in the text format of COPY."""
    return "\\N" if value is None else text_of(value).translate(_ESCAPES)


def text_of(value: object) -> str:
    """A value in the text format of the type that it has in the database.

    Raises:
        TypeError: It has none.
    """
    if isinstance(value, str):
        # Of an enum its value.
        return str.__str__(value.value) if isinstance(value, enum.Enum) else value
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, enum.Enum):
        return text_of(value.value)
    if isinstance(value, _PLAIN):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "\\x" + bytes(cast("bytes", value)).hex()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return infinity.text_of(value)
    if isinstance(value, dt.timedelta):
        # ISO 8601, where each field has its own sign; in other forms one IntervalStyle has one for all.
        return f"P{value.days}DT{value.seconds}.{value.microseconds:06}S"
    if isinstance(value, dict):
        return msgspec.json.encode(cast("object", value)).decode()
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(_element, cast("list[object]", value))) + "}"
    raise TypeError(f"{type(value).__name__} has no text format here: give the row's text")


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    text = text_of(value)
    if isinstance(value, list | tuple):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
