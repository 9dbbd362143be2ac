"""A pool under `citius serve`: carried by the reactor, from the lifespan's beginning to its end."""

from __future__ import annotations

import http.client
import socket
import threading

import msgspec
from rig import wait_for

APP = """
    from citius import pg
    pool = pg.Pool(os.environ["DSN"], size=2, wait_s=5, depth=1)
    app = App(lifespan=pool.lifespan)

    @app.get("/one/{id}")
    async def one(id: int) -> dict:
        return await pool.fetch_one("SELECT $1::int AS id, 'n' || $1::int AS name", id, as_=dict)

    @app.get("/rows")
    async def rows() -> Response:
        body = await pool.fetch_json("SELECT g AS id FROM generate_series(1, 3) g", items="items")
        return Response(body, content_type="application/json")

    @app.get("/big")
    async def big() -> dict:
        text = "x" * 3_000_000
        return {"same": await pool.fetch_value("SELECT $1::text || 'y'", text) == text + "y"}

    @app.get("/several")
    async def several() -> list:
        await asyncio.sleep(0.001)
        first = await pg.gather(*(pool.fetch_value("SELECT $1::int", n) for n in range(5)))
        async with pool.transaction() as tx:
            return [*first, await tx.fetch_value("SELECT 5")]

    @app.get("/slow")
    async def slow() -> str:
        await pool.fetch("SELECT pg_sleep(30)")
        return "slept"

    @app.get("/active")
    async def active() -> int:
        return await pool.fetch_value(
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(30)'")

    @app.get("/carried")
    async def carried() -> list:
        return [session._reactor is not None for session in pool._sessions]

    @app.get("/reattach")
    async def reattach() -> str:
        async def move() -> None:
            session = next(iter(pool._sessions))
            print("in a step", file=sys.stderr, flush=True)
            time.sleep(0.5)  # requests of other connections are ready by then
            reactor = session._reactor
            session._move(None)
            session._move(reactor)

        await asyncio.get_running_loop().create_task(move())
        return "moved"

    @app.on_shutdown
    async def late() -> None:
        print("at the end:", await pool.fetch_value("SELECT 'alive'"), file=sys.stderr, flush=True)
"""


def get(server, path: str):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_requests_side_by_side(serve, server) -> None:
    serving = serve(APP, "--workers", "1", env={"DSN": server.dsn})
    assert get(serving, "/one/5") == (200, b'{"id":5,"name":"n5"}')
    assert get(serving, "/rows") == (200, b'{"items":[{"id":1},{"id":2},{"id":3}],"count":3}')
    assert get(serving, "/big") == (200, b'{"same":true}')
    assert get(serving, "/several") == (200, b"[0,1,2,3,4,5]")
    assert set(msgspec.json.decode(get(serving, "/carried")[1])) == {True}
    failures = []

    def ask(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=20)
        for number in range(first, first + 100):
            connection.request("GET", f"/one/{number}")
            body = connection.getresponse().read()
            if body != b'{"id":%d,"name":"n%d"}' % (number, number):
                failures.append((number, body))
        connection.close()

    threads = [threading.Thread(target=ask, args=(1000 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert serving.stop() == 0
    assert "at the end: alive" in serving.err


def test_a_client_that_leaves_cancels_its_statement(serve, server) -> None:
    serving = serve(APP, "--workers", "1", env={"DSN": server.dsn})
    # With one session the other requests would wait behind the slow statement.
    wait_for(lambda: len(msgspec.json.decode(get(serving, "/carried")[1])) == 2, "two sessions")
    with socket.create_connection(("127.0.0.1", serving.port)) as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
        wait_for(lambda: get(serving, "/active")[1] != b"0", "the statement")
    wait_for(lambda: get(serving, "/active")[1] == b"0", "its cancellation")
    assert get(serving, "/one/1")[0] == 200


def test_the_database_is_restarted_under_the_server(serve, own_server) -> None:
    serving = serve(APP, "--workers", "1", env={"DSN": own_server.dsn})
    assert get(serving, "/one/1")[0] == 200
    own_server.stop()
    own_server.start()
    assert get(serving, "/one/2") == (200, b'{"id":2,"name":"n2"}')


def test_a_session_changes_hands_within_a_step_while_requests_are_ready(serve, server) -> None:
    """No request begins inside the step of the task that attaches the session."""
    serving = serve(APP, "--workers", "1", env={"DSN": server.dsn})
    results = []

    def ask(path: str) -> None:
        results.append(get(serving, path)[0])

    threads = [threading.Thread(target=ask, args=("/reattach",))]
    threads[0].start()
    wait_for(lambda: "in a step" in serving.err, "the step")
    for number in range(4):
        threads.append(threading.Thread(target=ask, args=(f"/one/{number}",)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert results == [200] * 5
