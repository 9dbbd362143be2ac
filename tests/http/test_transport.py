"""Requests over HTTP/1.1 by ``citius.http.transport``, beside a server that says what it should not."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest
from citius._core import HttpOrigin
from citius.http import errors
from citius.http.transport import Pool
from http_peer import OK, Peer, Talk, answering, get, run

if TYPE_CHECKING:
    from collections.abc import Callable


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def test_a_response_is_whole() -> None:
    def act(talk: Talk) -> None:
        while request := talk.request():
            said = f"{request[0]} {request[1].decode()} {talk.fields[b'host'].decode()}".encode()
            talk.say(
                b"HTTP/1.1 201 Made\r\nX-One: a\r\nx-two: b\r\ncontent-length: %d\r\n\r\n%s"
                % (len(said), said)
            )

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            origin = peer.origin()
            reply = await get(
                pool, origin, "/a?b=c", method="POST", body=b"hello", fields=[("x", b"\xff")]
            )
            assert (reply.status, reply.reason, reply.http_version) == (201, b"Made", "HTTP/1.1")
            assert reply.body == f"POST /a?b=c HTTP/1.1 hello 127.0.0.1:{peer.port}".encode()
            assert reply.fields[0] == (b"X-One", b"a")
            assert reply.field(b"X-TWO") == b"b"
            assert not reply.connection_reused
            assert reply.remote == f"127.0.0.1:{peer.port}"
            assert (await get(pool, origin)).connection_reused
            assert pool.stats() == {"open": 1, "idle": 1, "connecting": 0, "waiting": 0}

        run(work)
        assert peer.accepted == 1


@pytest.mark.parametrize("poison", ["a\r\nb: c", "a\nb", "a\0", b"a\x01"])
def test_nothing_of_the_caller_ends_a_line(poison: str | bytes) -> None:
    with Peer(answering()) as peer:

        async def work(pool: Pool) -> None:
            with pytest.raises(errors.LocalProtocolError, match="control byte"):
                await get(pool, peer.origin(), fields=[("x", poison)])
            for owned in ("content-length", "transfer-encoding", "connection", "upgrade", "te"):
                with pytest.raises(errors.LocalProtocolError, match="by the client itself"):
                    await get(pool, peer.origin(), fields=[(owned, "1")])
            with pytest.raises(errors.LocalProtocolError, match="URL"):
                await get(pool, peer.origin(), "/a b")
            assert (await get(pool, peer.origin())).body == b"ok"

        run(work)
        assert peer.accepted == 1, "what is refused costs no connection"


@pytest.mark.parametrize("surplus", [OK, b"x", b"HTTP/1.1 100 Continue\r\n\r\n"])
@pytest.mark.parametrize("is_late", [False, True])
def test_bytes_behind_a_response_are_no_response(surplus: bytes, is_late: bool) -> None:
    """A connection with surplus bytes is not used again; what they say reaches no request."""
    told = threading.Event()

    def act(talk: Talk) -> None:
        while request := talk.request():
            mine = request[0].split()[1].encode()
            said = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(mine), mine)
            if talk.number > 1:
                talk.say(said)
            elif is_late:
                talk.say(said)
                told.wait(10)
                talk.say(surplus)
                told.clear()
            else:
                talk.say(said + surplus)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            assert (await get(pool, peer.origin(), "/1")).body == b"/1"
            if is_late:
                told.set()
                await asyncio.to_thread(lambda: wait_until(lambda: not told.is_set()))
            for number in range(2, 5):
                reply = await get(pool, peer.origin(), f"/{number}", method="POST")
                assert reply.body == f"/{number}".encode()

        run(work)
        assert peer.accepted == 2


def wait_until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("the condition does not come about")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_closed_while_idle_is_not_used(method: str) -> None:
    """The keep-alive race: the end is seen before a request is written that cannot be repeated."""

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(OK)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            for _ in range(50):
                assert (await get(pool, peer.origin(), method=method)).body == b"ok"
                # The peer closes while the loop does not look.
                wait_until(lambda: peer.open == 0)

        run(work)
        assert peer.accepted == 50


def test_what_may_have_been_carried_out_is_repeated_only_if_the_method_allows() -> None:
    """A server that closes when it has read the second request of a connection."""
    seen: list[str] = []

    def act(talk: Talk) -> None:
        for _ in range(1 if talk.number == 1 else 2):
            request = talk.request()
            if request is None:
                return
            seen.append(request[0])
            talk.say(OK)
        request = talk.request()
        if request is not None:
            seen.append(request[0])

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            await get(pool, peer.origin(), "/first")
            assert (await get(pool, peer.origin(), "/get")).body == b"ok"
            assert (await get(pool, peer.origin(), "/more")).body == b"ok"
            with pytest.raises(errors.ReadError):
                await get(pool, peer.origin(), "/post", method="POST")

        run(work)
    assert [line.split()[1] for line in seen].count("/get") == 2
    assert [line.split()[1] for line in seen].count("/post") == 1


@pytest.mark.parametrize("is_seen", [False, True])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_connection_that_waited_for_its_first_request_is_one_that_was_idle(
    method: str, is_seen: bool
) -> None:
    """The call for which it was made was given up; it is closed before the next one, or when that came."""

    def act(talk: Talk) -> None:
        if talk.number == 1:
            closes.wait(10)
            if not is_seen:
                talk.request()
            return
        while talk.request() is not None:
            talk.say(OK)

    closes = threading.Event()
    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            given_up = asyncio.ensure_future(get(pool, peer.origin()))
            while pool.stats()["connecting"] == 0:
                await asyncio.sleep(0)
            given_up.cancel()
            await until(lambda: pool.stats()["idle"] == 1)
            closes.set()
            if is_seen:
                # The loop does not look. The kernel connects before the peer accepts.
                wait_until(lambda: peer.accepted == 1 and peer.open == 0)
            if method == "POST" and not is_seen:
                with pytest.raises(errors.ReadError):
                    await get(pool, peer.origin(), method=method)
            assert (await get(pool, peer.origin(), method=method)).body == b"ok"

        run(work)
        assert peer.accepted == 2


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_closes_a_connection_made_for_a_request_is_not_asked_again(
    method: str,
) -> None:
    """It closes because of the request; whether to ask again is for ``retries`` to say."""

    def act(talk: Talk) -> None:
        talk.request()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            for _ in range(3):
                with pytest.raises(errors.ReadError):
                    await get(pool, peer.origin(), method=method)

        run(work)
        assert peer.accepted == 3


def silent(talk: Talk) -> None:
    while talk.request():
        pass


@pytest.mark.parametrize(
    ("deadlines", "expected"),
    [
        ((None, 0.1, None, None, None), errors.ReadTimeout),
        ((None, None, None, None, 0.1), errors.TotalTimeout),
    ],
)
def test_a_time_limit_says_which_one_it_is(
    deadlines: tuple[float | None, ...], expected: type[Exception]
) -> None:
    with Peer(silent) as peer:

        async def work(pool: Pool) -> None:
            with pytest.raises(expected, match=r"within 0.1 s") as caught:
                await get(pool, peer.origin(), deadlines=deadlines)
            error: Any = caught.value
            assert 0.09 <= error.after_s < 2
            await until(lambda: peer.open == 0)
            assert pool.stats()["open"] == 0

        run(work)


def test_a_server_that_does_not_read_is_a_write_timeout() -> None:
    done = threading.Event()

    def act(talk: Talk) -> None:
        done.wait(10)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            with pytest.raises(errors.WriteTimeout):
                await get(
                    pool, peer.origin(), method="POST", body=b"x" * 20_000_000,
                    deadlines=(None, 9.0, 0.2, None, None),
                )  # fmt: skip

        run(work)
        done.set()


def test_waiting_for_a_connection_has_a_limit() -> None:
    with Peer(silent) as peer:

        async def work(pool: Pool) -> None:
            first = asyncio.ensure_future(get(pool, peer.origin()))
            await until(lambda: pool.stats()["open"] == 1)
            with pytest.raises(errors.PoolTimeout, match=r"no connection was free within 0.1 s"):
                await get(pool, peer.origin(), deadlines=(None, None, None, 0.1, None))
            first.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await first

        run(work, connections_per_origin_max=1)


@pytest.mark.parametrize("at", range(8))
def test_cancelled_requests_cost_no_connection(at: int) -> None:
    """Requests are given up at any moment; every later one gets its own response, and the limit holds."""
    high = 0

    def act(talk: Talk) -> None:
        nonlocal high
        high = max(high, peer.open)
        while request := talk.request():
            mine = request[0].split()[1].encode()
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(mine))
            talk.say(mine)

    with Peer(act) as peer:

        async def one(pool: Pool, number: int) -> None:
            reply = await get(pool, peer.origin(), f"/{number}")
            assert reply.body == f"/{number}".encode()

        async def work(pool: Pool) -> None:
            for round_ in range(12):
                tasks = [asyncio.ensure_future(one(pool, round_ * 100 + n)) for n in range(20)]
                for _ in range(at + round_ % 3):
                    await asyncio.sleep(0)
                for task in tasks[::2]:
                    task.cancel()
                for result in await asyncio.gather(*tasks, return_exceptions=True):
                    assert result is None or isinstance(result, asyncio.CancelledError), result
            assert pool.stats()["waiting"] == 0
            await one(pool, 7)
            await until(lambda: pool.stats()["open"] == pool.stats()["idle"])

        run(work, connections_per_origin_max=4)
    assert high <= 4 + 20, "connections that are being closed count at the peer only"


def test_limits_hold_and_the_call_that_waited_longest_goes_first() -> None:
    order: list[str] = []
    together = most = 0
    lock = threading.Lock()

    def act(talk: Talk) -> None:
        nonlocal together, most
        while request := talk.request():
            with lock:
                together += 1
                most = max(most, together)
                order.append(request[0].split()[1])
            threading.Event().wait(0.002)
            with lock:
                together -= 1
            talk.say(OK)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            calls = [asyncio.ensure_future(get(pool, peer.origin(), f"/{n:03}")) for n in range(60)]
            await asyncio.gather(*calls)

        run(work, connections_per_origin_max=1)
        assert peer.accepted == 1
    assert most == 1
    assert order == sorted(order)


def test_the_limit_in_all_is_shared_fairly() -> None:
    """Two servers and one connection in all: neither is starved, and idle ones make room."""
    with Peer(answering()) as one, Peer(answering()) as other:

        async def work(pool: Pool) -> None:
            origins = [one.origin(), other.origin()]
            replies = await asyncio.gather(*(get(pool, origins[n % 2]) for n in range(40)))
            assert all(reply.body == b"ok" for reply in replies)
            assert pool.stats()["open"] <= 1

        run(work, connections_max=1)


def test_a_place_goes_to_the_server_whose_calls_have_waited_longest() -> None:
    """The server that makes room has calls too; to take the place again, it would have to wait for longer."""
    order: list[str] = []
    gate = threading.Event()

    def act(talk: Talk) -> None:
        while request := talk.request():
            gate.wait(10)
            order.append(request[0].split()[1])
            talk.say(OK)

    with Peer(act) as one, Peer(act) as other:

        async def work(pool: Pool) -> None:
            calls = []
            for peer, target in ((one, "/1"), (other, "/2"), (one, "/3"), (other, "/4")):
                calls.append(asyncio.ensure_future(get(pool, peer.origin(), target)))
                await asyncio.sleep(0.02)  # the pool's clock has ticks of milliseconds
            gate.set()
            await asyncio.gather(*calls)

        run(work, connections_max=1)
        assert (one.accepted, other.accepted) == (2, 2)
    assert order == ["/1", "/2", "/3", "/4"]


def test_a_dead_server_does_not_block_a_live_one() -> None:
    dead = HttpOrigin("http", "127.0.0.1", 1)
    with Peer(answering()) as peer:

        async def work(pool: Pool) -> None:
            results = await asyncio.gather(
                *(get(pool, dead if n % 2 else peer.origin()) for n in range(40)),
                return_exceptions=True,
            )
            for number, result in enumerate(results):
                if number % 2:
                    assert isinstance(result, errors.ConnectError), result
                else:
                    assert not isinstance(result, BaseException), result

        run(work, connections_max=2)


def test_content_is_read_while_it_comes() -> None:
    gate = threading.Semaphore(0)

    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(3):
            gate.acquire()
            talk.say(b"1\r\n%d\r\n" % number)
        talk.say(b"0\r\nx-end: yes\r\n\r\n")
        talk.request()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(), stream=True)
            for number in range(3):
                gate.release()
                assert await reply.read() == b"%d" % number
            assert await reply.read() == b""
            assert await reply.read() == b""
            assert reply.trailers == [(b"x-end", b"yes")]
            assert pool.stats()["idle"] == 1

        run(work)


def test_content_that_is_not_read_takes_bounded_memory() -> None:
    sent = 0

    def act(talk: Talk) -> None:
        nonlocal sent
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
        talk.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while True:
                sent += talk.socket.send(b"x" * 65536)
        talk.socket.settimeout(10)
        while sent < 100_000_000:
            sent += talk.socket.send(b"x" * min(65536, 100_000_000 - sent))
        talk.request()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(), stream=True)
            before = -1
            while before != sent:
                before = sent
                # How much the kernel holds is unknown: nothing is sent for a while when it is full.
                await asyncio.sleep(0.2)
            assert sent < 20_000_000
            size = 0
            while data := await reply.read():
                assert len(data) <= 1_000_000
                size += len(data)
            assert size == 100_000_000

        run(work)


def test_a_response_that_is_left_frees_its_place() -> None:
    def act(talk: Talk) -> None:
        while talk.request():
            talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx")

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            for close in (True, False):
                reply = await get(pool, peer.origin(), stream=True)
                assert await reply.read() == b"x"
                if close:
                    reply.close()
                del reply
                await until(lambda: pool.stats()["open"] == 0)
            await until(lambda: peer.open == 0)

        run(work, connections_per_origin_max=1)


def test_a_cut_in_streamed_content_is_an_error_of_the_reader() -> None:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nok")

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(), stream=True)
            assert await reply.read() == b"ok"
            with pytest.raises(errors.ReadError):
                await reply.read()

        run(work)


def test_a_silent_server_is_a_read_timeout_of_the_reader() -> None:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nok")
        talk.request()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            deadlines = (None, 0.1, None, None, None)
            reply = await get(pool, peer.origin(), stream=True, deadlines=deadlines)
            assert await reply.read() == b"ok"
            with pytest.raises(errors.ReadTimeout):
                await reply.read()

        run(work)


@pytest.mark.parametrize("length", [None, 600_000])
def test_content_is_sent_while_it_is_made(length: int | None) -> None:
    got: list[bytes] = []

    def act(talk: Talk) -> None:
        while request := talk.request():
            got.append(request[1])
            talk.say(OK)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            upload = pool.upload(length)
            call = get(pool, peer.origin(), method="POST", body=upload)
            call.start()
            for number in range(6):
                await upload.send(b"%d" % number * 100_000)
            await upload.end([("x-sum", "1")] if length is None else ())
            assert (await call).body == b"ok"
            assert (await get(pool, peer.origin())).connection_reused

        run(work)
    assert got[0] == b"".join(b"%d" % number * 100_000 for number in range(6))


def test_an_upload_has_the_length_that_was_said() -> None:
    with Peer(silent) as peer:

        async def work(pool: Pool) -> None:
            upload = pool.upload(5)
            call = get(pool, peer.origin(), method="PUT", body=upload)
            call.start()
            with pytest.raises(ValueError, match="more are given"):
                await upload.send(b"123456")
            await upload.send(b"123")
            with pytest.raises(ValueError, match="3 were given"):
                await upload.end()
            with pytest.raises(errors.WriteError):
                await call

        run(work)


def test_an_upload_waits_for_a_server_that_does_not_read() -> None:
    go = threading.Event()

    def act(talk: Talk) -> None:
        go.wait(10)
        talk.request()
        talk.say(OK)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            upload = pool.upload()
            call = get(pool, peer.origin(), method="POST", body=upload)
            call.start()
            given = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    while True:
                        await upload.send(b"x" * 100_000)
                        given += 100_000
            assert given < 30_000_000
            go.set()
            await upload.end()
            assert (await call).body == b"ok"

        run(work)


@pytest.mark.parametrize("says", [True, False])
def test_content_waits_for_the_servers_word(says: bool) -> None:
    """``Expect: 100-continue``: the content follows the 100, or a second of silence."""
    early: list[bytes] = []

    def act(talk: Talk) -> None:
        while b"\r\n\r\n" not in talk._buffer:
            talk._more()
        early.append(talk._buffer.partition(b"\r\n\r\n")[2])
        if says:
            talk.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = talk.request()
        talk.say(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n" + request[1] if request else b"")
        talk.request()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(
                pool,
                peer.origin(),
                method="POST",
                body=b"hello",
                fields=[("Expect", "100-continue")],
            )
            assert reply.body == b"hello"

        run(work)
    assert early == [b""]


def test_a_refusal_before_the_content_ends_the_connection() -> None:
    def act(talk: Talk) -> None:
        if talk.number == 1:
            while b"\r\n\r\n" not in talk._buffer:
                talk._more()
            talk.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
            assert not talk._more(), "no content follows"
        else:
            answering()(talk)

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(
                pool,
                peer.origin(),
                method="POST",
                body=b"hello",
                fields=[("Expect", "100-continue")],
            )
            assert reply.status == 413
            assert (await get(pool, peer.origin())).body == b"ok"

        run(work)
        assert peer.accepted == 2
        assert not peer.errors


def test_a_response_that_comes_before_the_server_closes_is_read() -> None:
    """A server that refuses a large body, and closes: its response says why."""

    def act(talk: Talk) -> None:
        while b"\r\n\r\n" not in talk._buffer:
            talk._more()
        talk.say(b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno")
        talk.socket.shutdown(socket.SHUT_WR)
        while talk._more():
            pass

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(), method="POST", body=b"x" * 5_000_000)
            assert (reply.status, reply.body) == (413, b"no")

        run(work)


def test_informational_responses_are_kept() -> None:
    def act(talk: Talk) -> None:
        talk.request()
        talk.say(
            b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + OK
        )
        talk.request()

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin())
            assert reply.informational == [(103, [(b"link", b"</a>")]), (102, [])]
            assert reply.body == b"ok"

        run(work)


def test_a_response_in_any_pieces_is_the_same() -> None:
    said = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx: y\r\n\r\n"
        b"5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nt: u\r\n\r\n"
    )

    def act(talk: Talk) -> None:
        talk.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while request := talk.request():
            at = int(request[0].split()[1][1:])
            talk.say(said[:at])
            threading.Event().wait(0.001)
            talk.say(said[at:])

    with Peer(act) as peer:

        async def work(pool: Pool) -> None:
            for at in range(1, len(said)):
                reply = await get(pool, peer.origin(), f"/{at}")
                assert (reply.body, reply.fields[1], reply.trailers) == (
                    b"hello world", (b"x", b"y"), [(b"t", b"u")],
                )  # fmt: skip
            assert pool.stats()["open"] == 1

        run(work)
        assert peer.accepted == 1


def test_idle_connections_are_closed_in_time() -> None:
    with Peer(answering()) as peer:

        async def work(pool: Pool) -> None:
            await get(pool, peer.origin())
            assert pool.stats()["idle"] == 1
            await until(lambda: pool.stats()["open"] == 0)
            await until(lambda: peer.open == 0)

        run(work, keepalive_s=0.1)


def test_a_pool_that_is_closed_fails_what_waits() -> None:
    with Peer(silent) as peer:

        async def work(pool: Pool) -> None:
            calls = [asyncio.ensure_future(get(pool, peer.origin())) for _ in range(3)]
            await until(lambda: pool.stats()["open"] == 1)
            await pool.close()
            for call in calls:
                with pytest.raises(errors.ClientClosed):
                    await call
            with pytest.raises(errors.ClientClosed):
                await get(pool, peer.origin())

        run(work, connections_per_origin_max=1)


def test_a_unix_socket(tmp_path: Any) -> None:
    path = str(tmp_path / "peer")
    with Peer(answering(), path=path) as peer:

        async def work(pool: Pool) -> None:
            origin = HttpOrigin("http", "localhost", 80, unix=path)
            assert (await get(pool, origin)).body == b"ok"

        run(work)
        assert peer.accepted == 1


def test_threads_and_scripts_wait() -> None:
    """A pool that is made in a thread has a loop of its own; one of a loop serves threads too."""
    with Peer(answering()) as peer:
        pool = Pool()
        assert pool.send(peer.origin(), "GET", "/", []).wait().body == b"ok"
        reply = pool.send(peer.origin(), "GET", "/", [], None, True).wait()
        assert reply.read().wait() == b"ok"
        assert reply.read().wait() == b""
        found: list[bytes] = []
        threads = [
            threading.Thread(
                target=lambda: found.append(pool.send(peer.origin(), "GET", "/", []).wait().body)
            )
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [b"ok"] * 8

        async def awaits() -> None:
            assert (await get(pool, peer.origin())).body == b"ok"

        asyncio.run(awaits())
        pool.close_now()

        async def work(own: Pool) -> None:
            reply = await asyncio.to_thread(lambda: own.send(peer.origin(), "GET", "/", []).wait())
            assert reply.body == b"ok"

        run(work)


def test_an_address_that_is_not_allowed_is_not_connected_to() -> None:
    with Peer(answering()) as peer:

        async def work(pool: Pool) -> None:
            for host in ("127.0.0.1", "localhost"):
                with pytest.raises(errors.AddressRefused):
                    await get(pool, peer.origin(host=host))

        run(work, allow=lambda address, port: not address.startswith(("127.", "::1")))
        assert peer.accepted == 0


def test_all_addresses_of_a_name_are_tried() -> None:
    with Peer(answering()) as peer:

        async def resolver(host: str, port: int) -> list[tuple[int, Any]]:
            return [
                (socket.AF_INET6, ("::1", 1, 0, 0)),
                (socket.AF_INET, ("127.0.0.1", 1)),
                (socket.AF_INET, ("127.0.0.1", peer.port)),
            ]

        async def work(pool: Pool) -> None:
            reply = await get(pool, peer.origin(host="many.example"))
            assert reply.body == b"ok"

        run(work, resolver=resolver)
