"""What a statement, a block or a caller that leaves does to a connection is not seen by the next user of it.

The defects of the trials that these tests hold: databases D1, D2, D3, D20; hostile 5e.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest
from citius import ConfigError, sqlite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

SLOW = (
    "INSERT INTO t WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 90000000) "
    "SELECT n FROM c"
)


def stored(path: Path) -> list[object]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT x FROM t ORDER BY rowid")]


async def interrupted(tx: sqlite.Transaction) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            await tx.execute(SLOW)


async def refused(tx: sqlite.Transaction) -> None:
    with contextlib.suppress(sqlite.UniqueViolation):
        await tx.execute("INSERT OR ROLLBACK INTO u VALUES (1)")


@pytest.mark.parametrize("spoil", [interrupted, refused])
@pytest.mark.parametrize("is_nested", [False, True])
def test_nothing_is_executed_behind_the_end_of_a_transaction(
    path: Path, spoil: Callable[[sqlite.Transaction], Awaitable[None]], is_nested: bool
) -> None:
    """databases D1: what followed was committed by itself."""

    async def block(pool: sqlite.Pool) -> None:
        async with pool.transaction() as tx:
            await tx.execute("INSERT INTO t VALUES ('debit')")
            if is_nested:
                async with tx.transaction() as inner:
                    await spoil(inner)
            else:
                await spoil(tx)
            for ask in (tx.execute, tx.fetch):
                with pytest.raises(sqlite.TransactionOver):
                    await ask("INSERT INTO t VALUES ('credit')")
            with pytest.raises(sqlite.TransactionOver):
                await tx.execute_many("INSERT INTO t VALUES ($1)", [("credit",)])
            with pytest.raises(sqlite.TransactionOver):
                async with tx.cursor("INSERT INTO t VALUES ('credit') RETURNING x") as rows:
                    await rows.fetch()

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(
                "CREATE TABLE t (x); CREATE TABLE u (i PRIMARY KEY); INSERT INTO u VALUES (1)"
            )
            with pytest.raises(sqlite.TransactionOver):
                await block(pool)
            assert await pool.execute("INSERT INTO t VALUES ('next')") == 1

    asyncio.run(main())
    assert stored(path) == ["next"]


def test_a_connection_that_comes_too_late_goes_back(path: Path) -> None:
    """databases D2: the caller is cancelled in the turn in which the connection is handed over."""

    async def main() -> None:
        async with sqlite.Pool(path, wait_s=2) as pool:
            await pool.script("CREATE TABLE t (x)")
            busy, done = asyncio.Event(), asyncio.Event()

            async def first() -> None:
                async with pool.transaction():
                    busy.set()
                    await done.wait()

            async def second() -> None:
                async with pool.transaction():
                    raise AssertionError("cancelled before")

            one = asyncio.create_task(first())
            await busy.wait()
            two = asyncio.create_task(second())
            while not pool.queued:
                await asyncio.sleep(0)
            done.set()
            await one
            while pool.queued:
                await asyncio.sleep(0)
            two.cancel()
            await asyncio.wait([two])
            assert await pool.execute("INSERT INTO t VALUES (2)") == 1

    asyncio.run(main())


async def transaction(pool: sqlite.Pool) -> None:
    async with pool.transaction() as tx:
        await tx.execute("INSERT INTO t VALUES (1)")
        async with tx.transaction() as inner:
            await inner.execute("INSERT INTO t VALUES (2)")


async def reading(pool: sqlite.Pool) -> None:
    async with pool.transaction(readonly=True) as tx:
        await tx.fetch("SELECT 1")


async def cursor(pool: sqlite.Pool) -> None:
    async with pool.cursor("SELECT 1 UNION SELECT 2", rows_max=1) as rows:
        async for _ in rows:
            pass


async def many(pool: sqlite.Pool) -> None:
    await pool.execute_many("INSERT INTO t VALUES ($1)", [(1,), (2,)])


@pytest.mark.parametrize("use", [transaction, reading, cursor, many])
def test_a_caller_may_be_cancelled_at_every_await(
    path: Path, use: Callable[[sqlite.Pool], Awaitable[None]]
) -> None:
    """databases D2: cancelled when the task stands at its nth await, before or after the result has come."""

    async def main() -> None:
        async with sqlite.Pool(path, readers=1, wait_s=5) as pool:
            await pool.script("CREATE TABLE t (x)")
            for has_come in (False, True):
                for steps in range(40):
                    task = asyncio.ensure_future(use(pool))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    if has_come:
                        # The loop stands still meanwhile, and the threads do not.
                        threading.Event().wait(0.002)
                    task.cancel()
                    await asyncio.wait([task])
                    assert await pool.execute("INSERT INTO t VALUES (0)") == 1
                    assert await pool.fetch_value("SELECT 1") == 1

    asyncio.run(main())


def test_a_script_leaves_no_transaction_open(path: Path) -> None:
    """databases D3: acknowledged writes of others were lost."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            with pytest.raises(sqlite.SyntaxOrAccessError, match="nope"):
                await pool.script(
                    "BEGIN; INSERT INTO t VALUES ('migration'); INSERT INTO nope VALUES (1); COMMIT"
                )
            assert await pool.execute("INSERT INTO t VALUES ('first')") == 1
            with pytest.raises(sqlite.StatementRefused, match="left a transaction open"):
                await pool.script("BEGIN; INSERT INTO t VALUES ('forgotten')")
            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES ('second')")
            await pool.script("BEGIN; INSERT INTO t VALUES ('third'); COMMIT")

    asyncio.run(main())
    assert stored(path) == ["first", "second", "third"]


CHANGES = [
    "BEGIN", "begin immediate", "/* a */ BEGIN", "-- b\n BEGIN", "COMMIT", "END", "ROLLBACK", "ROLLBACK;",
    "SAVEPOINT a", "RELEASE a", "ROLLBACK TO a", "ROLLBACK TRANSACTION TO SAVEPOINT a",
    "PRAGMA query_only=ON", "PRAGMA query_only(1)", "pragma main.foreign_keys = 0",
    "PRAGMA synchronous = off",
    "PRAGMA journal_mode = DELETE", "PRAGMA locking_mode = EXCLUSIVE", "ATTACH ':memory:' AS other",
    "DETACH other", "CREATE TEMP TABLE a (x)", "CREATE TEMPORARY VIEW a AS SELECT 1",
]  # fmt: skip


@pytest.mark.parametrize("text", CHANGES)
def test_the_pool_refuses_what_changes_a_connection(path: Path, text: str) -> None:
    """hostile 5e."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            asks: list[Callable[[], Any]] = [
                lambda: pool.execute(text),
                lambda: pool.fetch(text),
                lambda: pool.fetch_one(text),
                lambda: pool.fetch_value(text),
                lambda: pool.fetch_json(text),
                lambda: pool.fetch_json_one(text),
                lambda: pool.fetch_many(text, [()]),
                lambda: pool.cursor(text),
            ]
            for ask in asks:
                with pytest.raises(sqlite.StatementRefused, match="others use the connections"):
                    ask()
            with pytest.raises(sqlite.StatementRefused):
                await pool.execute_many("BEGIN", [()])

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    [
        "PRAGMA user_version = 3", "PRAGMA table_info(t)", "PRAGMA foreign_keys",
        "PRAGMA wal_checkpoint(FULL)",
        "EXPLAIN SELECT 1", "SELECT 'BEGIN'", "CREATE TABLE temp_a (x)", "VALUES (1)", "VACUUM",
        "SELECT 'changes()'", "ALTER TABLE t RENAME COLUMN x TO y", "INSERT INTO words VALUES ('a')",
        "INSERT INTO words (words) VALUES ('optimize')", "INSERT INTO watched VALUES (1)",
    ],
)  # fmt: skip
def test_the_pool_takes_what_changes_only_the_database(path: Path, text: str) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(
                "CREATE TABLE t (x); CREATE VIRTUAL TABLE words USING fts5 (x); CREATE TABLE watched (x);"
                "CREATE TRIGGER watch AFTER INSERT ON watched BEGIN "
                "INSERT INTO t VALUES (last_insert_rowid()); END"
            )
            await pool.execute(text)

    asyncio.run(main())


@pytest.mark.parametrize("name", ["test.db", ":memory:", "file::memory:", "file:a?mode=memory"])
def test_what_a_block_changes_of_its_connection_ends_with_it(path: Path, name: str) -> None:
    """hostile 5e: pragmas, attached databases and temporary tables are those of one block.

    Review (list): each connection of a pool with `file::memory:` would have a database of its own.
    """

    async def main() -> None:
        target = path if name == "test.db" else name
        async with sqlite.Pool(target) as pool:
            await pool.script("CREATE TABLE t (x)")
            async with pool.transaction() as tx:
                await tx.execute("CREATE TEMP TABLE own (x)")
                await tx.execute("PRAGMA recursive_triggers = ON")
                assert await tx.fetch_value("PRAGMA recursive_triggers") == 1
            await pool.script("ATTACH ':memory:' AS other; PRAGMA query_only = ON")
            assert await pool.execute("INSERT INTO t VALUES (1)") == 1
            async with pool.transaction() as tx:
                assert await tx.fetch_value("PRAGMA recursive_triggers") == 0
                assert await tx.fetch_value("PRAGMA foreign_keys") == 1
                assert await tx.fetch_value("SELECT count(*) FROM temp.sqlite_master") == 0
                names = [row[1] for row in await tx.fetch("PRAGMA database_list")]
                assert "other" not in names
            assert await pool.fetch_value("SELECT count(*) FROM t") == 1

    asyncio.run(main())


def test_pragmas_hold_for_every_connection(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path, readers=1, pragmas={"cache_size": -4321}) as pool:
            assert await pool.fetch_value("PRAGMA cache_size") == -4321
            async with pool.transaction(readonly=True) as tx:
                assert await tx.fetch_value("PRAGMA cache_size") == -4321

    asyncio.run(main())
    with pytest.raises(ConfigError, match="cache_size"):
        sqlite.Pool(path, pragmas={"cache_size; DROP TABLE t": 1})


def test_a_statement_belongs_to_its_block(path: Path) -> None:
    """Awaited behind the block, it was executed in the transaction that had the connection then."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            async with pool.transaction() as tx:
                kept = tx.execute("INSERT INTO t VALUES ('late')")
            with pytest.raises(sqlite.TransactionOver, match="the block that made this statement"):
                await kept
            async with pool.transaction() as tx:
                kept = tx.execute("INSERT INTO t VALUES ('late')")
            async with pool.transaction() as other:
                with pytest.raises(sqlite.TransactionOver):
                    await kept
                await other.execute("INSERT INTO t VALUES ('own')")

    asyncio.run(main())
    assert stored(path) == ["own"]


def test_savepoints_side_by_side_are_refused(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            async with pool.transaction() as tx:
                async with tx.transaction() as inner:
                    await inner.execute("INSERT INTO t VALUES (1)")
                    with pytest.raises(RuntimeError, match="open already"):
                        await tx.transaction().__aenter__()
                async with tx.transaction() as inner:
                    await inner.execute("INSERT INTO t VALUES (2)")

    asyncio.run(main())
    assert stored(path) == [1, 2]


def test_a_close_that_is_cancelled_leaves_nothing(path: Path) -> None:
    """databases D20."""

    async def main() -> None:
        before = threading.active_count()
        for _ in range(3):
            pool = sqlite.Pool(path)
            await pool.open()
            await pool.fetch("SELECT 1")
            task = asyncio.create_task(pool.close())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await pool.close()
        assert threading.active_count() == before
        for steps in range(6):
            pool = sqlite.Pool(path)
            task = asyncio.create_task(pool.open())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await pool.close()
        assert threading.active_count() == before

    asyncio.run(main())


def test_nan_is_no_parameter(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            with pytest.raises(ValueError, match="NaN"):
                await pool.fetch("SELECT $1", float("nan"))
            assert await pool.fetch_value("SELECT $1", float("inf")) == float("inf")

    asyncio.run(main())


# Spellings that SQLite reads as the same; some are executed while they are prepared.
SPELLINGS = [
    "EXPLAIN PRAGMA foreign_keys = OFF", "EXPLAIN QUERY PLAN PRAGMA query_only = ON",
    "\ufeffPRAGMA query_only=ON", "\ufeffBEGIN", 'PRAGMA "query_only" = ON', "PRAGMA/**/query_only=ON",
    "PRAGMA[query_only]=ON", "PRAGMA `query_only`(1)", 'PRAGMA "main"."query_only"=1',
    "CREATE TABLE temp.a (x)", 'CREATE TABLE IF NOT EXISTS "temp".a (x)', "CREATE VIEW temp.a AS SELECT 1",
    "CREATE/**/TEMP TABLE a (x)", "ATTACH':memory:'AS other", "SAVEPOINT/**/a", "BEGIN/**/",
    "SELECT last_insert_rowid()", "SELECT changes ()", "SELECT total_changes()",
    'SELECT "last_insert_rowid"()', "SELECT last_insert_rowid/**/()", "SELECT [changes]()",
    "SELECT `total_changes` ()", "INSERT INTO t VALUES ([last_insert_rowid]())",
    "WITH a AS (SELECT changes/**/()) SELECT * FROM a", "PRAGMA temp.user_version = 5",
    "PRAGMA temp.application_id(5)", "CREATE TRIGGER temp.a AFTER INSERT ON t BEGIN SELECT 1; END",
    "create trigger/**/if not exists -- a\n'Temp' . a AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE TRIGGER[temp].a AFTER INSERT ON t BEGIN SELECT 1; END",
]  # fmt: skip


@pytest.mark.parametrize("text", SPELLINGS)
@pytest.mark.parametrize("name", ["test.db", ":memory:"])
def test_no_spelling_changes_a_connection(path: Path, name: str, text: str) -> None:
    """hostile 5e, databases D3: what counts is what SQLite does, also if it was allowed in a block before."""

    async def main() -> None:
        async with sqlite.Pool(path if name == "test.db" else name) as pool:
            await pool.script("CREATE TABLE t (x)")
            for _ in range(2):
                for ask in (pool.execute, pool.fetch):
                    with pytest.raises(sqlite.StatementRefused):
                        await ask(text)
                    assert await pool.execute("INSERT INTO t VALUES (1)") == 1
                    assert await pool.fetch_value("PRAGMA foreign_keys") == 1
                with contextlib.suppress(sqlite.SqliteError):
                    async with pool.transaction() as tx:
                        await tx.execute(text)
                        assert await tx.fetch_value("SELECT count(*) FROM temp.sqlite_master") < 2
            async with pool.transaction() as tx:
                assert await tx.fetch_value("SELECT count(*) FROM temp.sqlite_master") == 0
            await pool.execute("VACUUM")

    asyncio.run(main())


@pytest.mark.parametrize("name", ["test.db", ":memory:"])
def test_a_script_leaves_no_temporary_trigger(path: Path, name: str) -> None:
    """hostile 5e, its kind: it would do something for the statements of others."""

    async def main() -> None:
        async with sqlite.Pool(path if name == "test.db" else name) as pool:
            await pool.script(
                "CREATE TABLE t (x); CREATE TRIGGER temp.a AFTER INSERT ON t BEGIN DELETE FROM t; END"
            )
            await pool.execute("INSERT INTO t VALUES (1)")
            assert await pool.fetch("SELECT x FROM t") == [(1,)]

    asyncio.run(main())


def test_a_statement_belongs_to_its_savepoint(path: Path) -> None:
    """hostile 5d for SQLite: made in a savepoint that was undone, awaited in the transaction around it."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            async with pool.transaction() as tx:
                kept = tx.execute("INSERT INTO t VALUES ('never')")
                with contextlib.suppress(ZeroDivisionError):
                    async with tx.transaction() as inner:
                        kept = inner.execute("INSERT INTO t VALUES ('late')")
                        raise ZeroDivisionError
                with pytest.raises(
                    sqlite.TransactionOver, match="the block that made this statement"
                ):
                    await kept
                await tx.execute("INSERT INTO t VALUES ('own')")

    asyncio.run(main())
    assert stored(path) == ["own"]


def test_a_savepoint_whose_end_is_cancelled_is_undone(path: Path) -> None:
    """databases D2: its RELEASE was not executed, and the work of the cancelled block was committed."""

    async def block(tx: sqlite.Transaction) -> None:
        async with tx.transaction() as inner:
            await inner.execute("INSERT INTO t VALUES ('inner')")

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            for steps in range(30):
                async with pool.transaction() as tx:
                    task = asyncio.ensure_future(block(tx))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    task.cancel()
                    await asyncio.wait([task])
                    is_done = not task.cancelled()
                    await tx.execute("DELETE FROM t WHERE x = 'outer'")
                    await tx.execute("INSERT INTO t VALUES ('outer')")
                    # No savepoint is left open, and another one can be opened.
                    await block(tx)
                    count = await tx.fetch_value("SELECT count(*) FROM t WHERE x = 'inner'")
                    assert count >= 1 + is_done
                    await tx.execute("DELETE FROM t")

            release = threading.Event()

            def hold(connection: sqlite3.Connection) -> None:
                release.wait(10)

            async with pool.transaction() as tx:
                savepoint = tx.transaction()
                inner = await savepoint.__aenter__()
                await inner.execute("INSERT INTO t VALUES ('inner')")
                # Its thread is busy: the end is cancelled before it is begun.
                tx.do(hold).start()
                task = asyncio.ensure_future(savepoint.__aexit__(None, None, None))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
                release.set()
                await tx.execute("INSERT INTO t VALUES ('outer')")

    asyncio.run(main())
    assert stored(path) == ["outer"]


def test_a_pool_is_not_used_behind_a_fork(path: Path) -> None:
    """The threads are in the process that has opened it: a statement waited without an end."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            child = os.fork()
            if child == 0:
                try:
                    pool.fetch("SELECT 1").start()
                except RuntimeError as error:
                    os._exit(7 if "before a fork" in str(error) else 1)
                os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            assert await pool.execute("INSERT INTO t VALUES (1)") == 1

    asyncio.run(main())


ENDS = [
    "COMMIT/**/", "END--\n", "COMMIT;--x", "\x0cCOMMIT", "ROLLBACK", "ROLLBACK/**/", "END/**/TRANSACTION",
    "\ufeffCOMMIT", "RELEASE citius_{}", 'RELEASE/**/SAVEPOINT "Citius_{}"', "ROLLBACK TO citius_{}",
]  # fmt: skip


@pytest.mark.parametrize("text", ENDS)
@pytest.mark.parametrize("is_nested", [False, True])
def test_no_spelling_ends_the_transaction_of_a_block(
    path: Path, text: str, is_nested: bool
) -> None:
    """What ends it is judged by SQLite: a comment behind the word had the block stored half."""

    async def block(pool: sqlite.Pool) -> None:
        async with pool.transaction() as tx, tx.transaction() as inner:
            await inner.execute("INSERT INTO t VALUES ('half')")
            own = inner._begin.rpartition("_")[2]
            used = inner if is_nested else tx
            for ask in (used.execute, used.fetch):
                with pytest.raises(sqlite.StatementRefused, match="which the block does"):
                    await ask(text.replace("{}", own))
            raise ZeroDivisionError

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            for _ in range(2):
                with pytest.raises(ZeroDivisionError):
                    await block(pool)
            async with pool.transaction() as tx:
                await tx.execute("SAVEPOINT a")
                await tx.execute("INSERT INTO t VALUES ('undone')")
                await tx.execute("ROLLBACK/**/TO a")
                await tx.execute("RELEASE/**/a")

    asyncio.run(main())
    assert stored(path) == []


@pytest.mark.parametrize("name", ["test.db", ":memory:"])
def test_a_script_is_not_taken_for_the_statement_before_it(path: Path, name: str) -> None:
    """Behind VACUUM its settings stayed; in memory the statement before it was refused from then on."""

    async def main() -> None:
        async with sqlite.Pool(path if name == "test.db" else name) as pool:
            await pool.script(
                "CREATE TABLE p (i PRIMARY KEY); CREATE TABLE c (p REFERENCES p); CREATE TABLE t (x)"
            )
            for before in ("VACUUM", "INSERT INTO t VALUES (1)"):
                await pool.execute(before)
                await pool.script("PRAGMA foreign_keys = OFF; CREATE TEMP TABLE own (x)")
                with pytest.raises(sqlite.ForeignKeyViolation):
                    await pool.execute("INSERT INTO c VALUES (1)")
                with pytest.raises(sqlite.SyntaxOrAccessError, match="own"):
                    await pool.execute("INSERT INTO own VALUES (1)")
                await pool.execute(before)

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    [
        "/**/ SELECT last_insert_rowid() AS /**/ vacuum",
        "/* a */CREATE/**/TEMP TABLE own AS SELECT 1 AS /* b */ vacuum",
        "/* a */PRAGMA/**/foreign_keys = OFF/* b */ vacuum",
        "-- a\n/**/SELECT changes() AS x FROM t --/**/\nvacuum",
    ],
)
def test_what_stands_between_comments_is_not_taken_for_vacuum(path: Path, text: str) -> None:
    """databases D3, its kind: the text from the first comment to the last one counted as one comment."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x)")
            for ask in (pool.execute, pool.fetch):
                with pytest.raises(sqlite.StatementRefused):
                    await ask(text)
            assert await pool.fetch_value("PRAGMA foreign_keys") == 1
            for vacuum in ("/* a /* */ VACUUM", "-- vacuum\n; vacuum", "/**//**/\tVacuum/**/"):
                await pool.execute(vacuum)

    asyncio.run(main())


SETTINGS = [
    ("max_page_count", 20), ("full_column_names", 1), ("short_column_names", 0), ("count_changes", 1),
    ("busy_timeout", 7), ("trusted_schema", 0), ("cache_size", 5), ("temp_store", 2), ("threads", 3),
    ("cell_size_check", 1), ("analysis_limit", 5), ("checkpoint_fullfsync", 1), ("fullfsync", 1),
    ("journal_mode", "OFF"), ("locking_mode", "EXCLUSIVE"), ("query_only", 1), ("synchronous", 0),
    ("foreign_keys", 0), ("recursive_triggers", 1), ("defer_foreign_keys", 1), ("journal_size_limit", 9),
    ("wal_autocheckpoint", 9), ("secure_delete", 2), ("read_uncommitted", 1), ("writable_schema", 1),
    ("cache_spill", 0), ("mmap_size", 4096), ("temp.cache_size", 5), ("reverse_unordered_selects", 1),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "value"), SETTINGS)
@pytest.mark.parametrize("name", ["test.db", ":memory:"])
def test_every_setting_is_undone_or_refused(
    path: Path, name: str, setting: str, value: object
) -> None:
    """Of a database in memory, whose connection is not closed, only some were undone."""

    async def main() -> None:
        async with sqlite.Pool(path if name == "test.db" else name, readers=0) as pool:
            before = await pool.fetch_value(f"PRAGMA {setting}")
            text = f"PRAGMA {setting} = {value}"
            # Prepared once, it is executed again.
            for _ in range(2):
                with contextlib.suppress(sqlite.StatementRefused, sqlite.SyntaxOrAccessError):
                    async with pool.transaction() as tx:
                        await tx.execute(text)
                assert await pool.fetch_value(f"PRAGMA {setting}") == before
                with contextlib.suppress(sqlite.StatementRefused):
                    await pool.script(text)
                assert await pool.fetch_value(f"PRAGMA {setting}") == before

    asyncio.run(main())


def test_case_sensitive_like_of_the_pool_stays() -> None:
    async def main() -> None:
        async with sqlite.Pool(":memory:", pragmas={"case_sensitive_like": 1}) as pool:
            await pool.script("PRAGMA case_sensitive_like = OFF")
            assert await pool.fetch_value("SELECT 'A' LIKE 'a'") == 0

    asyncio.run(main())


@pytest.mark.parametrize("name", ["test.db", ":memory:"])
@pytest.mark.parametrize("limit", ["hard_heap_limit", "soft_heap_limit"])
def test_settings_of_the_process_are_refused(path: Path, name: str, limit: str) -> None:
    async def main() -> None:
        text = f"PRAGMA {limit} = 987654321"
        async with sqlite.Pool(path if name == "test.db" else name) as pool:
            with pytest.raises(sqlite.StatementRefused):
                await pool.execute(text)
            with pytest.raises(sqlite.StatementRefused, match="of the whole process"):
                await pool.script(text)
            async with pool.transaction() as tx:
                with pytest.raises(sqlite.StatementRefused, match="of the whole process"):
                    await tx.execute(text)

    asyncio.run(main())
    with contextlib.closing(sqlite3.connect(":memory:")) as other:
        assert other.execute(f"PRAGMA {limit}").fetchone() == (0,)


def test_a_cursor_of_the_pool_asks_for_nothing_of_others(path: Path) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            for text in ("SELECT [changes]()", 'PRAGMA "query_only" = ON'):
                with pytest.raises(sqlite.StatementRefused):
                    async with pool.cursor(text) as rows:
                        await rows.fetch()
            async with pool.transaction() as tx, tx.cursor("SELECT [changes]()") as own:
                assert len(await own.fetch()) == 1

    asyncio.run(main())


def test_a_batch_in_a_block_is_one_statement(path: Path) -> None:
    """Its first rows stayed if the error of a later one was caught in the block."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script("CREATE TABLE t (x UNIQUE)")
            async with pool.transaction() as tx:
                await tx.execute("INSERT INTO t VALUES (0)")
                with pytest.raises(sqlite.UniqueViolation):
                    await tx.execute_many("INSERT INTO t VALUES ($1)", [(1,), (2,), (1,)])
                with pytest.raises(ValueError, match="NaN"):
                    await tx.execute_many("INSERT INTO t VALUES ($1)", [(3,), (float("nan"),)])
                with pytest.raises(sqlite.UniqueViolation):
                    await tx.fetch_many("INSERT INTO t VALUES ($1) RETURNING x", [(4,), (5,), (4,)])
                async with tx.transaction() as inner:
                    assert await inner.execute_many("INSERT INTO t VALUES ($1)", [(6,), (7,)]) == 2
                    rows = await inner.fetch_many("INSERT INTO t VALUES ($1) RETURNING x", [(8,)])
                    assert rows == [(8,)]

    asyncio.run(main())
    assert stored(path) == [0, 6, 7, 8]


VIEWS = (
    "CREATE TABLE t (x); CREATE TABLE u (x); CREATE VIEW v AS SELECT changes() AS c;"
    "CREATE VIEW w AS SELECT c, last_insert_rowid() AS r FROM v;"
    "CREATE TRIGGER a AFTER INSERT ON t BEGIN INSERT INTO u SELECT changes(); END;"
    "CREATE TRIGGER b AFTER UPDATE ON t WHEN new.x > 0 BEGIN UPDATE u SET x = last_insert_rowid(); END;"
)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM v", "SELECT r FROM w", "SELECT (SELECT count(*) FROM v)",
        "INSERT INTO u SELECT c FROM w", "INSERT INTO t SELECT c FROM v",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM w)", "DELETE FROM t WHERE x IN v",
    ],
)  # fmt: skip
def test_a_view_tells_nothing_of_what_others_have_done(path: Path, text: str) -> None:
    """databases D9, SQLite: ``changes()`` in a view is that of another request."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(VIEWS)
            for _ in range(2):
                with pytest.raises(sqlite.StatementRefused, match="RETURNING"):
                    await pool.execute(text)
            # What triggers ask for is what their own statement has done.
            await pool.execute("INSERT INTO t VALUES (1)")
            await pool.execute("UPDATE t SET x = 2")
            async with pool.transaction() as tx:
                await tx.execute(text)
            with pytest.raises(sqlite.StatementRefused):
                await pool.execute(text)

    asyncio.run(main())
