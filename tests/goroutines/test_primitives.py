"""What citius.h has for handlers that wait, on the reactor's goroutines and on those of the threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import citius
import pytest
from citius import App, ConfigError
from citius.go import chan, share
from citius.testing import Client
from rig import Server

NAMES = ["sum_of_squares", "fan_out", "selects", "edges", "sleeps", "contexts", "counts", "closes_twice",
         "wrong_size", "owned_values", "plain"]  # fmt: skip


@pytest.fixture(params=[False, True], ids=["reactor", "pool"])
def pool(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def client(library: citius.compiled.Handlers, pool: bool) -> Client:
    app = App()
    for name in NAMES:
        app.get(f"/{name}", compiled=library[name], serial=True, pool=pool)
    app.get("/asks/{number}", compiled=library["asks"], serial=True, pool=pool)
    app.post("/echoes", compiled=library["echoes_bytes"], serial=True, pool=pool)
    return Client(app)


@pytest.mark.parametrize("capacity", [0, 1, 200])
def test_values_go_through_channels(client: Client, capacity: int) -> None:
    assert client.get(f"/sum_of_squares?capacity={capacity}").text == "328350"


def test_goroutines_of_a_request_wait_for_each_other(client: Client) -> None:
    assert client.get("/fan_out").text == "450"


def test_a_select_takes_what_is_ready_waits_and_gives_up(client: Client) -> None:
    assert client.get("/selects").text == "-504 -504 2 2:1,7 1:0"


def test_a_channel_may_be_in_two_cases_or_be_none_and_a_cancelled_sender_keeps_its_value(
    client: Client,
) -> None:
    assert client.get("/edges").text == "111"


def test_a_sleep_lasts_as_long_as_it_says(client: Client) -> None:
    for ms in (0, 2, 30):
        assert int(client.get(f"/sleeps?ms={ms}").text) >= ms * 1000


def test_contexts_end_waits(client: Client) -> None:
    assert client.get("/contexts").text == "504 499 499 11 504 0"


def test_a_handler_that_does_not_wait_is_served_as_ever(client: Client) -> None:
    answer = client.get("/plain")
    assert (answer.text, answer.headers["content-type"]) == ("plain", "text/plain")


def test_closing_twice_and_sending_on_a_closed_channel_are_told(client: Client) -> None:
    assert client.get("/closes_twice").text == "11"


def test_values_that_nothing_receives_are_freed(client: Client) -> None:
    assert client.get("/owned_values").text == "3"


def test_python_threads_answer_compiled_goroutines(client: Client) -> None:
    questions, answers = chan(type=int), chan(type=int)
    share("questions", questions)
    share("answers", answers)

    def answer() -> None:
        for number in questions:
            answers.send(number * 2)

    thread = threading.Thread(target=answer)
    thread.start()
    assert [client.get(f"/asks/{n}").text for n in (1, 21, -5)] == ["2", "42", "-10"]
    questions.close()
    thread.join()
    share("questions", None)
    share("answers", None)
    assert client.get("/asks/1").status_code == 404


def test_bytes_of_any_number_go_to_python_and_back(client: Client) -> None:
    words, shouts = chan(type=bytes), chan(type=bytes)
    share("words", words)
    share("shouts", shouts)

    def shout() -> None:
        for word in words:
            shouts.send(word.upper())

    thread = threading.Thread(target=shout)
    thread.start()
    for body in (b"", b"abc", b"x" * 100_000):
        assert client.post("/echoes", content=body).content == body.upper()
    words.close()
    thread.join()


def test_an_async_handler_shares_a_channel_with_compiled_ones(
    serve_library: Callable[..., Server], pool: bool
) -> None:
    server = serve_library(
        pool=pool,
        more=(
            "questions, answers = chan(type=int), chan(type=int)\n"
            "share('questions', questions); share('answers', answers); add('asks', '/asks/{number}')\n"
            "@app.get('/answers/{count:int}')\n"
            "async def answer(count: int) -> str:\n"
            "    for _ in range(count):\n"
            "        await answers.send((await questions.recv())[0] + 1)\n"
            "    return 'done'\n"
        ),
    )
    with server.connect() as answering:
        answering.send(b"GET /answers/20 HTTP/1.1\r\nhost: x\r\n\r\n")
        peers = [server.connect() for _ in range(20)]
        for n, peer in enumerate(peers):
            peer.send(b"GET /asks/%d HTTP/1.1\r\nhost: x\r\n\r\n" % n)
        bodies = sorted(int(peer.reply().body) for peer in peers)
        assert bodies == list(range(1, 21))
        assert answering.reply().body == b"done"


def test_greenlets_of_gevent_share_a_channel_with_compiled_handlers(
    serve_library: Callable[..., Server], pool: bool
) -> None:
    pytest.importorskip("gevent")
    server = serve_library(
        "--loop", "gevent",
        pool=pool,
        more=(
            "questions, answers = chan(type=int), chan(type=int)\n"
            "share('questions', questions); share('answers', answers); add('asks', '/asks/{number}')\n"
            "@app.get('/answers/{count:int}')\n"
            "def answer(count: int) -> str:\n"
            "    for _ in range(count):\n"
            "        answers.send(questions.recv()[0] + 1)\n"
            "    return 'done'\n"
        ),
    )  # fmt: skip
    with server.connect() as answering:
        answering.send(b"GET /answers/20 HTTP/1.1\r\nhost: x\r\n\r\n")
        peers = [server.connect() for _ in range(20)]
        for n, peer in enumerate(peers):
            peer.send(b"GET /asks/%d HTTP/1.1\r\nhost: x\r\n\r\n" % n)
        assert server.get("/alive").body == b"yes"
        assert sorted(int(peer.reply().body) for peer in peers) == list(range(1, 21))
        assert answering.reply().body == b"done"


@pytest.mark.parametrize("options", [(), ("--reactor-threads", "2")])
def test_a_goroutine_of_a_reactor_stays_on_its_thread(
    serve_library: Callable[..., Server], options: tuple[str, ...]
) -> None:
    server = serve_library(*options, more="add('moves')")
    peers = [server.connect() for _ in range(10)]
    for peer in peers:
        peer.send(b"GET /moves HTTP/1.1\r\nhost: x\r\n\r\n")
    assert [peer.reply().body for peer in peers] == [b"0"] * 10


def test_a_mutex_parks_and_once_is_once(serve_library: Callable[..., Server], pool: bool) -> None:
    server = serve_library(pool=pool, more="add('counts')")
    peers = [server.connect() for _ in range(30)]
    for peer in peers:
        peer.send(b"GET /counts HTTP/1.1\r\nhost: x\r\n\r\n")
    assert sorted(int(peer.reply().body) for peer in peers) == list(range(30))


def test_middleware_stands_around_them(library: citius.compiled.Handlers, pool: bool) -> None:
    app = App()

    @app.middleware
    async def mark(request: citius.Request, next_: Callable[..., object]) -> object:
        answer = await next_(request)
        answer.headers["x-mark"] = "yes"
        return answer

    for name in ("fan_out", "wrong_size", "returns_closed"):
        app.get(f"/{name}", compiled=library[name], serial=True, pool=pool)
    client = Client(app, raise_errors=False)
    answer = client.get("/fan_out")
    assert (answer.text, answer.headers["x-mark"]) == ("450", "yes")
    assert client.get("/returns_closed").status_code == 500


def test_what_waits_without_a_goroutine_is_a_mistake_that_says_what_to_do(
    serve_library: Callable[..., Server],
) -> None:
    server = serve_library(more="app.get('/sleeps', compiled=handlers['sleeps'])")
    assert server.get("/sleeps").status == 500
    server.wait_for_log(
        r"GET /sleeps: the compiled handler sleeps: it waits on the reactor's thread"
        r".* add serial=True to its route"
    )
    assert server.get("/alive").body == b"yes"


def test_serial_is_for_compiled_code_or_plain_functions() -> None:
    app = App()
    with pytest.raises(ConfigError, match="serial=True"):

        @app.get("/", serial=True)
        async def handler() -> str:
            return ""
