"""A schema for each tenant, with types of its own (databases, row 24): statements are prepared for each path.

asyncpg#72, pgjdbc#496, npgsql#2055: behind another ``search_path`` a text means other tables and types.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from citius import pg
from pg_rig import Server
from sqlalchemy import URL, text
from sqlalchemy.ext.asyncio import create_async_engine

TENANTS = ("red", "green", "blue")
READ = "SELECT id, state FROM job ORDER BY id"
WRITE = "INSERT INTO job VALUES ($1, $2)"
# How an application says whose schema it is, for the rest of the transaction.
SETS: list[tuple[str, Callable[[str], tuple[Any, ...]]]] = [
    ("literal", lambda tenant: (f"SET LOCAL search_path = {tenant}",)),
    ("schema", lambda tenant: (f"SET LOCAL SCHEMA '{tenant}'",)),
    ("parameter", lambda tenant: ("SELECT set_config('search_path', $1, true)", tenant)),
    ("parameters", lambda tenant: ("SELECT set_config($1, $2, true)", "search_path", tenant)),
    ("session", lambda tenant: (f"SET search_path = {tenant}",)),
    (
        "view",
        lambda tenant: ("UPDATE pg_settings SET setting = $1 WHERE name = 'search_path'", tenant),
    ),
]


async def prepare(pool: pg.Pool) -> None:
    for number, tenant in enumerate(TENANTS):
        await pool.execute(f"DROP SCHEMA IF EXISTS {tenant} CASCADE")
        await pool.execute(f"CREATE SCHEMA {tenant}")
        await pool.execute(f"CREATE TYPE {tenant}.state AS ENUM ('{tenant} new', '{tenant} done')")
        # The same name has another type and another place in each.
        columns = (
            "id int, state {0}.state",
            "id bigint, state {0}.state",
            "id text, state {0}.state",
        )
        await pool.execute(f"CREATE TABLE {tenant}.job ({columns[number].format(tenant)})")


def key_of(tenant: str, number: int) -> object:
    return str(number) if tenant == "blue" else number


@pytest.mark.parametrize("named", [True, False], ids=["named", "nameless"])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("how", SETS, ids=lambda how: how[0])
def test_tenants_take_turns(
    server: Server, how: tuple[str, Callable[[str], tuple[Any, ...]]], size: int, named: bool
) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=size, named_statements=named) as pool:
            await prepare(pool)
            if not named and how[0] in {"session", "view"}:
                # The session is a pooler's.
                with pytest.raises(pg.StatementRefused, match="SET LOCAL"):
                    async with pool.transaction() as tx:
                        await tx.execute(*how[1]("red"))
                return

            async def work(tenant: str, number: int) -> None:
                async with pool.transaction() as tx:
                    await tx.execute(*how[1](tenant))
                    await tx.execute(WRITE, key_of(tenant, number), f"{tenant} new")
                    found = await tx.fetch(READ)
                    assert (key_of(tenant, number), f"{tenant} new") in found
                    assert all(state.startswith(tenant) for _, state in found)

            for number in range(4):
                await asyncio.gather(*(work(tenant, number) for tenant in TENANTS))
            for tenant in TENANTS:
                assert await pool.fetch_value(f"SELECT count(*) FROM {tenant}.job") == 4
            # Behind the blocks names are looked up as before.
            with pytest.raises(pg.ServerError, match='relation "job" does not exist'):
                await pool.fetch(READ)

    asyncio.run(main())


def test_statements_are_sent_before_the_path_is_set(server: Server) -> None:
    """They are started together, and the server comes to them one after the other."""

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await prepare(pool)
            for tenant in (*TENANTS, *TENANTS):
                async with pool.transaction() as tx:
                    calls = (
                        tx.execute(f"SET LOCAL search_path = {tenant}"),
                        tx.fetch_value("SELECT current_schema()::text"),
                        tx.fetch_value("SELECT pg_typeof(state)::text FROM job"),
                        tx.execute("SET LOCAL search_path = public"),
                        tx.fetch_value("SELECT current_schema()::text"),
                    )
                    found = await pg.gather(*calls)
                    assert (found[1], found[4]) == (tenant, "public")

    asyncio.run(main())


def test_a_savepoint_that_is_undone_undoes_the_path(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await prepare(pool)
            kinds = (
                "SELECT pg_typeof(id)::text FROM (SELECT id FROM job UNION ALL SELECT NULL) AS j"
            )
            for _ in range(3):
                async with pool.transaction() as tx:
                    await tx.execute("SET LOCAL search_path = red")
                    assert (await tx.fetch(kinds))[0] == ("integer",)
                    with pytest.raises(LookupError):
                        async with tx.transaction() as inner:
                            await inner.execute("SET LOCAL search_path = blue")
                            assert (await inner.fetch(kinds))[0] == ("text",)
                            raise LookupError
                    assert (await tx.fetch(kinds))[0] == ("integer",)
                    await tx.execute("SAVEPOINT own")
                    await tx.execute("SET LOCAL search_path = green")
                    assert (await tx.fetch(kinds))[0] == ("bigint",)
                    await tx.execute("ROLLBACK TO own")
                    assert (await tx.fetch(kinds))[0] == ("integer",)

    asyncio.run(main())


def test_statements_of_a_path_are_prepared_once(server: Server) -> None:
    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await prepare(pool)

            async def prepared() -> int:
                for tenant in TENANTS:
                    async with pool.transaction() as tx:
                        await tx.execute("SELECT set_config('search_path', $1, true)", tenant)
                        await tx.fetch(READ)
                return await pool.fetch_value(
                    "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%FROM job ORDER%'"
                    " AND NOT statement LIKE '%LIKE%'"
                )

            assert [await prepared() for _ in range(4)] == [3, 3, 3, 3]

    asyncio.run(main())


def alchemy(test: Callable[[Any], Awaitable[None]]) -> Callable[[Server], None]:
    @functools.wraps(test)
    def run(server: Server) -> None:
        query = {"host": str(server.directory), "port": str(server.port)}
        url = URL.create(
            "postgresql+citius", username=server.user, database="postgres", query=query
        )

        async def main() -> None:
            async with pg.Pool(server.dsn, size=1) as pool:
                await prepare(pool)
            engine = create_async_engine(url, pool_size=1, max_overflow=0)
            try:
                await test(engine)
            finally:
                await engine.dispose()

        asyncio.run(main())

    del run.__wrapped__  # pytest would ask for an engine
    return run


@alchemy
async def test_sessions_of_sqlalchemy(engine: Any) -> None:
    """A path that was set stays where it is committed, and goes where it is rolled back."""
    kinds = text("SELECT pg_typeof(id)::text FROM (SELECT id FROM job UNION ALL SELECT NULL) AS j")
    async with engine.connect() as connection:
        for tenant, kind in (("red", "integer"), ("blue", "text"), ("green", "bigint")) * 2:
            await connection.execute(text(f"SET search_path = {tenant}"))
            assert (await connection.execute(kinds)).first() == (kind,)
            await connection.commit()
            assert (await connection.execute(kinds)).first() == (kind,)
            await connection.execute(text("SET LOCAL search_path = blue"))
            assert (await connection.execute(kinds)).first() == ("text",)
            await connection.rollback()
            assert (await connection.execute(kinds)).first() == (kind,)
            await connection.execute(text("SET search_path = blue"))
            assert (await connection.execute(kinds)).first() == ("text",)
            await connection.rollback()
            assert (await connection.execute(kinds)).first() == (kind,)
