"""Native applications over HTTP/2: handlers see no difference, and streams do not wait for each other."""

from __future__ import annotations

import json
import signal
import urllib.request

import pytest
from h2peer import (
    CANCEL,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW,
    NO_ERROR,
    PREFACE,
    PRIORITY_UPDATE,
    H2Peer,
    StreamResponse,
    connect,
    frame,
    settings,
)  # fmt: skip
from rig import Server, application, wait_for

APP = application("http2_native_app")


@pytest.fixture
def server(serve) -> Server:
    return serve(APP)


def events(server: Server) -> list[str]:
    return json.loads(server.get("/events").body)


def test_a_client_that_knows_speaks_at_once(server: Server) -> None:
    with connect(server) as peer:
        answer = peer.get(1, "/facts?a=b%20c", [("cookie", "a=1"), ("cookie", "b=2")])
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.headers["server"] == "citius"
        assert "date" in answer.headers
        assert json.loads(answer.body) == {
            "version": "2", "host": "test", "path": "/facts", "query": "a=b%20c",
            "cookies": {"a": "1", "b": "2"}, "target": "/facts?a=b%20c",
        }  # fmt: skip
        assert peer.get(3, "/").body == b"Hello"
        assert peer.get(5, "/nowhere").status == 404
        peer.request(7, "HEAD", "/")
        head = peer.answer(7)
        assert (head.status, head.headers["content-length"], head.body) == (200, "5", b"")


def test_the_preface_may_come_in_pieces(server: Server) -> None:
    with connect(server, greets=False) as peer:
        for byte in PREFACE + settings({}) + peer.head(1, "GET", "/"):
            peer.send(bytes([byte]))
        assert peer.answer(1).body == b"Hello"
    with server.connect() as other:
        other.send(b"PRI")
        other.send(b"NT / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert other.reply().status == 405


def test_only_the_first_bytes_of_a_connection_are_a_preface(server: Server) -> None:
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + PREFACE)
        assert peer.reply().body == b"Hello"
        assert peer.reply().status == 505


def test_one_version_alone(serve) -> None:
    old = serve(APP, "--http", "1")
    with old.connect() as peer:
        peer.send(PREFACE)
        assert peer.reply().status == 505
    new = serve(APP, "--http", "2", "--health", "/health", ready=True)
    with connect(new) as peer:
        assert peer.get(1, "/").body == b"Hello"
        assert peer.get(3, "/health/live").body == b"live"
    with connect(new, greets=False) as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.to_end()
        assert [code for _, code in peer.goaways] == [1]


def test_answers_leave_as_they_are_ready(server: Server) -> None:
    with connect(server) as peer:
        peer.send(b"".join(peer.head(n, "GET", path) for n, path in [
            (1, "/slow/200"), (3, "/"), (5, "/late/100"), (7, "/facts"),
        ]))  # fmt: skip
        assert peer.answer(1).body == b"slow"
        assert peer.finished == [3, 7, 5, 1]


def test_bodies_come_whole_and_in_pieces(server: Server) -> None:
    body = bytes(range(256)) * 1024
    with connect(server) as peer:
        # More than a stream's window: the rest is sent as the handler takes it.
        peer.send(peer.head(1, "POST", "/echo", [("content-length", str(len(body)))], end=False))
        send_body(peer, 1, body)
        assert peer.answer(1).body == body
        peer.send(peer.head(3, "POST", "/upper", end=False))
        peer.send(frame(DATA, 0, 3, b"abc"))
        while peer.answers.get(3, StreamResponse()).body != b"ABC":
            peer.step()
        peer.send(frame(DATA, END_STREAM, 3, b"de"))
        assert peer.answer(3).body == b"ABCDE"
        peer.request(5, "POST", "/echo", b"")
        assert peer.answer(5).body == b""


def send_body(peer: H2Peer, stream: int, body: bytes) -> None:
    """As the windows allow; both are followed from the server's updates."""
    windows = {0: 65535, stream: 65535}
    at = 0
    while at < len(body):
        room = min(16384, *windows.values(), len(body) - at)
        if room <= 0:
            got = peer.step()
            if got.kind == 8 and got.stream in windows:
                windows[got.stream] += int.from_bytes(got.payload, "big")
            continue
        end = END_STREAM if at + room == len(body) else 0
        peer.send(frame(DATA, end, stream, body[at : at + room]))
        at += room
        windows = {name: window - room for name, window in windows.items()}


def test_a_body_that_nobody_reads_stops_at_its_window(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/lazy", end=False))
        for _ in range(3):
            peer.send(frame(DATA, 0, 1, b"x" * 16384))
        peer.send(frame(DATA, 0, 1, b"x" * (65535 - 3 * 16384)))
        # The other streams go on, and no window is opened for this one.
        assert peer.get(3, "/").body == b"Hello"
        peer.get(5, "/open")
        got = peer.step()
        while not (got.kind == 8 and got.stream == 1):
            got = peer.step()
        peer.send(frame(DATA, END_STREAM, 1, b"y"))
        assert peer.answer(1).body == b"65536"


def test_trailers_go_both_ways(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/trailers", end=False) + frame(DATA, 0, 1, b"abc"))
        block = peer.block([("x-sum", "3")])
        peer.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, block))
        seen = json.loads(peer.answer(1).body)
        assert seen == {"body": "abc", "trailers": [["x-sum", "3"]]}
        answer = peer.get(3, "/digest")
        assert (bytes(answer.body), answer.trailers) == (b"abcde", {"x-total": "5"})


def test_continue_is_said_when_the_body_is_asked_for(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "POST", "/echo", [("expect", "100-continue")], end=False))
        while not peer.answers.get(1, StreamResponse()).informational:
            peer.step()
        peer.send(frame(DATA, END_STREAM, 1, b"now"))
        answer = peer.answer(1)
        assert (answer.informational[0][0], bytes(answer.body)) == (100, b"now")
        peer.send(peer.head(3, "POST", "/ignore", [("expect", "100-continue")], end=False))
        assert (peer.answer(3).informational, peer.answer(3).status) == ([], 200)


def test_an_answer_waits_for_its_window_and_holds_its_handler(server: Server) -> None:
    with connect(server, {INITIAL_WINDOW: 0}, opens_windows=False) as peer:
        peer.send(peer.head(1, "GET", "/endless"))
        peer.send(peer.head(3, "GET", "/"))
        while 3 not in peer.answers:
            peer.step()
        wait_for(lambda: int(server.get("/sent").body) > 0, "the first piece")
        held = int(server.get("/sent").body)
        assert held <= 3 * 65536
        assert int(server.get("/sent").body) == held
        peer.open_window(1, 100)
        while len(peer.answers.get(1, StreamResponse()).body) < 100:
            peer.step()
        # The other one has a window of its own.
        peer.open_window(3, 5)
        assert peer.answer(3).body == b"Hello"
        assert len(peer.answers[1].body) == 100
        peer.reset(1)
        wait_for(lambda: "closed" in events(server), "the generator to be closed")


def test_a_reset_cancels_its_handler_and_nobody_elses(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "GET", "/slow/20000") + peer.head(3, "GET", "/slow/300"))
        wait_for(lambda: events(server).count("began") == 2, "both to begin")
        peer.reset(1)
        wait_for(lambda: "cancelled" in events(server), "the cancellation")
        assert peer.answer(3).body == b"slow"
        assert events(server).count("cancelled") == 1
        assert peer.get(5, "/").status == 200


def test_events_are_sent_at_once_and_end_with_their_reader(server: Server) -> None:
    with connect(server) as peer:
        peer.send(peer.head(1, "GET", "/ticks") + peer.head(3, "GET", "/ticks"))
        while any(b"data: 3" not in peer.answers.get(n, StreamResponse()).body for n in (1, 3)):
            peer.step()
        assert peer.answers[1].headers["content-type"].startswith("text/event-stream")
        peer.reset(1)
        wait_for(lambda: events(server).count("silent") == 1, "the first to be cancelled")
        before = len(peer.answers[3].body)
        while len(peer.answers[3].body) == before:
            peer.step()
    wait_for(lambda: events(server).count("silent") == 2, "the other, with its connection")


def test_a_client_that_goes_away_cancels_all_it_has_asked(server: Server) -> None:
    with connect(server) as peer:
        peer.send(b"".join(peer.head(n, "GET", "/slow/20000") for n in (1, 3, 5)))
        wait_for(lambda: events(server).count("began") == 3, "all to begin")
    wait_for(lambda: events(server).count("cancelled") == 3, "all to be cancelled")


def test_failures_stay_with_their_streams(server: Server) -> None:
    with connect(server) as peer:
        assert peer.get(1, "/broken").status == 500
        half = peer.get(3, "/half")
        assert (half.status, half.reset) == (200, 2)
        assert peer.get(5, "/").body == b"Hello"
        # A body that is too long is answered, and the rest of it taken back.
        peer.send(peer.head(7, "POST", "/echo", [("content-length", "99999999999")], end=False))
        assert peer.answer(7).status == 413
        assert peer.get(9, "/").body == b"Hello"


@pytest.mark.parametrize("early", [False, True], ids=["update", "early update"])
def test_urgent_answers_overtake(server: Server, early: bool) -> None:
    update = frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\5u=0")
    with connect(server, opens_windows=False) as peer:
        peer.send(update * early)
        peer.send(peer.head(1, "GET", "/large/600", [("priority", "u=5")]))
        peer.send(peer.head(3, "GET", "/large/40", [("priority", "u=1")]))
        peer.send(peer.head(5, "GET", "/large/20"))
        peer.send(update * (not early))
        # The connection's window is used up by the first; then it is opened for all.
        while sum(len(answer.body) for answer in peer.answers.values()) < 65535:
            peer.step()
        for stream in (1, 3, 5):
            peer.open_window(stream, 1 << 20)
        peer.ping()
        peer.open_window(0, 1 << 20)
        peer.answer(1)
        order = [stream for stream in peer.finished if stream in (1, 3, 5)]
        assert order == [5, 3, 1]


def test_requests_above_the_limit_are_shed_or_refused(serve) -> None:
    server = serve(APP, "--limit-concurrency", "2")
    with connect(server) as peer:
        peer.send(b"".join(peer.head(n, "GET", "/slow/300") for n in (1, 3, 5)))
        shed = peer.answer(5)
        assert (shed.status, shed.headers["retry-after"]) == (503, "1")
        assert peer.answer(1).status == peer.answer(3).status == 200
    server = serve(APP, "--h2-streams-max", "2")
    with connect(server) as peer:
        assert peer.get(1, "/").status == 200
        assert peer.settings[3] == 2
        peer.send(b"".join(peer.head(n, "GET", "/slow/300") for n in (3, 5, 7)))
        assert peer.answer(7).reset == 7
        assert peer.answer(3).status == peer.answer(5).status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_leave_is_taken_in_two_steps(serve, number: signal.Signals) -> None:
    server = serve(APP)
    with connect(server) as peer:
        peer.send(peer.head(1, "GET", "/slow/400"))
        wait_for(lambda: "began" in events(server), "the handler")
        server.signal(number)
        while not peer.goaways:
            peer.step()
        assert peer.goaways == [(0x7FFFFFFF, NO_ERROR)]
        # It was under way when the notice came: it is still answered.
        peer.send(peer.head(3, "GET", "/"))
        assert peer.answer(3).body == b"Hello"
        assert peer.answer(1).body == b"slow"
        peer.to_end()
        assert peer.goaways[-1] == (3, NO_ERROR)
    assert server.wait() == 0


def test_idle_connections_take_leave_too(serve) -> None:
    server = serve(APP)
    with connect(server) as peer:
        assert peer.get(1, "/").status == 200
        server.signal(signal.SIGTERM)
        peer.to_end()
        assert peer.goaways == [(0x7FFFFFFF, NO_ERROR), (1, NO_ERROR)]
    assert server.wait() == 0


def test_connections_are_counted(serve) -> None:
    server = serve(APP, "--management", "127.0.0.1:0")
    with connect(server) as peer:
        assert peer.get(1, "/").status == 200
        assert server.get("/").status == 200
        url = f"http://127.0.0.1:{server.management()}/metrics"
        with urllib.request.urlopen(url, timeout=30) as answer:
            text = answer.read().decode()
    assert (
        "citius_http2_connections_total 1.0" in text or "citius_http2_connections_total 1\n" in text
    )


def test_access_lines_tell_the_version_and_the_fault(serve) -> None:
    server = serve(APP, "--access-log-format", "json")
    with connect(server) as peer:
        peer.get(1, "/")
        peer.send(peer.head(3, "GET", "/slow/20000"))
        wait_for(lambda: "began" in events(server), "the handler")
        peer.reset(3, CANCEL)
        wait_for(lambda: "cancelled" in events(server), "its end")
        peer.send(b"\0\0\0\0\0\0\0\0\0")
        peer.to_end()
    wait_for(lambda: "frame_sequence" in server.out, "the line of the fault")
    lines = [json.loads(line) for line in server.out.splitlines()]
    ours = {line["target"]: line for line in lines if line.get("protocol") == "HTTP/2"}
    assert (ours["/"]["status"], ours["/"]["bytes"]) == (200, 5)
    assert ours["/slow/20000"]["fault"] == "stream_reset"
