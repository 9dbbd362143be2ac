"""Functions of the application that are called while a session is read: they break nothing for others.

The kind of review B3: code that is called back in the middle.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from citius import ConfigError, pg
from citius.pg import Pool
from pg_rig import Server, pooled

if TYPE_CHECKING:
    from collections.abc import Callable

SUM = "SELECT sum(x) FROM generate_series(1, 10) AS x"


class Money:
    """A codec whose functions do what the test says."""

    def __init__(self) -> None:
        self.act: Callable[[], object] = lambda: None

    def encode(self, value: Any) -> str:
        self.act()
        return str(value)

    def decode(self, text: str) -> str:
        self.act()
        return text

    def codec(self) -> pg.Codec[Any]:
        return pg.Codec("money", encode=self.encode, decode=self.decode)


def raises(error: BaseException) -> Callable[[], object]:
    def act() -> None:
        raise error

    return act


@pytest.mark.parametrize("ending", [StopIteration(3), StopAsyncIteration()])
@pytest.mark.parametrize("sql", ["SELECT 5::money", "SELECT $1::money::text"])
def test_the_end_of_an_iterator_in_a_codec_is_no_result(
    server: Server, ending: BaseException, sql: str
) -> None:
    """The call had the value of the `StopIteration` as its result, and a loop over a cursor ended early."""
    money = Money()

    async def main() -> None:
        async with Pool(server.dsn, size=1, codecs=[money.codec()]) as pool:
            money.act = raises(ending)
            arguments = ("1",) if "$1" in sql else ()
            with pytest.raises((RuntimeError, ValueError)):
                await pool.fetch_value(sql, *arguments)
            with pytest.raises((RuntimeError, ValueError)):
                async with pool.cursor(sql, *arguments) as rows:
                    async for _ in rows:
                        pass
            with pytest.raises((RuntimeError, ValueError)):
                await asyncio.to_thread(pool.sync.fetch_value, sql, *arguments)
            assert await pool.fetch_value(SUM) == 55

    asyncio.run(main())


def test_a_codec_that_closes_its_session_or_calls_the_pool(server: Server) -> None:
    """A session that was closed while it was read stayed in the pool, whose statements waited for ever."""
    money = Money()

    async def main() -> None:
        async with Pool(server.dsn, size=1, codecs=[money.codec()]) as pool:

            def close() -> None:
                for session in pool.open_sessions:
                    session.close()

            async def look() -> None:
                found = await asyncio.gather(*(pool.fetch_value(SUM) for _ in range(20)))
                assert found == [55] * 20
                async with pool.transaction() as tx:
                    assert await tx.fetch_value(SUM) == 55

            started: list[Any] = []

            def call() -> None:
                started.append(pool.fetch_value(SUM))
                started[-1].start()

            task: asyncio.Task[Any]
            for act in (close, call, lambda: task.cancel(), raises(asyncio.CancelledError())):
                for sql, arguments in (("SELECT 5::money", ()), ("SELECT $1::money::text", ("1",))):
                    money.act = act
                    task = asyncio.ensure_future(pool.fetch_value(sql, *arguments))
                    await asyncio.wait([task], timeout=10)
                    assert task.done()
                    if not task.cancelled():
                        task.exception()
                    money.act = lambda: None
                    await look()
            assert [await one for one in started] == [55] * len(started)

    asyncio.run(main())


@pytest.mark.parametrize("error", [ValueError("gap"), asyncio.CancelledError()])
def test_a_listener_outlives_its_on_gap(server: Server, error: BaseException) -> None:
    """The task that listens ended, and with it the listener."""
    gaps = 0

    def on_gap() -> None:
        nonlocal gaps
        gaps += 1
        raise error

    async def main() -> None:
        async with (
            Pool(server.dsn, size=1) as pool,
            pool.listen("gaps", queue_max=2, on_gap=on_gap) as notifications,
        ):
            iterator = aiter(notifications)
            waiting = asyncio.ensure_future(anext(iterator))
            await asyncio.sleep(0)  # it waits
            await pool.execute("SELECT pg_notify('gaps', x::text) FROM generate_series(1, 4) AS x")
            assert (await waiting).payload in ("1", "3")
            while (await anext(iterator)).payload != "4":
                pass
            assert notifications.dropped == gaps > 0
            before = gaps
            await pool.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            )
            async with asyncio.timeout(20):
                while gaps == before:
                    await asyncio.sleep(0.01)
                await pool.execute("SELECT pg_notify('gaps', 'late')")
                assert (await anext(iterator)).payload == "late"

    asyncio.run(main())


@pooled(size=1)
async def test_a_function_that_would_not_be_awaited_is_refused(pool: Pool) -> None:
    async def later(*_: object) -> None: ...

    with pytest.raises(ConfigError, match="on_gap is called without await"):
        pool.listen("a", on_gap=later)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="on_notice is called without await"):
        Pool("", on_notice=later)


def test_a_notice_is_told_whatever_the_function_raises(server: Server) -> None:
    heard: list[str] = []

    def on_notice(notice: pg.ServerError) -> None:
        heard.append(notice.message)
        raise asyncio.CancelledError

    async def main() -> None:
        async with Pool(server.dsn, size=1, on_notice=on_notice) as pool:
            await pool.execute("DO $$BEGIN RAISE NOTICE 'a'; RAISE WARNING 'b'; END$$")
            assert await pool.fetch_value(SUM) == 55
        assert heard == ["a", "b"]

    asyncio.run(main())
