"""A word in a text is taken for what it does there, not for what it looks like (issue 32 C1)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from citius import sqlite
from citius.sqlite.texts import calls, makes_temporary_trigger

TABLES = (
    "CREATE TABLE t (x); CREATE TABLE changes (changes); CREATE TABLE last_insert_rowid (x);"
    "CREATE TABLE seen (kind, number);"
    "CREATE TRIGGER a AFTER INSERT ON t BEGIN INSERT INTO seen VALUES ('t', last_insert_rowid()); END;"
    "CREATE TRIGGER b AFTER INSERT ON changes BEGIN INSERT INTO seen SELECT 'changes', changes(); END;"
    "CREATE TRIGGER c AFTER UPDATE ON changes BEGIN INSERT INTO seen SELECT 'update', changes(); END;"
    "CREATE TRIGGER last_insert_rowid AFTER INSERT ON last_insert_rowid BEGIN "
    "INSERT INTO seen VALUES ('rowid', last_insert_rowid()); END;"
)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRIGGER d AFTER INSERT ON t BEGIN INSERT INTO seen VALUES ('d', changes()); END",
        "CREATE TRIGGER d AFTER INSERT ON t WHEN last_insert_rowid() > 1 BEGIN DELETE FROM t; END",
        "CREATE TRIGGER d AFTER INSERT ON t BEGIN DELETE FROM t WHERE x = 'trigger temp.a'; END",
        "CREATE TRIGGER d AFTER INSERT ON t /* create trigger temp.d */ BEGIN DELETE FROM t; END",
        "CREATE TRIGGER changes AFTER INSERT ON changes BEGIN DELETE FROM seen; END",
        "CREATE VIEW v AS SELECT changes() AS changes",
        "INSERT INTO changes VALUES (1)",
        "INSERT INTO changes (changes) VALUES (2)",
        "INSERT INTO main.changes(changes) VALUES (2)",
        "INSERT INTO changes AS changes (changes) SELECT x FROM t",
        "UPDATE changes SET changes = changes.changes + (changes)",
        "INSERT INTO t VALUES ('last_insert_rowid()')",
        "INSERT INTO t SELECT changes FROM changes -- last_insert_rowid()",
        "INSERT INTO t WITH last_insert_rowid (n) AS (SELECT 1) SELECT n FROM last_insert_rowid",
        "INSERT INTO last_insert_rowid VALUES (1) RETURNING x",
    ],
)
def test_a_word_that_asks_for_nothing_is_taken(path: Path, text: str) -> None:
    """What triggers ask for is what their own statement has done."""

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLES + "INSERT INTO changes VALUES (0); INSERT INTO t VALUES (0);")
            await pool.execute(text)

    asyncio.run(main())


ASKING = ("%s()", "[%s] (*)", '"%s"/* a */(ALL)', "`%s` \ufeff( DISTINCT\n)", "%s--\n()")


@pytest.mark.parametrize("spelling", ASKING)
@pytest.mark.parametrize("function", ["changes", "last_insert_rowid", "TOTAL_CHANGES"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT {}", "WITH a AS (SELECT {} AS n) SELECT n FROM a",
        "INSERT INTO t WITH a AS (SELECT {} AS n) SELECT n FROM a",
        "WITH last_insert_rowid AS (SELECT {} AS n) INSERT INTO t SELECT n FROM last_insert_rowid",
        "INSERT INTO changes (changes) VALUES ({})", "UPDATE changes SET changes = {}",
    ],
)  # fmt: skip
def test_what_asks_for_what_others_have_done_is_refused(
    path: Path, text: str, function: str, spelling: str
) -> None:
    """A ``WITH`` of the statement's own may have the name of a trigger."""
    call = spelling.replace("%s", function)

    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLES + "INSERT INTO changes VALUES (0)")
            for _ in range(2):
                with pytest.raises(sqlite.StatementRefused, match="RETURNING"):
                    await pool.execute(text.format(call))

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TRIGGER temp.d AFTER INSERT ON t BEGIN DELETE FROM t; END",
        "CREATE/**/TRIGGER--\nIF NOT EXISTS 'Temp' . d AFTER INSERT ON t BEGIN DELETE FROM t; END",
        "\ufeffEXPLAIN CREATE \ufeffTRIGGER [TEMP].[d] AFTER INSERT ON t BEGIN DELETE FROM t; END",
    ],
)
def test_no_spelling_makes_a_temporary_trigger(path: Path, text: str) -> None:
    async def main() -> None:
        async with sqlite.Pool(path) as pool:
            await pool.script(TABLES)
            with pytest.raises(sqlite.StatementRefused, match="changes the connection"):
                await pool.execute(text)
            await pool.execute("INSERT INTO t VALUES (1)")
            assert await pool.fetch_value("SELECT count(*) FROM t") == 1

    asyncio.run(main())


def test_words() -> None:
    assert calls("SELECT a.changes, CHANGES ( ) FROM a", "changes")
    for text in (
        "SELECT 'changes()'",
        "changes (x)",
        "SELECT changes, () FROM a",
        "'it''s changes(",
        "",
    ):
        assert not calls(text, "changes")
    assert makes_temporary_trigger("SELECT 1; CREATE TRIGGER `temp`.a")
    for text in ("CREATE TRIGGER temp_a", "CREATE TRIGGER 'a temp.b", "'create trigger temp.a'"):
        assert not makes_temporary_trigger(text)
