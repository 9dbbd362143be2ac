"""MessagePack-RPC over a socket, byte for byte, by an encoder and a decoder that are not ours."""

from __future__ import annotations

import re
import select
import socket
import time
from pathlib import Path

import msgpack
import pytest
from rig import wait_for
from rpc_rig import connect_rpc


def test_calls_and_their_results(procedures) -> None:
    with connect_rpc(procedures) as peer:
        assert peer.call("hello") == (None, "Hello World!")
        assert peer.call("sum", 1, 2) == (None, 3)
        assert peer.call("users.get", 5) == (None, {"id": 5, "name": "nobody"})
        assert peer.call("users.get", 5, "Ann") == (None, {"id": 5, "name": "Ann"})
        assert peer.call("total", 1, 2.5, 3) == (None, 6.5)
        assert peer.call("total") == (None, 0)
        error, name = peer.call("block", 0)
        assert error is None
        assert name.startswith("citius-blocking")


def test_values_come_back(procedures) -> None:
    values = [None, True, False, 0, -1, 2**63, 1.5, "", "é" * 40, "x" * 300, "x" * 70_000, b"\0\xff",
              b"x" * 300, [1, [2]], {"a": {"b": None}}]  # fmt: skip
    with connect_rpc(procedures) as peer:
        for value in values:
            assert peer.call("echo", value) == (None, value)


def test_named_parameters(procedures) -> None:
    with connect_rpc(procedures) as peer:
        peer.send(msgpack.packb([0, 1, "sum", {"b": 2, "a": 40}]))
        assert peer.hear() == [1, 1, None, 42]
        peer.send(msgpack.packb([0, 2, "sum", {"b": 2, "c": 40}]))
        assert peer.hear()[2]["type"] == "InvalidParams"
        peer.send(msgpack.packb([0, 3, "total", {"numbers": [1]}]))
        assert peer.hear()[2]["type"] == "InvalidParams"


def test_answers_come_when_they_are_ready(procedures) -> None:
    with connect_rpc(procedures) as peer:
        peer.ask(1, "sleep", 0.3)
        peer.ask(2, "block", 0.1)
        peer.ask(0xFFFF_FFFF, "hello")
        assert [peer.hear()[1] for _ in range(3)] == [0xFFFF_FFFF, 2, 1]


def test_a_notification_has_no_answer(procedures) -> None:
    with connect_rpc(procedures) as peer:
        peer.tell("note", "a")
        peer.tell("fail")
        peer.tell("nothing.like.it")
        peer.tell("note", 5)
        error, seen = peer.call("seen")
        assert error is None
        assert seen["noted"] == ["a"]


def test_errors_are_values_without_secrets(procedures) -> None:
    server = procedures
    with connect_rpc(server) as peer:
        assert peer.call("nope")[0] == {
            "type": "MethodNotFound", "message": 'nothing is exposed as "nope"',
        }  # fmt: skip
        assert peer.call("sum", 1)[0]["type"] == "InvalidParams"
        assert peer.call("sum", 1, 2, 3)[0]["type"] == "InvalidParams"
        assert peer.call("sum", 1, "2")[0] == {
            "type": "InvalidParams",
            "message": "the parameters do not match: #/1: expected an integer, got a string",
            "data": {
                "errors": [
                    {"in": "params", "pointer": "#/1", "detail": "expected an integer, got a string"}
                ]
            },
        }  # fmt: skip
        assert peer.call("users.get", -1)[0]["type"] == "InvalidParams"
        assert peer.call("users.get", 101)[0] == {
            "type": "UnknownUser", "message": "there is no user 101", "data": {"id": 101},
        }  # fmt: skip
        assert peer.call("refuse")[0] == {
            "type": "Conflict", "message": "taken already", "data": {"status": 409},
        }  # fmt: skip
        failed = {"type": "InternalError", "message": "the procedure failed"}
        assert peer.call("fail")[0] == failed
        assert peer.call("odd")[0] == failed
        assert peer.call("hello") == (None, "Hello World!")
    server.wait_for_log(r"CALL fail failed \[handler fail \(.*\.py:\d+\), call id \d+\]")
    server.wait_for_log("ValueError: the password is 1234")
    server.wait_for_log("Encoding objects of type object is unsupported")


def test_many_calls_in_pieces_of_every_size(procedures) -> None:
    with connect_rpc(procedures) as peer:
        calls = b"".join(msgpack.packb([0, n, "sum", [n, n]]) for n in range(300))
        for start, size in [(0, 1), (60, 7), (600, 100), (1500, 100_000)]:
            stop = {0: 60, 60: 600, 600: 1500}.get(start, len(calls))
            for at in range(start, stop, size):
                peer.send(calls[at : min(at + size, stop)])
        assert [peer.hear() for _ in range(300)] == [[1, n, None, 2 * n] for n in range(300)]


def test_unix_socket(serve_rpc, tmp_path) -> None:
    server = serve_rpc(address=f"unix:{tmp_path}/rpc")
    with connect_rpc(server) as peer:
        assert peer.call("hello") == (None, "Hello World!")


def test_calls_are_logged_and_counted(serve_rpc) -> None:
    server = serve_rpc("--management", "127.0.0.1:0")
    with connect_rpc(server) as peer:
        peer.call("hello")
        peer.call('no\n"pe', 1)
        peer.call("sum", 1, "x")
        peer.call("fail")
    for line in (
        r'"CALL hello RPC" 200',
        r'"CALL no%0A%22pe RPC" 404',
        r'"CALL sum RPC" 422',
        r'"CALL fail RPC" 500',
    ):
        wait_for(lambda line=line: re.search(line, server.out), line)


def test_a_caller_that_leaves_has_its_calls_cancelled(procedures) -> None:
    server = procedures
    with connect_rpc(server) as peer:
        peer.ask(1, "sleep", 30, "left alone")
        peer.call("hello")
        peer.reset()
    with connect_rpc(server) as peer:
        wait_for(lambda: "left alone" in peer.call("seen")[1]["cancelled"], "the cancellation")


@pytest.mark.epoll("asyncio does not tell a closed Unix socket from one that sends no more")
def test_a_caller_that_leaves_a_unix_socket_has_its_calls_cancelled(serve_rpc, tmp_path) -> None:
    """There a close can be told from the end of what is sent."""
    server = serve_rpc(address=f"unix:{tmp_path}/rpc.sock")
    with connect_rpc(server) as peer:
        peer.ask(1, "sleep", 30, "left alone")
        peer.call("hello")
    with connect_rpc(server) as peer:
        wait_for(lambda: "left alone" in peer.call("seen")[1]["cancelled"], "the cancellation")


@pytest.mark.parametrize("is_unix", [False, True])
def test_a_half_closed_connection_is_answered(serve_rpc, tmp_path, is_unix: bool) -> None:
    server = serve_rpc(address=f"unix:{tmp_path}/rpc.sock" if is_unix else "127.0.0.1:0")
    with connect_rpc(server) as peer:
        peer.ask(1, "sleep", 0.3)
        peer.ask(2, "block", 0.3)
        peer.ask(3, "hello")
        peer.socket.shutdown(socket.SHUT_WR)
        assert {peer.hear()[1] for _ in range(3)} == {1, 2, 3}
        with pytest.raises(EOFError):
            peer.hear()


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_notifications_run_to_their_end_although_their_caller_has_left(
    procedures, leave: str
) -> None:
    names = {f"later, {leave}", f"in a thread, {leave}"}
    with connect_rpc(procedures) as peer:
        for name in names:
            peer.tell("note_later" if "later" in name else "note_in_a_thread", 0.2, name)
        peer.call("hello")
        getattr(peer, leave)()
    with connect_rpc(procedures) as peer:
        wait_for(lambda: names <= {*peer.call("seen")[1]["noted"]}, "what they note")


def test_a_half_closed_connection_that_waits_costs_nothing(serve_rpc) -> None:
    server = serve_rpc()
    with connect_rpc(server) as peer:
        peer.ask(1, "sleep", 1.0)
        peer.socket.shutdown(socket.SHUT_WR)
        stat = Path(f"/proc/{server.process.pid}/schedstat")
        before_ns = int(stat.read_text().split()[0])
        assert peer.hear()[1] == 1
        assert int(stat.read_text().split()[0]) - before_ns < 500_000_000, "it was polled for"


def test_a_caller_can_cancel(procedures) -> None:
    with connect_rpc(procedures) as peer:
        peer.ask(1, "sleep", 30, "one")
        peer.ask(2, "sleep", 0.2, "two")
        peer.tell("$/cancelRequest", 1)
        assert peer.hear()[:3] == [
            1, 1, {"type": "Cancelled", "message": "caller has cancelled the call"},
        ]  # fmt: skip
        assert peer.hear() == [1, 2, None, "two"]
        cancelled = peer.call("seen")[1]["cancelled"]
        assert "one" in cancelled
        assert "two" not in cancelled


def test_deadlines(serve_rpc) -> None:
    server = serve_rpc("--rpc-call-ms", "300")
    with connect_rpc(server) as peer:
        started = time.monotonic()
        peer.ask(1, "sleep", 30, "default")
        peer.ask(2, "hasty")
        peer.ask(3, "block", 0.5)
        answers = {msgid: error["type"] for _, msgid, error, _ in (peer.hear() for _ in range(3))}
        assert answers == dict.fromkeys((1, 2, 3), "DeadlineExceeded")
        # The reactor's clock has ticks of 4 ms, and begins at the last one.
        assert 0.29 <= time.monotonic() - started < 5
        assert sorted(peer.call("seen")[1]["cancelled"]) == ["default", "hasty"]
    with connect_rpc(server) as peer:
        assert peer.call("hello") == (None, "Hello World!")


def test_a_procedure_has_a_deadline_of_its_own(serve_rpc) -> None:
    with connect_rpc(serve_rpc("--rpc-call-ms", "600000")) as peer:
        assert peer.call("hasty")[0]["type"] == "DeadlineExceeded"


def test_too_many_blocking_calls(serve_rpc) -> None:
    server = serve_rpc("--blocking-threads", "1", "--blocking-queue-max", "0")
    with connect_rpc(server) as peer:
        peer.ask(1, "block", 0.3)
        peer.ask(2, "block", 0)
        answers = {msgid: error for _, msgid, error, _ in (peer.hear(), peer.hear())}
        assert answers[1] is None
        assert answers[2]["type"] == "Overloaded"


def test_limit_concurrency_holds_for_calls(serve_rpc) -> None:
    with connect_rpc(serve_rpc("--requests-open-max", "1")) as peer:
        peer.ask(1, "sleep", 0.3)
        peer.ask(2, "hello")
        _, msgid, error, _ = peer.hear()
        assert (msgid, error["type"]) == (2, "Overloaded")
        assert peer.hear() == [1, 1, None, "slept"]


def test_reading_stops_while_too_many_calls_are_open(serve_rpc) -> None:
    with connect_rpc(serve_rpc("--rpc-calls-open-max", "2")) as peer:
        for n in range(5):
            peer.ask(n, "sleep", 0.2)
        assert peer.hear() == [1, 0, None, "slept"]
        assert [peer.hear()[1] for _ in range(4)] == [1, 2, 3, 4]


def test_a_message_too_long_is_told_and_ends_the_connection(serve_rpc) -> None:
    server = serve_rpc("--rpc-message-bytes-max", "1000")
    with connect_rpc(server) as peer:
        peer.ask(3, "ignore", b"x" * 2000)
        _, msgid, error, _ = peer.hear()
        assert (msgid, error["type"]) == (3, "MessageTooLong")
        with pytest.raises(EOFError):
            peer.hear()


def test_nonsense_ends_the_connection_and_nothing_else(procedures) -> None:
    http = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    with connect_rpc(procedures) as good:
        for nonsense in (http, b"\x16\x03\x01", b"\x94\xc1", b"\x93" * 100, b"\x00"):
            with connect_rpc(procedures) as peer:
                peer.send(nonsense)
                assert b"Hello" not in peer.read_to_end()
            assert good.call("hello") == (None, "Hello World!")


def test_a_message_that_takes_too_long(serve_rpc) -> None:
    with connect_rpc(serve_rpc("--rpc-message-ms", "200")) as peer:
        peer.send(msgpack.packb([0, 1, "hello", []])[:4])
        assert peer.is_closed()


def test_an_idle_connection_is_told_goodbye(serve_rpc) -> None:
    with connect_rpc(serve_rpc("--rpc-idle-ms", "200")) as peer:
        assert peer.call("hello") == (None, "Hello World!")
        assert peer.hear() == [2, "$/goodbye", []]
        with pytest.raises(EOFError):
            peer.hear()


def test_a_peer_that_takes_no_answers_holds_nobody_up(serve_rpc) -> None:
    server = serve_rpc("--write-stall-ms", "500", "--write-queue-bytes-max", "10000")
    with connect_rpc(server) as deaf, connect_rpc(server) as good:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.socket.settimeout(0.2)
        call = msgpack.packb([0, 1, "ignore", [b"", 100_000]])
        with pytest.raises((TimeoutError, ConnectionError)):
            while True:
                deaf.send(call * 100)
        assert good.call("hello") == (None, "Hello World!")
        # What the kernels hold is still there, so the end shows as a reset.
        poll = select.poll()
        poll.register(deaf.socket, 0)
        assert poll.poll(10_000)[0][1] & select.POLLERR


def test_connections_above_the_limit_are_closed(serve_rpc) -> None:
    server = serve_rpc("--connections-max", "2")
    with connect_rpc(server) as first, connect_rpc(server) as second, connect_rpc(server) as third:
        assert first.call("hello")[0] is None
        assert second.call("hello")[0] is None
        assert third.is_closed()


# --- what cannot be served ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "this one has none"),
        ("@app.rpc\ndef a(request): pass", "takes the HTTP request"),
        ("@app.rpc\ndef a(**more): pass", "name its parameters"),
        ("@app.rpc\ndef a(x, *more): pass", "a procedure takes either"),
        ("@app.rpc\ndef a(): pass\n@app.rpc('a')\ndef b(): pass", "two procedures are called 'a'"),
        ("@app.rpc('rpc.a')\ndef a(): pass", "belong to the protocols"),
        ("@app.rpc(deadline_s=0)\ndef a(): pass", "deadline_s must be more than 0"),
        ("@app.rpc\ndef a(x: 'int | str | Missing'): pass", "cannot be resolved"),
        ("class Odd: __slots__ = ()\n@app.rpc\ndef a(x: Odd | int): pass", "msgspec cannot read"),
    ],
)
def test_mistakes_are_told_at_the_start(serve, source: str, message: str) -> None:
    server = serve(source, "--rpc", "127.0.0.1:0", ready=False)
    assert server.wait() == 3
    assert message in server.err


def test_only_native_applications(serve) -> None:
    source = "async def app(scope, receive, send): pass"
    server = serve(source, "--rpc", "127.0.0.1:0", ready=False)
    assert server.wait() == 3
    assert "native application" in server.err
