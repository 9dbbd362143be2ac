"""A pool under `citius serve`: carried by the reactor, from the lifespan's beginning to its end."""

from __future__ import annotations

import http.client
import socket
import threading

import msgspec
import pytest
import rig
from pg_rig import APP, get
from rig import wait_for


@pytest.mark.parametrize("reactors", ["1", "3"])
def test_requests_side_by_side(serve, server, reactors: str) -> None:
    """Each reactor has sessions of its own, which it carries."""
    serving = serve(APP, "--reactor-threads", reactors, env={"DSN": server.dsn})
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


def test_the_server_is_ready_while_its_database_is(serve, own_server) -> None:
    serving = serve(
        APP, "--workers", "1", "--management", "127.0.0.1:0", env={"DSN": own_server.dsn}
    )
    management = serving.management()

    def ready() -> int:
        return rig.get(management, "/ready")[0]

    wait_for(lambda: ready() == 200, "the first check")
    own_server.stop()
    wait_for(lambda: ready() == 503, "a check that fails")
    own_server.start()
    wait_for(lambda: ready() == 200, "one that passes again")


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
