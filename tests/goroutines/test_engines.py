"""Compiled handlers call Redis and PostgreSQL, which refuse, are slow, hang, die, and come back."""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import secrets
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import pg_rig
import pytest
import redis_rig
from citius import pg
from goroutines_rig import failure
from rig import Server, application, wait_for

HERE = Path(__file__).parent
RESET, TIMEOUT, MISUSE, REFUSED, NOT_OPEN = 3, 9, 11, 12, 14


def start(library: Path, redis: str, dsn: str, *options: str, **environment: str) -> Server:
    """The application with handlers of the library."""
    variables = {"LIBRARY": str(library), "REDIS": redis, "DSN": dsn, **environment}
    target = str(application("engines_app"))
    made = Server([target, "--port", "0", *options], variables, library.parent)
    return made.wait_ready()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = HERE.parent / "compiled/conftest.py"
    spec = importlib.util.spec_from_file_location("conftest_c", place)
    assert spec is not None
    assert spec.loader is not None
    conftest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(conftest)
    return conftest.build(HERE / "engines.c", tmp_path_factory.mktemp("engines") / "engines.so")


@pytest.fixture(scope="module")
def redis() -> Iterator[redis_rig.Server]:
    if redis_rig.SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    made = redis_rig.Server()
    made.start()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def database() -> Iterator[pg_rig.Server]:
    binaries = pg_rig.find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    made = pg_rig.Server(binaries)
    made.start()
    yield made
    made.remove()


@pytest.fixture(scope="module", params=["one reactor", "two reactors", "asyncio"])
def served(
    request: pytest.FixtureRequest,
    library: Path,
    redis: redis_rig.Server,
    database: pg_rig.Server,
) -> Iterator[Server]:
    options = {
        "one reactor": [],
        "two reactors": ["--reactor-threads", "2"],
        "asyncio": ["--loop", "asyncio"],
    }[request.param]
    server = start(library, redis.url, database.dsn, *options)
    yield server
    server.kill()


@pytest.fixture(params=["", "/pool"])
def on(request: pytest.FixtureRequest) -> str:
    """Where the goroutine runs: on the reactor, or on the compiled threads."""
    return request.param


def post(server: Server, path: str, *lines: str, **query: object) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.request("POST", f"{path}?{urlencode(query)}", "\n".join(lines).encode())
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    assert response.status == 200, (response.status, text, server.err)
    return text


# --- Redis ------------------------------------------------------------------------------------------


def test_replies_are_what_they_are(served: Server, on: str) -> None:
    def say(*words: str) -> str:
        return post(served, f"{on}/redis", *words)

    assert say("FLUSHALL") == "$OK"
    assert say("GET", "none") == "nil"
    assert say("SET", "k", "é \r\0 x") == "$OK"
    assert say("GET", "k") == "$é \r\0 x"
    assert say("SET", "empty", "") == "$OK"
    assert say("GET", "empty") == "$"
    assert say("INCRBY", "n", "-5") == ":-5"
    assert say("RPUSH", "list", "a", "b") == ":2"
    assert say("LRANGE", "list", "0", "-1") == "[$a $b]"
    assert say("LRANGE", "no", "0", "-1") == "[]"
    assert say("HSET", "h", "f", "1") == ":1"
    assert say("HGETALL", "h") == "{$f $1}"
    assert say("ZADD", "z", "1.5", "m") == ":1"
    assert say("ZSCORE", "z", "m") == ",1.5"
    assert say("SADD", "s", "one") == ":1"
    assert say("SMEMBERS", "s") == "[$one]"
    assert say("MGET", "none", "empty") == "[nil $]"
    large = "x" * 300_000
    assert say("SET", "large", large) == "$OK"
    assert say("GET", "large") == "$" + large
    assert say("EVAL", "return {1, {2, {err='NO no'}}}", "0") == "[:1 [:2 -NO no]]"


def test_errors_of_redis_have_their_text(served: Server, on: str) -> None:
    assert post(served, f"{on}/redis", "SET", "text", "t") == "$OK"
    assert failure(post(served, f"{on}/redis", "INCR", "text")) == (
        500, REFUSED, "ERR value is not an integer or out of range",
    )  # fmt: skip
    code, reason, why = failure(post(served, f"{on}/redis", "LPUSH", "text", "x"))
    assert (code, reason) == (500, REFUSED)
    assert why.startswith("WRONGTYPE ")


def test_what_cannot_be_sent_is_a_mistake(served: Server, on: str) -> None:
    code, reason, why = failure(post(served, f"{on}/redis", "SUBSCRIBE", "news"))
    assert (code, reason) == (2, MISUSE)
    assert "SUBSCRIBE is not sent by this client" in why
    code, reason, why = failure(post(served, f"{on}/redis"))
    assert (code, reason, why) == (2, MISUSE, "a command and its arguments were expected")


def test_goroutines_share_a_connection(served: Server, on: str) -> None:
    assert post(served, f"{on}/redis", "DEL", "many").startswith(":")
    assert post(served, f"{on}/many", n=200) == "0"
    assert post(served, f"{on}/redis", "GET", "many") == "$200"


def test_a_command_may_wait_while_others_go_on(served: Server, on: str) -> None:
    assert post(served, f"{on}/redis", "DEL", "queue").startswith(":")
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(post, served, f"{on}/redis", "BLPOP", "queue", "0")
        assert post(served, f"{on}/redis", "PING") == "$PONG"
        assert post(served, f"{on}/redis", "RPUSH", "queue", "it") == ":1"
        assert waiting.result(20) == "[$queue $it]"


def test_a_deadline_ends_a_command(served: Server, redis: redis_rig.Server, on: str) -> None:
    assert post(served, f"{on}/redis", "DEL", "nothing").startswith(":")
    late = post(served, f"{on}/redis", "BLPOP", "nothing", "0", timeout_ms=50)
    assert failure(late)[:2] == (504, TIMEOUT)
    # Its connection was closed: once Redis has seen that, what comes is not lost.
    wait_for(lambda: b"cmd=blpop" not in redis.say("CLIENT", "LIST"), "that it is given up")
    assert post(served, f"{on}/redis", "RPUSH", "nothing", "kept") == ":1"
    assert post(served, f"{on}/redis", "LRANGE", "nothing", "0", "-1") == "[$kept]"


def test_without_serial_nothing_is_sent(served: Server) -> None:
    assert post(served, "/redis", "DEL", "turn").startswith(":")
    for name, lines in (("redis", ("SET", "turn", "1")), ("pg", ("SELECT 1",))):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request("POST", f"/turn/{name}", "\n".join(lines))
        assert connection.getresponse().status == 500
        connection.close()
    assert post(served, "/redis", "GET", "turn") == "nil"
    wait_for(lambda: "serial=True" in served.err, "the log says what to change")


def test_a_server_that_hangs_dies_and_comes_back(
    library: Path, database: pg_rig.Server, on: str
) -> None:
    own = redis_rig.Server(listens=True)
    own.start()
    server = start(library, own.url, database.dsn)
    try:
        assert post(server, f"{on}/redis", "PING") == "$PONG"
        own.pause()
        assert failure(post(server, f"{on}/redis", "PING", timeout_ms=50))[:2] == (504, TIMEOUT)
        own.resume()
        assert post(server, f"{on}/redis", "ECHO", "again") == "$again"
        with ThreadPoolExecutor(1) as threads:
            lost = threads.submit(post, server, f"{on}/redis", "BLPOP", "q", "0", timeout_ms=-1)
            wait_for(lambda: b"cmd=blpop" in own.say("CLIENT", "LIST"), "the command")
            own.stop()
            assert failure(lost.result(20))[:2] == (502, RESET)
        own.start()
        found: list[str] = []

        def is_back() -> bool:
            found.append(post(server, f"{on}/redis", "PING", timeout_ms=1000))
            return found[-1] == "$PONG"

        wait_for(is_back, "Redis")
    finally:
        server.kill()
        own.remove()


def test_a_name_that_nothing_has(library: Path, redis: redis_rig.Server) -> None:
    server = start(library, redis.url, "", CLOSED="1")
    try:
        for on in ("", "/pool"):
            code, reason, why = failure(post(server, f"{on}/pg", "SELECT 1"))
            assert (code, reason) == (2, MISUSE)
            assert "citius_pg_find has found none" in why
            # It has a name, and is not open.
            code, reason, why = failure(post(server, f"{on}/redis", "PING"))
            assert (code, reason) == (502, NOT_OPEN), why
            assert "lifespan" in why
    finally:
        server.kill()


def test_what_can_be_shared() -> None:
    from citius.go import chan, share

    with pytest.raises(
        TypeError, match="a channel, a citius.redis.Redis or a citius.pg.Pool, got int"
    ):
        share("x", 3)  # pyright: ignore[reportArgumentType]
    share("x", chan(type=int))
    share("x", None)


# --- PostgreSQL ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    ["BEGIN", "\t begin isolation level serializable", "START TRANSACTION", "commit;", "END", "Rollback",
     "ABORT", "SAVEPOINT a", "RELEASE a", ";BEGIN", "/* a /* b */ * / */BEGIN", "-- a\rBEGIN",
     "/**/ -- a\r/*-- */ ;\tEND"],
)  # fmt: skip
def test_a_session_that_others_share_begins_no_transaction(
    served: Server, on: str, sql: str
) -> None:
    code, reason, why = failure(post(served, f"{on}/pg", sql.replace("\t", " ")))
    assert (code, reason) == (2, MISUSE)
    assert "pool.transaction()" in why


@pytest.mark.parametrize(
    "sql",
    ["COPY item FROM STDIN", "copy (SELECT 1) TO STDOUT", "LISTEN a", "/**/unlisten *",
     "DECLARE a CURSOR WITH HOLD FOR SELECT 1",
     # What a session would keep, as in tests/pg/test_session_state.py (databases D1, hostile 5).
     "SET work_mem = '9MB'", "/* a */ set role pg_monitor", "RESET ALL", "DISCARD ALL", "LOAD 'plpgsql'",
     "SELECT set_config('a.b', '1', false)", "SELECT pg_advisory_lock(1)", 'SELECT "pg_advisory_lock"(1)',
     "CREATE TEMP TABLE scratch (a int)", "SELECT 1 INTO TEMP scratch",
     "CREATE TABLE pg_temp.scratch (a int)",
     "WITH a AS (SELECT set_config('a.b', '1', false)) SELECT * FROM a", "PREPARE a AS SELECT 1",
     "DEALLOCATE ALL",
     "EXPLAIN ANALYZE SELECT set_config('a.b', '1', false)", "SELECT setseed(0.5)", "SELECT lastval()",
     "UPDATE pg_settings SET setting = '9MB' WHERE name = 'work_mem'", "SELECT dblink_connect('a', 'b')"],
)  # fmt: skip
def test_what_needs_a_session_of_its_own_is_refused(served: Server, on: str, sql: str) -> None:
    code, reason, why = failure(post(served, f"{on}/pg", sql))
    assert (code, reason) == (2, MISUSE)
    assert "pool.copy_in()" in why


STATE = (
    "SELECT current_setting('work_mem') AS a, current_user = session_user AS b,"
    " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS c,"
    " to_regclass('pg_temp.scratch') IS NULL AS d"
)


def test_what_code_has_changed_is_undone_behind_it(served: Server, on: str) -> None:
    before = post(served, f"{on}/pg", STATE)
    code = (
        "DO $$ BEGIN PERFORM set_config('work_mem', '9MB', false); PERFORM pg_advisory_lock(1);"
        " CREATE TEMP TABLE scratch (a int); SET ROLE pg_monitor; END $$"
    )
    for _ in range(8):  # whichever session has it
        post(served, f"{on}/pg", code)
        assert post(served, f"{on}/pg", STATE) == before


def test_comments_do_not_make_a_statement_another(served: Server, on: str) -> None:
    for sql in ("/* BEGIN */ SELECT 1 AS a", "-- BEGIN\rSELECT 1 AS a", ";SELECT 1 AS a -- END"):
        assert post(served, f"{on}/pg", sql) == "1 a\n1 i1"
    # What never ends is the server's to refuse.
    assert failure(post(served, f"{on}/pg", "/* BEGIN"))[:2] == (500, REFUSED)


def test_one_statement_changes_several_tables_or_none(served: Server, on: str) -> None:
    def query(*lines: str) -> str:
        return post(served, f"{on}/pg", *lines)

    name = f"moved_{secrets.token_hex(8)}"
    query(f"CREATE TABLE {name} (place text, count int CHECK (count >= 0))")
    query(f"INSERT INTO {name} VALUES ('from', 5), ('to', 0)")
    move = (
        f"WITH taken AS (UPDATE {name} SET count = count - $1 WHERE place = 'from' RETURNING 1) "
        f"UPDATE {name} SET count = count + $1 WHERE place = 'to' AND EXISTS (SELECT 1 FROM taken)"
    )
    assert query(move, "i3") == "1"
    assert failure(query(move, "i3"))[:2] == (500, REFUSED)
    counts = f"SELECT string_agg(count::text, ',' ORDER BY place) AS c FROM {name}"
    assert query(counts) == "1 c\n2,3"


def test_values_of_all_types_are_text_and_numbers(served: Server, on: str) -> None:
    def query(*lines: str) -> str:
        return post(served, f"{on}/pg", *lines)

    assert query("SELECT 1 AS a, NULL::int AS b, 'é' AS c") == "1 a b c\n1 i1|NULL|é"
    assert query("SELECT $1::int8 AS n", "i-7") == "1 n\n-7 i-7"
    assert query("SELECT $1::int2 + 1 AS n", "i7") == "1 n\n8 i8"
    assert query("SELECT $1::float8 AS r", "r10") == "1 r\n2.5 r2.5"
    assert query("SELECT $1::numeric AS r", "i12345678901234567") == (
        "1 r\n12345678901234567 i12345678901234567"
    )
    assert query("SELECT $1::text IS NULL AS x", "n") == "1 x\nt"
    assert query("SELECT $1::date AS d, $2::int[] AS a", "t2026-11-25", "t{1,2}") == (
        "1 d a\n2026-11-25|{1,2}"
    )
    assert query("SELECT $1::bytea AS b, length($1::bytea) AS n", "b\\x00") == "1 b n\n\\x00|4 i4"
    assert query("SELECT '{\"a\": 1}'::jsonb AS j, true AS t") == '1 j t\n{"a": 1}|t'
    assert query("SELECT 1 WHERE false") == "0 ?column?"
    assert query("SELECT g FROM generate_series(1, 3) AS g") == "3 g\n1 i1\n2 i2\n3 i3"
    assert query("SELECT repeat('x', 300000) AS x") == "1 x\n" + "x" * 300_000


def test_statements_change_rows(served: Server, on: str) -> None:
    def query(*lines: str) -> str:
        return post(served, f"{on}/pg", *lines)

    query("DROP TABLE IF EXISTS native")
    assert query("CREATE TABLE native (id int PRIMARY KEY, name text)") == "0"
    assert query("INSERT INTO native VALUES ($1, $2), (2, 'two')", "i1", "tone") == "2"
    assert query("UPDATE native SET name = $1 WHERE id = $2", "n", "i1") == "1"
    assert query("SELECT * FROM native ORDER BY id") == "2 id name\n1 i1|NULL\n2 i2|two"
    assert query("INSERT INTO native VALUES (3, 'three') RETURNING id") == "1 id\n3 i3"


def test_errors_of_postgres_begin_with_their_code(served: Server, on: str) -> None:
    def fails(*lines: str) -> tuple[int, int, str]:
        return failure(post(served, f"{on}/pg", *lines))

    assert fails("SELECT 1 / 0") == (500, REFUSED, "22012 division by zero")
    code, reason, why = fails("SELEC 1")
    assert (code, reason, why[:6]) == (500, REFUSED, "42601 ")
    code, reason, why = fails("SELECT $1::int", "tnot a number")
    assert (code, reason, why[:6]) == (500, REFUSED, "22P02 ")
    assert fails("SELECT $1::int") == (
        2, MISUSE, "the statement has 1 parameters ($1 to $1), and 0 are given",
    )  # fmt: skip
    assert post(served, f"{on}/pg", "SELECT 1 AS a") == "1 a\n1 i1"


def test_statements_at_once(served: Server, on: str) -> None:
    with ThreadPoolExecutor(16) as threads:
        sent = [
            threads.submit(post, served, f"{on}/pg", "SELECT $1::int8 AS n", f"i{n}")
            for n in range(64)
        ]
        assert [one.result(30) for one in sent] == [f"1 n\n{n} i{n}" for n in range(64)]


def running(database: pg_rig.Server, mark: str) -> int:
    """Statements with this mark in them that the server is executing."""

    async def count() -> int:
        async with pg.Pool(database.dsn, size=1) as pool:
            return await pool.fetch_value(
                "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE $1 "
                "AND pid <> pg_backend_pid()",
                f"%{mark}%",
            )

    return asyncio.run(count())


def test_a_deadline_cancels_a_statement_and_keeps_the_pool(
    served: Server, database: pg_rig.Server, on: str
) -> None:
    for _ in range(3):
        late = post(served, f"{on}/pg", "SELECT pg_sleep(100) /* deadline */", timeout_ms=100)
        assert failure(late)[:2] == (504, TIMEOUT)
    wait_for(lambda: running(database, "deadline") == 0, "the end of the statements")
    assert post(served, f"{on}/pg", "SELECT 1 AS a") == "1 a\n1 i1"


def test_a_client_that_leaves_cancels_its_statement(
    served: Server, database: pg_rig.Server, on: str
) -> None:
    body = b"SELECT pg_sleep(100) /* left */"
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(
            f"POST {on}/pg?timeout_ms=-1 HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        wait_for(lambda: running(database, "left") == 1, "the statement")
    wait_for(lambda: running(database, "left") == 0, "its end")
    assert post(served, f"{on}/pg", "SELECT 1 AS a") == "1 a\n1 i1"


def test_a_session_that_is_ended_is_made_again(served: Server, on: str) -> None:
    code, reason, _ = failure(
        post(served, f"{on}/pg", "SELECT pg_terminate_backend(pg_backend_pid())")
    )
    assert code in (500, 502)
    assert reason in (REFUSED, RESET)

    def is_back() -> bool:
        return post(served, f"{on}/pg", "SELECT 1 AS a", timeout_ms=1000) == "1 a\n1 i1"

    wait_for(is_back, "PostgreSQL")
