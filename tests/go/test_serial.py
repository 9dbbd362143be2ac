"""Serial handlers: greenlets that tasks carry."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import pickle
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from citius import App, ConfigError, serial
from citius.errors import ChannelMisuse
from citius.go import chan, go, select, sleep
from places import run_async
from rig import application, get, wait_for
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

pytest.importorskip("greenlet")

APP = application("serial_app")
SOURCE = (Path(__file__).parents[1] / "applications" / "serial_app.py").read_text()
PATHS = {
    "/thread": {"same": True},
    "/fan-out?n=10": 285,
    "/select": [1, 7, True, None],
    "/iterates": [0, 1, 2, 3, 4],
    "/joins": ["lost", 8, 10],
    "/rows?n=3": [[4], 5],
}


@pytest.fixture
def database(tmp_path: Path) -> dict[str, str]:
    # CPython 3.12.0 to 3.12.3 take the ?1 of a statement for a named parameter, and warn.
    warnings = "error,ignore:Binding 1:DeprecationWarning"
    return {"DATABASE": str(tmp_path / "serial.db"), "PYTHONWARNINGS": warnings}


@pytest.mark.parametrize(
    "options", [(), ("--reactor-threads", "2"), ("--poller", "asyncio"), ("--loop", "asyncio")]
)
def test_a_serial_handler_waits_and_others_are_served(serve, database, options) -> None:
    server = serve(APP, *options, env=database)
    for path, expected in PATHS.items():
        status, body = get(server.port, path)
        assert (status, json.loads(body)) == (200, expected), path
    with ThreadPoolExecutor(8) as threads:
        asked = [f"n{n}" for n in range(40)]
        found = threads.map(lambda name: get(server.port, f"/name/{name}")[1].decode(), asked)
        assert list(found) == [f"{name} {name}" for name in asked]
    assert get(server.port, "/raises")[0] == 500
    wait_for(lambda: "in raises" in server.err and "where it parks" in server.err, "a traceback")


def test_a_client_that_leaves_ends_its_wait(serve, database) -> None:
    server = serve(APP, env=database)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("GET", "/parks?who=one")

    def state() -> dict:
        return json.loads(get(server.port, "/state")[1])

    wait_for(lambda: state()["open"] == 1, "a handler that waits")
    connection.close()
    wait_for(lambda: state() == {"open": 0, "ended": ["one"]}, "its end")


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("/wrong/plain", "_value, _ok = never.recv()"),
        ("/wrong/async", 'pool.sync.fetch_value("SELECT 1")\n'),
        ("/wrong/wait", 'wait(pool.fetch_value("SELECT 1"))'),
    ],
)
def test_a_wait_where_none_is_possible_names_its_line(serve, database, path, line) -> None:
    server = serve(APP, env=database)
    assert get(server.port, path)[0] == 500
    start = SOURCE.index("# --- waits where")
    number = SOURCE[: SOURCE.index(line, start)].count("\n") + 1
    wait_for(lambda: "ChannelMisuse" in server.err, "an error")
    wait_for(lambda: f"serial_app.py:{number})" in server.err, "its place")


@pytest.mark.parametrize("interface", ["asgi", "wsgi"])
def test_applications_of_both_interfaces_name_the_line(serve, database, interface) -> None:
    server = serve(Path(f"{APP}:{interface}"), env=database)
    line = {"asgi": "go(never.recv).join()", "wsgi": "never.send(1)"}[interface]
    assert get(server.port, "/")[0] == 500
    number = SOURCE[: SOURCE.index(line)].count("\n") + 1
    wait_for(lambda: f"serial_app.py:{number})" in server.err, "the place of the wait")


@pytest.mark.parametrize(
    ("path", "line"), [("/wrong/socket", "SELECT 2"), ("/wrong/deferred", "SELECT 3")]
)
def test_sockets_and_deferred_work_name_the_line(serve, database, path, line) -> None:
    server = serve(APP, env=database)
    if path == "/wrong/socket":
        with (
            connect(f"ws://127.0.0.1:{server.port}{path}") as socket,
            pytest.raises(ConnectionClosed),
        ):
            socket.recv(timeout=20)
    else:
        assert get(server.port, path)[0] == 200
    number = SOURCE[: SOURCE.index(line)].count("\n") + 1
    wait_for(lambda: f"serial_app.py:{number})" in server.err, "the place of the wait")


def test_under_gevent_its_greenlets_carry_serial_handlers(serve) -> None:
    pytest.importorskip("gevent")
    server = serve(
        """
import gevent
from citius.go import chan, go, sleep

@app.get("/", serial=True)
def handler() -> list:
    results = chan()
    go(lambda: results.send(type(gevent.getcurrent()).__module__))
    sleep(0.001)
    return list(results.recv())
""",
        "--loop", "gevent",
    )  # fmt: skip
    module, ok = json.loads(get(server.port, "/")[1])
    assert module.startswith("gevent")
    assert ok


def test_a_server_with_many_that_wait_stops(serve, database) -> None:
    server = serve(APP, "--drain-s", "1", env=database)
    connections = []
    for _ in range(200):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/parks")
        connections.append(connection)
    wait_for(lambda: json.loads(get(server.port, "/state")[1])["open"] == 200, "all wait")
    server.stop()
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_operations_lose_and_double_nothing(seed: int) -> None:
    n_senders, n_values = 4, 200

    def handler() -> list[tuple[int, int]]:
        choose = random.Random(seed)
        channels = [chan(choose.choice((0, 0, 1, 3))) for _ in range(4)]
        stop, done, received = chan(), chan(), []

        def send(sender: int) -> None:
            choose = random.Random(100 * seed + sender)
            for number in range(n_values):
                value = (sender, number)
                if choose.random() < 0.4:
                    choose.choice(channels).send(value)
                else:
                    select(*((channel, value) for channel in choose.sample(channels, 2)))
            done.send(None)

        def receive() -> None:
            while (got := select(stop, *channels))[0] != 0:
                received.append(got[1])
            done.send(None)

        for sender in range(n_senders):
            go(lambda sender=sender: send(sender))
        for _ in range(3):
            go(receive)
        for _ in range(n_senders):
            done.recv()
        while len(received) < n_senders * n_values:  # what channels hold
            sleep(0)
        for _ in range(3):
            stop.send(None)
            done.recv()
        return sorted(received)

    async def main() -> None:
        both = await asyncio.gather(*(serial.carried(handler)() for _ in range(2)))
        expected = [(sender, n) for sender in range(n_senders) for n in range(n_values)]
        assert both == [expected, expected]

    run_async(main)


def test_a_cancelled_task_ends_its_greenlet_and_cleans_up() -> None:
    done = []

    def handler() -> None:
        try:
            sleep(60)  # a handler that waits
        except asyncio.CancelledError:
            sleep(0)  # cleaning up may wait
            done.append("cleaned")
            raise

    async def main() -> None:
        task = asyncio.ensure_future(serial.carried(handler)())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await serial.carried(handler)()

    run_async(main)
    assert done == ["cleaned", "cleaned"]


def test_a_coroutine_that_is_closed_ends_its_greenlet() -> None:
    seen: list[str] = []

    def handler() -> None:
        try:
            sleep(60)  # a handler that waits
        finally:
            seen.append("finally")
            with pytest.raises(ChannelMisuse, match="clean up without waiting"):
                sleep(0)
            seen.append("over")

    async def main() -> None:
        coroutine = serial.carried(handler)()
        coroutine.send(None)
        coroutine.close()

    run_async(main)
    assert seen == ["finally", "over"]
    assert not serial.is_serial()


def test_thousands_that_wait_end_with_the_loop() -> None:
    ended = []

    def handler() -> None:
        try:
            chan().recv()
        finally:
            ended.append(1)

    async def main() -> None:
        tasks = [asyncio.ensure_future(serial.carried(handler)()) for _ in range(3000)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)

    asyncio.run(main())
    assert len(ended) == 3000


def test_nothing_is_kept_of_a_call_that_is_over() -> None:
    from greenlet import greenlet

    def count() -> int:
        gc.collect()
        # By its type: a dead weakref.proxy among them has no class to ask for.
        return sum(issubclass(type(one), greenlet) for one in gc.get_objects())

    async def main() -> None:
        def handler(n: int) -> int:
            sleep(0)
            return n

        before = count()
        for n in range(20):
            assert await serial.carried(handler)(n) == n
        assert count() <= before + 1

    run_async(main)


def test_only_the_greenlet_itself_is_serial() -> None:
    """What other tasks of the loop do while one waits is not."""
    places: list[object] = []

    async def main() -> None:
        opened = chan()

        def handler() -> None:
            places.append(serial.is_serial())
            opened.recv()
            places.append(serial.is_serial())

        task = asyncio.ensure_future(serial.carried(handler)())
        await asyncio.sleep(0)
        places.append(serial.is_serial())
        await opened.send(1)
        await task
        places.append(serial.is_serial())

    run_async(main)
    assert places == [True, False, True, False]


def test_a_wait_outside_of_a_serial_handler_is_refused() -> None:
    async def nothing() -> None: ...

    with pytest.raises(ChannelMisuse, match=r"serial=True.*test_serial\.py:\d+\)$"):
        serial.wait(nothing())


def test_the_error_keeps_its_place_when_it_is_pickled() -> None:
    error = ChannelMisuse("no wait here")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert error.place.rpartition(":")[0] == __file__


def test_a_wait_in_a_greenlet_of_other_code_is_refused() -> None:
    from greenlet import greenlet

    def handler() -> None:
        greenlet(lambda: sleep(0)).switch()

    async def main() -> None:
        with pytest.raises(ChannelMisuse, match="other code has started"):
            await serial.carried(handler)()

    run_async(main)


def test_contradictions_are_refused_when_they_are_declared(monkeypatch) -> None:
    app = App()
    with pytest.raises(ConfigError, match="`async def`, which awaits"):

        @app.get("/", serial=True)
        async def waits() -> None: ...

    with pytest.raises(ConfigError, match="blocking=True and serial=True"):

        @app.get("/", serial=True, blocking=True)
        def both() -> None: ...

    serial._greenlet_class.cache_clear()
    monkeypatch.setitem(sys.modules, "greenlet", None)
    with pytest.raises(ConfigError, match=r"pip install citius\[serial\]"):

        @app.get("/", serial=True)
        def without() -> None: ...


def test_goroutines_of_a_serial_handler() -> None:
    """Goroutines of a serial handler are its own: their exceptions come out of ``join``."""

    def handler() -> list[object]:
        def fails() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            go(fails).join()
        channel = chan(1)
        channel.send(3)
        return list(select(channel))

    async def main() -> None:
        assert await serial.carried(handler)() == [0, 3, True]

    run_async(main)
