"""The Cython face: pygolang's manner, over citius.h. One module is built for all tests."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import importlib.util
import logging
import subprocess
import sys
import sysconfig
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any

import citius
import pg_rig
import pytest
import redis_rig
from citius import App
from citius.errors import ChannelClosed, ChannelMisuse, GoPanic
from citius.go import chan, share
from citius.pg import Pool
from citius.redis import Redis
from citius.testing import AsyncClient, Client
from rig import wait_for

pytest.importorskip("Cython")

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def module_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cython")
    package = str(Path(citius.__file__).parents[1])
    made = subprocess.run(
        [sys.executable, "-m", "cython", "-3", "--cplus", "-I", package,
         "-o", directory / "green.cpp", HERE / "green.pyx"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    library = directory / f"green{sysconfig.get_config_var('EXT_SUFFIX')}"
    built = subprocess.run(
        ["g++", "-O1", "-Wall", "-Wno-unused-function", "-shared", "-fPIC", f"-I{citius.get_include()}",
         f"-I{sysconfig.get_path('include')}", directory / "green.cpp", "-o", library],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return library


@pytest.fixture(scope="session")
def green(module_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("green", module_path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[False, True], ids=["reactor", "pool"])
def client(request: pytest.FixtureRequest, green: Any) -> Client:
    app = App()
    for name in ("squares", "log_all", "fails", "waits_with_gil", "waits_after_gil", "panics_in_handler",
                 "fan_out", "exceptions", "once", "waits", "calls", "passes",
                 "strange_sleeps"):  # fmt: skip
        app.get(f"/{name}", compiled=getattr(green, name), serial=True, pool=request.param)
    app.get(
        "/raises", compiled=green.__pyx_capi__["raises_in_handler"], serial=True, pool=request.param
    )
    green.LOG.clear()
    return Client(app, raise_errors=False)


@pytest.mark.parametrize("capacity", [0, 3])
def test_channels_and_goroutines_without_a_server(green: Any, capacity: int) -> None:
    assert green.sum_of_squares(100, capacity) == 328350


def test_goroutines_start_elsewhere_when_the_reactor_of_the_thread_is_over(green: Any) -> None:
    app = App()
    app.get("/")(lambda: "here")

    async def main() -> AsyncClient:
        client = AsyncClient(app)
        assert (await client.get("/")).text == "here"
        return client

    # It is kept, and not closed.
    client = asyncio.run(main())
    assert green.sum_of_squares(100, 0) == 328350
    del client


def test_a_handler_calls_another_server(client: Client) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(202)
            self.end_headers()
            self.wfile.write(b"from afar")

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert client.get(f"/calls?port={port}").text == "202 from afar"
        server.shutdown()
    # No server listens there any more: CITIUS_NET_REFUSED.
    assert client.get(f"/calls?port={port}").text == "-2"


@pytest.mark.parametrize("pool", [False, True], ids=["reactor", "pool"])
def test_a_handler_calls_redis_and_postgres(green: Any, pool: bool) -> None:
    binaries = pg_rig.find_binaries()
    if redis_rig.SERVER is None or binaries is None:
        pytest.skip("no redis-server or no PostgreSQL here")
    cache, database = redis_rig.Server(), pg_rig.Server(binaries)
    try:
        cache.start()
        database.start()
        redis, sessions = Redis(cache.url), Pool(database.dsn, size=1)

        @contextlib.asynccontextmanager
        async def lifespan(app: object) -> AsyncIterator[None]:
            async with redis, sessions:
                yield

        share("cython", redis)
        share("cython-db", sessions)
        app = App(lifespan=lifespan)
        app.get("/asks", compiled=green.asks, serial=True, pool=pool)
        with Client(app) as client:
            assert client.get("/asks").text == "heard42"
    finally:
        share("cython", None)
        share("cython-db", None)
        cache.remove()
        database.remove()


def test_select(green: Any) -> None:
    assert green.selects() == 1


def test_exceptions_of_cpp_become_those_of_python_at_the_edge(green: Any) -> None:
    with pytest.raises(ChannelClosed, match="send on closed channel"):
        green.send_on_closed()
    with pytest.raises(GoPanic, match="as the test wants it"):
        green.panics()


def test_a_channel_of_python_is_one_of_cython(green: Any) -> None:
    questions, answers = chan(type=int), chan(1, type=int)
    green.start_doubling(questions, answers)
    questions.send(21)
    assert answers.recv() == (42, True)
    questions.close()
    assert answers.recv() == (None, False)


def test_a_channel_of_cython_is_one_of_python(green: Any) -> None:
    channel = green.made_here()
    assert (len(channel), channel.cap) == (1, 2)
    assert channel.recv() == (None, True)


class Counted:
    """Something with references."""


def test_objects_cross_with_their_references(green: Any) -> None:
    value, channel = Counted(), chan(2)
    before = sys.getrefcount(value)
    assert green.send_object(channel, value) == 0
    assert sys.getrefcount(value) == before + 1
    assert green.receive_object(channel) == (0, value)
    assert sys.getrefcount(value) == before
    assert green.send_object(channel, value) == 0
    assert channel.recv() == (value, True)
    assert sys.getrefcount(value) == before
    channel.send(value)
    channel.close()
    assert green.receive_object(channel) == (0, value)
    # CITIUS_CLOSED
    assert green.receive_object(channel) == (1, None)
    assert green.send_object(channel, value) == 1
    assert sys.getrefcount(value) == before


def test_objects_in_a_channel_are_dropped_with_it(green: Any) -> None:
    values = [Counted() for _ in range(5)]
    references = [weakref.ref(value) for value in values]
    channel = green.fill(values)
    del values
    assert all(reference() is not None for reference in references)
    assert channel.recv()[0] is references[0]()
    assert references[0]() is None
    del channel
    assert all(reference() is None for reference in references)


def test_numbers_and_objects_are_not_confused(green: Any) -> None:
    numbers = chan(1, type=int)
    # CITIUS_MISUSE
    assert green.send_object(numbers, Counted()) == 2
    numbers.send(1)
    assert green.receive_object(numbers) == (2, None)


def test_a_goroutine_passes_an_object_on(client: Client) -> None:
    objects, value = chan(1), Counted()
    before = sys.getrefcount(value)
    share("objects", objects)
    try:
        objects.send(value)
        assert client.get("/passes").text == "passed"
        (same,), _ = objects.recv()
        assert same is value
        del same
        assert sys.getrefcount(value) == before
    finally:
        share("objects", None)


def test_coroutines_and_compiled_goroutines_meet(green: Any) -> None:
    async def main() -> list[int]:
        questions, answers = chan(type=int), chan(type=int)
        green.start_doubling(questions, answers)
        got = []
        for n in range(50):
            await questions.send(n)
            value, ok = await answers.recv()
            assert ok
            got.append(value)
        questions.close()
        assert await answers.recv() == (None, False)
        return got

    assert asyncio.run(main()) == [2 * n for n in range(50)]


def test_handlers(client: Client) -> None:
    assert client.get("/squares?count=100").text == "328350"
    assert client.get("/fan_out").text == "45045"


def test_blocks_with_the_gil_are_allowed(client: Client, green: Any) -> None:
    assert client.get("/log_all").text == "logged"
    assert sorted(green.LOG) == [-3, -2, -1, 1, 2, 3]
    assert client.get("/waits_after_gil").text == "fine"


def test_waiting_inside_with_gil_is_a_mistake(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    # Review B6: the counter of this thread is found without reading the fields of others.
    assert client.get("/waits_with_gil").status_code == 500
    assert "it waits inside `with gil`" in caplog.text
    assert client.get("/squares").text == "285"


def test_exceptions_end_their_goroutine_and_are_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "citius.go"):
        assert client.get("/fails").text == "lives"
        wait_for(lambda: "in a goroutine of C++" in caplog.text, "the log")
        wait_for(lambda: "KeyError: 'in a goroutine'" in caplog.text, "the traceback")


def test_exceptions_of_a_handler_are_a_500_with_their_traceback(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.get("/panics_in_handler").status_code == 500
    assert "of the handler" in caplog.text
    assert client.get("/raises").status_code == 500
    assert "ValueError: of the handler" in caplog.text


def test_an_exception_that_is_handled_belongs_to_its_goroutine(client: Client) -> None:
    assert client.get("/exceptions").text == "20"


def test_what_fails_is_not_done_once_and_holds_no_lock(client: Client) -> None:
    for _ in range(2):
        assert client.get("/once").text == "2 3"


def test_times_that_no_clock_has(client: Client) -> None:
    assert client.get("/strange_sleeps").text == "2 0 0 504 504 "


def test_the_log_names_handlers(green: Any) -> None:
    app = App()
    app.get("/waits", compiled=green.waits)
    client = Client(app, raise_errors=False)
    share("gate", chan(type=int))
    assert client.get("/waits").status_code == 500


def test_waiting_on_the_thread_of_a_loop_is_a_mistake(green: Any) -> None:
    async def main() -> None:
        with pytest.raises(ChannelMisuse, match="on the thread of an event loop"):
            green.sum_of_squares(10_000, 0)  # one of them has to wait

    asyncio.run(main())


def test_a_thread_blocks_until_a_value_comes(green: Any) -> None:
    gate = chan(type=int)
    share("gate", gate)
    app = App()
    app.get("/waits", compiled=green.waits, serial=True)
    client = Client(app)
    thread = threading.Thread(target=gate.send, args=(9,))
    thread.start()
    assert client.get("/waits").text == "9"
    thread.join()
    share("gate", None)
