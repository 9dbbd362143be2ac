"""Functions that numba compiles use `citius.go`: goroutines, sleep, and the channels that Python has, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from citius import App, ConfigError
from citius.go import chan, go, sleep
from citius.testing import Client
from rig import Server

numba = pytest.importorskip("numba", reason="numba is not installed")
import numpy as np  # noqa: E402

pytestmark = [
    # LLVM compiles for seconds, on a busy machine for minutes.
    pytest.mark.timeout(600),
    # numba's own, on newer interpreters
    pytest.mark.filterwarnings("default::DeprecationWarning"),
]

MAIN = """
import time
import numba
import numpy as np
from citius import App
from citius.go import chan, go, sleep

app = App()
squares, truths, texts = chan(type=int), chan(1, type=bool), chan(1, type=bytes)
arrays, halves, closed = chan(1, type=np.dtype("f8")), chan(type=float), chan(type=int)
gone = chan(2, type=int)
closed.close()


@numba.njit
def square(n, results):
    sleep(0.0005 * (n % 3))
    results.send(n * n)


@numba.njit
def fail(results):
    results.send(1)
    raise ValueError("on purpose")


def add(path, handler):
    app.post(path, compiled=True, serial=True)(handler)
    app.post("/pool" + path, compiled=True, serial=True, pool=True)(handler)


def sum_of_squares(count: int):
    for n in range(count):
        go(square, n, squares)
    total = 0
    for _ in range(count):
        value, ok = squares.recv()
        total += value
    return total


def slept(ms: int):
    began = time.monotonic()
    sleep(ms / 1000)
    return (time.monotonic() - began) * 1000


def bools():
    truths.send(True)
    value, ok = truths.recv()
    return value and ok


def doubled(body: bytes):
    texts.send(body)
    made, ok = texts.recv()
    for at in range(len(made)):
        made[at] *= 2
    return made


def mean(n: int):
    values = np.arange(n) * 0.5
    arrays.send(values)
    values[:] = 0.0
    received, ok = arrays.recv()
    return received.mean()


def ended():
    value, ok = closed.recv()
    return 100 if value == 0 and not ok else 0


def send_closed():
    closed.send(1)
    return 1


def child():
    go(fail, squares)
    value, ok = squares.recv()
    return value + len(squares)


def leaves():
    try:
        sleep(600.0)
    except Exception:
        gone.send(1)
    return 1


def for_python(n: int):
    halves.send(n / 2)
    return n


for handler in (
    sum_of_squares, slept, bools, doubled, mean, ended, send_closed, child, leaves, for_python
):
    add("/" + handler.__name__, handler)


@app.post("/received")
async def received() -> float:
    value, ok = await halves.recv()
    return value


@app.post("/gone")
async def is_gone() -> int:
    value, ok = await gone.recv()
    return value


@app.post("/turn", compiled=True)
def turn():
    value, ok = squares.recv()
    return value


@app.get("/alive")
def alive(): return "yes"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("numba_go")
    (folder / "main.py").write_text(MAIN)
    environment = {"XDG_CACHE_HOME": str(folder / "cache")}
    made = Server(["main.py", "--port", "0"], environment, folder).wait_ready()
    yield made
    made.kill()


@pytest.fixture(params=["", "/pool"])
def post(request: pytest.FixtureRequest, server: Server) -> Callable[..., Any]:
    def send(path: str, body: bytes = b"") -> Any:
        with server.connect() as peer:
            return peer.request("POST", request.param + path, body)

    return send


def test_goroutines_send_what_they_have_computed(post: Callable[..., Any]) -> None:
    assert post("/sum_of_squares?count=100").body == b"328350"


def test_sleep_parks_and_the_clock_goes_on(post: Callable[..., Any]) -> None:
    assert float(post("/slept?ms=30").body) >= 29.0
    assert float(post("/slept?ms=-5").body) < 1000.0


def test_bools_bytes_and_arrays(post: Callable[..., Any]) -> None:
    assert post("/bools").body == b"true"
    assert post("/doubled", b"\x01\x02\x40").body == b"\x02\x04\x80"
    assert post("/doubled", b"").body == b""
    assert post("/doubled", b"\x01" * 100_000).body == b"\x02" * 100_000
    # The receiver's array is a copy.
    assert post("/mean?n=5").body == b"1.0"


def test_closed_channels(post: Callable[..., Any], server: Server) -> None:
    assert post("/ended").body == b"100"
    assert post("/send_closed").status == 500


def test_an_exception_ends_its_goroutine_only(post: Callable[..., Any], server: Server) -> None:
    assert post("/child").body == b"1"
    server.wait_for_log("ValueError: on purpose")
    assert server.get("/alive").body == b"yes"


@pytest.mark.parametrize("prefix", ["", "/pool"])
def test_a_channel_is_that_of_python(prefix: str, server: Server) -> None:
    with server.connect() as waiting, server.connect() as peer:
        waiting.send(b"POST /received HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        assert peer.request("POST", f"{prefix}/for_python?n=5", b"").body == b"5"
        assert waiting.reply("POST").body == b"2.5"


def test_without_serial_a_wait_is_an_error_that_says_so(server: Server) -> None:
    with server.connect() as peer:
        assert peer.request("POST", "/turn", b"").status == 500
    server.wait_for_log("serial=True")


@pytest.mark.parametrize("prefix", ["", "/pool"])
def test_a_client_that_leaves_ends_the_wait(prefix: str, server: Server) -> None:
    with server.connect() as peer:
        peer.send(f"POST {prefix}/leaves HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".encode())
    with server.connect() as peer:
        assert peer.request("POST", "/gone", b"").body == b"1"


# --- what is refused ----------------------------------------------------------------------------------

numbers, objects, structs, floats = (
    chan(type=int),
    chan(),
    chan(type="<qd"),
    chan(type=np.dtype("f8")),
)


@numba.njit
def take(value: Any) -> None:
    sleep(value)


def plain(value: Any) -> None:
    sleep(value)


def sends_text(n: int):
    numbers.send("text")


def sends_real(n: int):
    numbers.send(0.5)


def sends_wrong_array(n: int):
    floats.send(np.zeros(3, np.int64))


def uses_objects(n: int):
    objects.send(n)


def uses_structs(n: int):
    structs.recv()


def starts_plain(n: int):
    go(plain, n)


def gives_array(n: int):
    go(take, np.zeros(3))


def sleeps_text(n: int):
    sleep("long")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (sends_text, "on a channel whose values are values of type int"),
        (sends_real, "it sends float64 on a channel whose values are values of type int"),
        (sends_wrong_array, "contiguous one-dimensional arrays of float64"),
        (uses_objects, "it uses a channel of Python objects"),
        (uses_structs, "it uses a channel of structs"),
        (starts_plain, "decorate"),
        (gives_array, "send arrays by a channel"),
        (sleeps_text, "expected seconds as a number"),
    ],
)
def test_wrong_types_are_refused_at_the_start(function: Any, message: str) -> None:
    app = App()
    app.get("/{n}", compiled=True, serial=True)(function)
    with pytest.raises(ConfigError) as raised:
        Client(app)
    assert message in str(raised.value), str(raised.value)
    assert function.__name__ in str(raised.value)
