"""What applications see of a pool: results, errors, transactions, waiting, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import time
from collections import deque

import msgspec
import pytest
from citius import pg
from citius.databases import templates
from citius.errors import ConfigError, HTTPError
from citius.pg.dsn import parse
from pg_rig import pooled


class Item(msgspec.Struct):
    id: int
    name: str


@dataclasses.dataclass
class Other:
    name: str
    id: int = 0


@pooled
async def test_rows_as_tuples_dicts_and_objects(pool) -> None:
    sql = "SELECT g AS id, 'n' || g AS name FROM generate_series(1, $1::int) g"
    assert await pool.fetch(sql, 2) == [(1, "n1"), (2, "n2")]
    assert await pool.fetch(sql, 1, as_=dict) == [{"id": 1, "name": "n1"}]
    assert await pool.fetch(sql, 1, as_=Item) == [Item(1, "n1")]
    assert await pool.fetch(sql, 1, as_=Other) == [Other("n1", 1)]
    assert await pool.fetch(sql, 0) == []
    assert await pool.fetch_one(sql, 2, as_=Item) == Item(1, "n1")
    assert await pool.fetch_one(sql, 0) is None
    assert await pool.fetch_value(sql, 2) == 1
    assert await pool.fetch_value(sql, 0) is None
    assert await pool.fetch_json(sql, 1) == b'[{"id":1,"name":"n1"}]'
    assert await pool.fetch_json(sql, 0, items="items") == b'{"items":[],"count":0}'
    assert await pool.fetch_json_one(sql, 1) == b'{"id":1,"name":"n1"}'
    assert await pool.fetch_json_one(sql, 0) == b"null"
    with pytest.raises(TypeError, match="tuple, dict or a class"):
        pool.fetch(sql, 1, as_="dict")
    with pytest.raises(TypeError):
        await pool.fetch("SELECT 1 AS unknown", as_=Item)


@pooled
async def test_json_columns_with_a_dot_are_members_of_an_object(pool) -> None:
    sql = """SELECT 1 AS id, 4.5::float8 AS "rating.score", 7 AS "rating.count", '["a"]'::json AS tags"""
    assert (
        await pool.fetch_json_one(sql) == b'{"id":1,"rating":{"score":4.5,"count":7},"tags":["a"]}'
    )


@pooled
async def test_rows_longer_than_a_read(pool) -> None:
    text = await pool.fetch_value("SELECT repeat('x', 3000000)")
    assert text == "x" * 3_000_000
    sent = "y" * 5_000_000
    assert await pool.fetch_value("SELECT $1::text", sent) == sent
    rows = await pool.fetch("SELECT g, repeat('z', 100) FROM generate_series(1, 20000) g")
    assert len(rows) == 20_000
    assert rows[-1] == (20_000, "z" * 100)


@pooled
async def test_errors_have_the_fields_of_the_server(pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS fields (id int PRIMARY KEY, n int NOT NULL)")
    assert await pool.execute("INSERT INTO fields VALUES (1, 1)") == 1
    with pytest.raises(pg.UniqueViolation) as caught:
        await pool.execute("INSERT INTO fields VALUES ($1, $1)", 1)
    assert (caught.value.sqlstate, caught.value.table) == ("23505", "fields")
    assert caught.value.constraint == "fields_pkey"
    assert "already exists" in str(caught.value)
    with pytest.raises(pg.NotNullViolation) as nulled:
        await pool.execute("INSERT INTO fields VALUES ($1, $2)", 2, None)
    assert nulled.value.column == "n"
    with pytest.raises(pg.SyntaxOrAccessError) as syntax:
        await pool.fetch("SELECT * FRM fields")
    assert syntax.value.position == 10
    with pytest.raises(pg.ServerError, match="division by zero"):
        await pool.fetch("SELECT 1 / $1::int", 0)
    assert await pool.execute("DELETE FROM fields") == 1


@pooled(size=1)
async def test_an_error_is_that_of_its_own_statement(pool) -> None:
    """Ten statements in one write, every other one fails."""
    calls = [pool.fetch_value("SELECT 10 / $1::int", number % 2) for number in range(10)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(result) for result in results] == [pg.ServerError, int] * 5


@pooled
async def test_parameters_are_no_text(pool) -> None:
    evil = "'; DROP TABLE fields; --"
    assert await pool.fetch_value("SELECT $1::text", evil) == evil
    assert await pool.fetch_value("SELECT $1::text[]", [evil, '"}']) == [evil, '"}']
    with pytest.raises(pg.SyntaxOrAccessError, match="multiple commands"):
        await pool.execute("SELECT 1; SELECT 2")
    with pytest.raises(TypeError, match="2 are given"):
        await pool.fetch("SELECT $1::int", 1, 2)
    with pytest.raises(pg.ProtocolError, match="zero byte"):
        await pool.fetch("SELECT 1 \0")
    with pytest.raises(TypeError, match="str or a t-string"):
        pool.fetch(b"SELECT 1")


class Interpolation:
    def __init__(self, value, expression="x", conversion=None, format_spec="") -> None:
        self.value, self.expression = value, expression
        self.conversion, self.format_spec = conversion, format_spec


def template(strings, *interpolations):
    kind = type("Template", (), {"__module__": "string.templatelib"})
    made = kind()
    made.strings, made.interpolations = strings, interpolations
    return made


def test_what_a_t_string_interpolates_is_a_parameter() -> None:
    made = template(("SELECT ", " + ", ""), Interpolation(1), Interpolation("'; --"))
    assert templates.render(made, ()) == ("SELECT $1 + $2", (1, "'; --"))
    with pytest.raises(TypeError, match="no conversion"):
        templates.render(template(("", ""), Interpolation(1, format_spec=">3")), ())
    with pytest.raises(TypeError, match="further arguments"):
        templates.render(made, (1,))


def test_a_subclass_of_str_is_the_text_that_it_holds() -> None:
    class Loud(str):
        def __str__(self) -> str:
            return "DROP TABLE t"

        def __format__(self, spec: str) -> str:
            return "DROP TABLE t"

    text, arguments = templates.render(Loud("SELECT $1"), (1,))
    assert (type(text), text, arguments) == (str, "SELECT $1", (1,))


@pytest.mark.skipif(sys.version_info < (3, 14), reason="t-strings are of Python 3.14")
def test_t_strings(server) -> None:
    source = 't"SELECT {value}::text"'

    @pooled
    async def test(pool) -> None:
        assert await pool.fetch_value(eval(source, {"value": "'; --"})) == "'; --"

    test(server)


@pooled(size=2)
async def test_transactions_and_savepoints(pool) -> None:
    await pool.execute("DROP TABLE IF EXISTS moves")
    await pool.execute("CREATE TABLE moves (id int PRIMARY KEY)")
    async with pool.transaction(isolation="serializable") as tx:
        assert await tx.fetch_value("SHOW transaction_isolation") == "serializable"
        await tx.execute("INSERT INTO moves VALUES (1)")
        with pytest.raises(pg.UniqueViolation):
            async with tx.transaction() as savepoint:
                await savepoint.execute("INSERT INTO moves VALUES (2)")
                await savepoint.execute("INSERT INTO moves VALUES (1)")
        assert await tx.execute_many("INSERT INTO moves VALUES ($1)", [(3,), (4,)]) == 2
        assert await pool.fetch("SELECT * FROM moves") == []
    assert await pool.fetch("SELECT id FROM moves ORDER BY id") == [(1,), (3,), (4,)]
    with pytest.raises(ZeroDivisionError):
        async with pool.transaction() as tx:
            await tx.execute("DELETE FROM moves")
            1 / 0
    assert await pool.fetch_value("SELECT count(*) FROM moves") == 3
    with pytest.raises(RuntimeError, match="not open"):
        await tx.execute("DELETE FROM moves")
    with pytest.raises(pg.UniqueViolation):
        await pool.execute_many("INSERT INTO moves VALUES ($1)", [(5,), (1,), (6,)])
    assert await pool.fetch_value("SELECT count(*) FROM moves") == 3
    async with pool.transaction(readonly=True) as tx:
        with pytest.raises(pg.ServerError, match="read-only"):
            await tx.execute("DELETE FROM moves")
        await tx._script("ROLLBACK; BEGIN")


@pooled
async def test_one_request_executes_a_statement_with_many_parameters(pool) -> None:
    sql = "SELECT g AS id, 'n' || g AS name FROM generate_series(1, $1::int) g"
    assert await pool.fetch_many(sql, [(1,), [2], (0,)]) == [(1, "n1"), (1, "n1"), (2, "n2")]
    assert await pool.fetch_many(sql, ((n,) for n in (1, 1)), as_=Item) == [Item(1, "n1")] * 2
    assert await pool.fetch_many(sql, []) == []
    numbers = range(2000)
    assert await pool.fetch_many("SELECT $1::int", [(n,) for n in numbers]) == [
        (n,) for n in numbers
    ]
    async with pool.transaction() as tx:
        assert await tx.fetch_many(sql, [(1,)], as_=dict) == [{"id": 1, "name": "n1"}]


@pooled(size=1)
async def test_the_first_of_many_executions_that_fails_undoes_all(pool) -> None:
    await pool.execute("DROP TABLE IF EXISTS many")
    await pool.execute("CREATE TABLE many (id int PRIMARY KEY)")
    insert = "INSERT INTO many VALUES ($1) RETURNING id"
    assert await pool.fetch_many(insert, [(1,), (2,)]) == [(1,), (2,)]
    with pytest.raises(pg.UniqueViolation):
        await pool.fetch_many(insert, [(3,), (1,), (4,)])
    # What Python refuses is not sent in part.
    with pytest.raises(TypeError, match=r"parameter \$1"):
        await pool.fetch_many(insert, [(5,), ("six",)])
    with pytest.raises(TypeError, match=r"rows\[1\]: the statement has 1 parameters"):
        await pool.fetch_many(insert, [(5,), (6, 7)])
    assert await pool.fetch("SELECT id FROM many ORDER BY id") == [(1,), (2,)]


@pooled(size=1)
async def test_a_row_of_parameters_after_the_other(pool) -> None:
    await pool.execute("CREATE TABLE rows (id int, name text)")
    insert = "INSERT INTO rows VALUES ($1, $2)"
    # More than one request takes; each row is a sequence of any kind.
    rows = ((n, str(n)) if n % 2 else deque([n, str(n)]) for n in range(1201))
    assert await pool.execute_many(insert, rows) == 1201
    assert await pool.execute_many(insert, []) == 0
    update = "UPDATE rows SET name = $2 WHERE id < $1"
    assert await pool.execute_many(update, [(3, "a"), (5, "b"), (0, "c")]) == 8
    with pytest.raises(TypeError, match=r"rows\[1\]: parameter \$1: expected int"):
        await pool.execute_many(insert, [(1, "a"), ("x", "b")])
    for row in ("ab", b"ab"):
        with pytest.raises(TypeError, match="tuple or list"):
            await pool.execute_many(insert, [row])
    assert await pool.fetch_value("SELECT count(*) FROM rows") == 1201


@pooled(size=1)
async def test_what_is_no_list_of_parameters_is_refused(pool) -> None:
    for rows, message in (
        (["1"], "tuple or list, got str"),
        ([1], "tuple or list, got int"),
        (7, "not iterable"),
    ):
        with pytest.raises(TypeError, match=message):
            pool.fetch_many("SELECT $1::int", rows)


@pooled(size=1, named_statements=False)
async def test_many_executions_without_a_name(pool) -> None:
    assert await pool.fetch_many("SELECT $1::int + 1", [(1,), (2,)]) == [(2,), (3,)]
    assert await pool.fetch_many("SELECT $1::text", [("a",)]) == [("a",)]


@pooled(size=1)
async def test_a_failed_transaction_is_not_taken_for_committed(pool) -> None:
    with pytest.raises(pg.PostgresError, match="rolled back"):
        async with pool.transaction() as tx:
            with pytest.raises(pg.ServerError):
                await tx.fetch("SELECT 1/0")
    assert await pool.fetch_value("SELECT 1") == 1


@pooled(size=1, queue_max=2, wait_s=0.3)
async def test_an_exhausted_pool_says_so(pool) -> None:
    async with pool.transaction():
        calls = [asyncio.create_task(pool.fetch_value("SELECT 1")) for _ in range(3)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [pg.PoolExhausted] * 3
        assert isinstance(results[0], HTTPError)
        assert results[0].status_code == 503
        messages = sorted(str(result) for result in results)
        assert "2 statements wait" in messages[0]
        assert "no session" in messages[1]
        with pytest.raises(pg.PoolExhausted):
            async with pool.transaction():
                pass
        waiting = asyncio.create_task(pool.fetch_value("SELECT 2"))
        await asyncio.sleep(0)
    assert await waiting == 2
    assert pool.queued == 0


@pooled(size=1, wait_s=60)
async def test_transactions_do_not_always_go_before_statements(pool) -> None:
    is_over = False

    async def transact() -> None:
        while not is_over:
            async with pool.transaction() as tx:
                await tx.execute("SELECT 1")

    tasks = [asyncio.create_task(transact()) for _ in range(4)]
    await asyncio.sleep(0)
    try:
        calls = (pool.fetch_value("SELECT $1::int", number) for number in range(20))
        assert await asyncio.wait_for(pg.gather(*calls), 20) == [*range(20)]
    finally:
        is_over = True
        await asyncio.gather(*tasks)


@pooled(size=1)
async def test_a_cancelled_statement_is_cancelled_on_the_server(pool) -> None:
    """And the session serves on; what stood behind it in the pipeline is done all the same."""
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    slow = asyncio.create_task(pool.fetch("SELECT pg_sleep(60)"))
    await asyncio.sleep(0.05)  # the statements are under way by then
    behind = [asyncio.create_task(pool.fetch_value("SELECT $1::int", n)) for n in range(5)]
    await asyncio.sleep(0.05)  # the statements are under way by then
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    assert await asyncio.wait_for(asyncio.gather(*behind), 10) == [0, 1, 2, 3, 4]
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=1)
async def test_a_cancelled_transaction_is_rolled_back(pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS halves (id int)")

    async def work() -> None:
        async with pool.transaction() as tx:
            await tx.execute("INSERT INTO halves VALUES (1)")
            await tx.fetch("SELECT pg_sleep(60)")

    task = asyncio.create_task(work())
    await asyncio.sleep(0.2)  # the statements are under way by then
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.wait_for(pool.fetch_value("SELECT count(*) FROM halves"), 10) == 0


def test_a_transaction_that_is_cancelled_as_it_begins_or_ends_is_left(server) -> None:
    """What is written after it through the pool is there."""

    async def enter(pool, pause_s: float) -> None:
        async with pool.transaction():
            await asyncio.sleep(pause_s)  # 60: cancelled inside the block; 0: while it is left

    async def main() -> None:
        async with pg.Pool(server.dsn, size=1) as pool:
            await pool.execute("CREATE TABLE IF NOT EXISTS begun (id int)")
            for pause_s in (60, 0):
                for steps in (1, 1, 1, 1, 1, 2, 3, 4, 5):
                    task = asyncio.create_task(enter(pool, pause_s))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
                    assert await pool.execute("INSERT INTO begun VALUES (1)") == 1
                    assert await pool.fetch_value("SELECT pg_current_xact_id_if_assigned()") is None
        async with pg.Pool(server.dsn, size=1) as pool:
            assert await pool.fetch_value("SELECT count(*) FROM begun") == 18

    asyncio.run(asyncio.wait_for(main(), 60))


@pooled(size=1)
async def test_a_statement_that_nobody_awaits_fails_its_transaction(pool) -> None:
    await pool.execute("CREATE TABLE IF NOT EXISTS unseen (id int)")
    with pytest.raises(pg.PostgresError, match="rolled back"):
        async with pool.transaction() as tx:
            await tx.execute("INSERT INTO unseen VALUES (1)")
            tx.fetch_value("SELECT 1/$1::int", 0).start()
    assert await pool.fetch_value("SELECT count(*) FROM unseen") == 0
    assert await pool.execute("INSERT INTO unseen VALUES (1)") == 1
    assert await pool.fetch_value("SELECT count(*) FROM unseen") == 1


@pooled(size=1, wait_s=0.2)
async def test_a_session_that_comes_as_the_wait_ends_is_not_lost(pool) -> None:
    loop = asyncio.get_running_loop()
    session = await pool.acquire()
    waiter = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    loop.call_later(0.05, time.sleep, 0.3)  # the wait ends within it
    loop.call_later(0.1, pool.release, session)
    assert await waiter is session
    pool.release(session)
    assert await pool.fetch_value("SELECT 1") == 1


@pooled(size=2)
async def test_cancellation_at_any_moment_mixes_up_no_rows(pool) -> None:
    async def ask(number: int) -> None:
        for step in range(30):
            value = number * 1000 + step
            sql = "SELECT $1::int, pg_sleep(0.001 * ($1::int % 3))"
            try:
                async with asyncio.timeout(0.0007 * (value % 7)):
                    assert (await pool.fetch_one(sql, value))[0] == value
            except TimeoutError:
                pass

    await asyncio.gather(*(ask(number) for number in range(12)))
    assert await pool.fetch_value("SELECT 1") == 1


@pooled(size=1)
async def test_gather_sends_all_at_once(pool) -> None:
    assert await pg.gather(*(pool.fetch_value("SELECT $1::int", n) for n in range(20))) == [
        *range(20)
    ]
    with pytest.raises(pg.ServerError, match="division"):
        await pg.gather(pool.fetch("SELECT 1/0"), pool.fetch("SELECT 1"))
    with pytest.raises(TypeError, match="statements of a pool"):
        await pg.gather(asyncio.get_running_loop().create_future())


@pooled
async def test_a_call_is_awaited_once(pool) -> None:
    call = pool.fetch_value("SELECT 1")
    assert await call == 1
    with pytest.raises(RuntimeError, match="awaited already"):
        await call


@pooled(size=1)
async def test_a_statement_whose_table_has_changed(pool) -> None:
    await pool.execute("DROP TABLE IF EXISTS shapes")
    await pool.execute("CREATE TABLE shapes AS SELECT 1 AS a")
    assert await pool.fetch("SELECT * FROM shapes") == [(1,)]
    await pool.execute("ALTER TABLE shapes ADD b text")
    # hostile 15: it was an error once for each statement and session.
    assert await pool.fetch("SELECT * FROM shapes") == [(1, None)]


@pooled(size=1)
async def test_a_table_changes_under_statements_side_by_side(pool) -> None:
    """The statement is prepared anew once, not forgotten while that is under way."""
    await pool.execute("DROP TABLE IF EXISTS widened")
    await pool.execute("CREATE TABLE widened AS SELECT 1 AS a")
    assert await pool.fetch("SELECT * FROM widened") == [(1,)]
    await pool.execute("ALTER TABLE widened ADD b int")
    codes: list[str | None] = []

    async def ask() -> list[tuple[int, ...]] | None:
        rows = None
        for _ in range(4):
            rows = None
            try:
                rows = await pool.fetch("SELECT * FROM widened")
            except pg.ServerError as error:
                codes.append(error.sqlstate)
        return rows

    assert await asyncio.gather(*(ask() for _ in range(5))) == [[(1, None)]] * 5
    assert codes == []


@pooled(size=1)
async def test_copy_is_refused_without_harm(pool) -> None:
    assert await pool.execute("COPY (SELECT 1) TO STDOUT") == 1
    process = await pool.fetch_value("SELECT pg_backend_pid()")
    for sql in (
        "COPY pg_description FROM STDIN",
        "/**/copy pg_description from/**/stdout",
        "COPY pg_description FROM STDIN WHERE set_config('a.b', 'c', false) = ''",
    ):
        for ask in (pool.execute, pool.fetch, pool.fetch_json):
            # What stands beside it in the session is another request's.
            first, second, third = await asyncio.gather(
                pool.fetch_value("SELECT 1"),
                ask(sql),
                pool.fetch_value("SELECT 2"),
                return_exceptions=True,
            )
            assert (first, third) == (1, 2)
            assert isinstance(second, pg.StatementRefused)
            assert "copy_in" in str(second)
        with pytest.raises(pg.StatementRefused, match="copy_in"):
            await pool.fetch_many(sql, [()])
        async with pool.transaction() as tx:
            with pytest.raises(pg.StatementRefused, match="copy_in"):
                await tx.execute(sql)
            assert await tx.fetch_value("SELECT 3") == 3
    assert await pool.fetch_value("SELECT pg_backend_pid()") == process


@pooled(size=1)
async def test_more_statements_than_a_session_keeps(pool) -> None:
    for number in range(1010):
        assert await pool.fetch_value(f"SELECT {number}") == number
    assert await pool.fetch_value("SELECT count(*) FROM pg_prepared_statements") < 1001
    assert await pool.fetch_value("SELECT 1") == 1


def test_a_pool_that_is_not_open(server) -> None:
    pool = pg.Pool(server.dsn)
    with pytest.raises(pg.PoolClosed, match="lifespan"):
        pool.fetch("SELECT 1")

    async def main() -> None:
        async with pool:
            call = pool.fetch("SELECT 1")
        with pytest.raises(pg.PoolClosed):
            await call

    asyncio.run(main())
    # Once more, on another loop.
    asyncio.run(main())


def test_a_pool_whose_loop_has_ended_without_closing_it_is_opened_anew(server) -> None:
    pool = pg.Pool(server.dsn, size=1)

    async def leave() -> None:
        await pool.open()
        await pool.transaction().__aenter__()

    async def use() -> object:
        async with pool, pool.transaction() as tx:
            return await tx.fetch_value("SELECT 1")

    asyncio.run(leave())
    assert asyncio.run(use()) == asyncio.run(use()) == 1
    asyncio.run(leave())
    assert pool.sync.fetch_value("SELECT 1") == 1
    pool.sync.close()
    asyncio.run(leave())
    asyncio.run(pool.close())
    assert pool.sessions == 0


def test_dsn() -> None:
    target = parse("postgresql://us%40er:p%3A@db.example:5433/shop?application_name=x", {})
    assert (target.host, target.port, target.user) == ("db.example", 5433, "us@er")
    assert (target.password, target.database) == ("p:", "shop")
    assert target.parameters == (("application_name", "x"),)
    assert "p:" not in repr(target)
    assert parse("postgresql://u:a[b@h/", {}).password == "a[b"
    assert parse("", {"PGHOST": "/run", "PGUSER": "u"}).address == "/run/.s.PGSQL.5432"
    assert parse("host=h user=u password='a b'", {"PGHOST": "i"}).password == "a b"
    for dsn in (
        "mysql://x",
        "postgresql://h:x/",
        "nonsense",
    ):
        with pytest.raises(ConfigError):
            parse(dsn, {})
    with pytest.raises(ConfigError, match="at least 1"):
        pg.Pool("", size=0)


@pytest.mark.parametrize(
    "dsn",
    [
        "app:hunter2@db/shop",
        "postgresql://u:hun/ter2@h/db",
        "postgresql://u:hun@ter2@h/db",
        "password=hunter hunter2",
        "user=u password='hunter2",
    ],
)
def test_no_error_of_a_dsn_shows_a_part_of_the_password(dsn: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(dsn, {})
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)
