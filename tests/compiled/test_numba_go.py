"""Functions that numba compiles use `citius.go`: goroutines, sleep, and the channels that Python has, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from citius import App, ConfigError
from citius.go import after, chan, go, select, sleep
from citius.testing import Client
from rig import Server, application

numba = pytest.importorskip("numba", reason="numba is not installed")
import numpy as np  # noqa: E402

pytestmark = [
    # LLVM compiles for seconds, on a busy machine for minutes.
    pytest.mark.timeout(600),
    # numba's own, on newer interpreters
    pytest.mark.filterwarnings("default::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("cache")
    environment = {"XDG_CACHE_HOME": str(folder)}
    target = str(application("numba_go_app"))
    made = Server([target, "--port", "0"], environment, folder)
    made.wait_ready(timeout_s=100)  # numba compiles for seconds of processor time
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


def test_a_select_takes_what_is_ready_waits_and_gives_up(post: Callable[..., Any]) -> None:
    for _ in range(3):
        assert post("/selected?count=100").body == b"4950"
        assert post("/waits_for_a_time?ms=20").body == b"2"
        assert post("/waits_for_a_time?ms=-3").body in (b"2", b"-1")
        assert post("/sends_or_not").body == b"0"


def test_a_select_on_a_closed_channel_is_an_error(post: Callable[..., Any], server: Server) -> None:
    assert post("/select_closed").status == 500
    server.wait_for_log("select_closed: it raised an exception")


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

numbers, reals, objects, structs, floats = (
    chan(type=int),
    chan(type=float),
    chan(),
    chan(type="<qd"),
    chan(type=np.dtype("f8")),
)


@numba.njit
def take(value: Any) -> None:
    sleep(value)  # it is compiled, not called


def plain(value: Any) -> None:
    sleep(value)  # it is compiled, not called


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


def selects_text(n: int):
    select(numbers, (numbers, "text"))


def selects_two_types(n: int):
    select(numbers, reals)


def selects_arrays(n: int):
    select(floats)


def selects_number(n: int):
    select(n)


def selects_two_times(n: int):
    select(after(1), after(2))


def selects_unknown(n: int):
    select(numbers, default=n > 1)


def sleeps_text(n: int):
    sleep("long")  # it is refused


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
        (selects_text, "on a channel whose values are values of type int"),
        (selects_two_types, "it receives int64 and float64 by one select"),
        (selects_arrays, "it selects a channel of arrays"),
        (selects_number, "a case is a channel, (channel, value), after(seconds) or None"),
        (selects_two_times, "expected one after(seconds)"),
        (selects_unknown, "expected True or False"),
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
