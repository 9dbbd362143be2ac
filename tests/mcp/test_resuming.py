"""Streams that clients come back to with ``Last-Event-ID``: over workers, machines, restarts and losses."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from engines_rig import Redis
from mcp_rig import ALL, Listening, Session, Stream, accepted
from rig import Server, application, children, wait_for

APP = application("mcp_app")
Serve = Callable[..., Server]
PRIMED, UNPRIMED = "2025-11-25", "2025-06-18"


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, serve_module: Serve) -> Server:
    workers: int = request.param
    return serve_module(APP, "--workers", str(workers)).wait_ready()


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with http_of(server) as one:
        yield one


def http_of(server: Server) -> httpx.Client:
    """Each request has a connection of its own, so that any worker may get it."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", limits=limits, timeout=20)


def call(
    session: Session, port: int, name: str, token: int | None = 1, **arguments: Any
) -> tuple[int, Stream]:
    """The identifier of a call, and its stream."""
    meta = {} if token is None else {"progressToken": token}
    message = session.message("tools/call", {"name": name, "arguments": arguments}, meta)
    return message["id"], Stream(session, message, port)


def progress_of(messages: list[dict[str, Any]]) -> list[int]:
    return [one["params"]["progress"] for one in messages if "method" in one]


def text_of(message: dict[str, Any]) -> str:
    return message["result"]["content"][0]["text"]


def get(http: httpx.Client, session: Session, last_id: str) -> httpx.Response:
    assert session.session is not None
    fields = {"mcp-session-id": session.session, "accept": "text/event-stream"}
    return http.get("/mcp", headers=fields | {"last-event-id": last_id})


@pytest.mark.parametrize("version", [UNPRIMED, PRIMED])
def test_a_client_comes_back_for_the_rest(server: Server, http: httpx.Client, version: str) -> None:
    session = Session(http, version)
    for _ in range(3):
        number, stream = call(session, server.port, "counts", to=8)
        seen = [stream.next() for _ in range(3)]
        stream.close()
        # Several times: each gets what follows the event that it names.
        for _ in range(2):
            again = Listening(session, server.port, stream.last_id)
            seen.append(again.next())
            again.close()
        rest = Listening(session, server.port, again.last_id)
        seen = [*seen[:4], *rest.rest()]
        assert progress_of(seen) == list(range(1, 9))
        assert (seen[-1]["id"], text_of(seen[-1])) == (number, "counted to 8")
        rest.close()
        stream.close()


@pytest.mark.parametrize("version", [UNPRIMED, PRIMED])
def test_the_first_event_has_an_identifier_alone(
    server: Server, http: httpx.Client, version: str
) -> None:
    """Clients since 2025-11-25 can come back before there was a message; earlier ones read no empty event."""
    session = Session(http, version)
    _, stream = call(session, server.port, "counts", to=2)
    stream.rest()
    stream.close()
    message = session.message("tools/call", {"name": "counts", "arguments": {"to": 1}}, {})
    message["params"]["_meta"] = {"progressToken": 1}
    data = session.post(message).content
    assert (b"data: \n" in data) is (version == PRIMED)
    if version == PRIMED:
        identifier, _, rest = data.partition(b"\ndata: \n\n")
        assert identifier.startswith(b"id: ")
        again = get(http, session, identifier[4:].decode())
        assert rest.strip() == again.content.removeprefix(b":\n\n").strip()


def test_an_answer_to_a_question_that_was_read_later(server: Server, http: httpx.Client) -> None:
    session = Session(http, PRIMED, ALL)
    for number in range(4):
        identifier, stream = call(session, server.port, "asks", token=None, number=number)
        while stream.last_id is None:
            stream.received += next(stream.pieces)
            stream.last_id = (
                stream.received.decode().partition("id: ")[2].partition("\n")[0] or None
            )
        stream.close()
        again = Listening(session, server.port, stream.last_id)
        question = again.next()
        assert question["method"] == "elicitation/create"
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": accepted(name="a")}
        assert session.post(answer).status_code == 202
        last = again.next()
        assert (last["id"], text_of(last)) == (identifier, f"a {number}")
        assert again.rest() == []
        again.close()


def test_streams_are_of_their_sessions(server: Server, http: httpx.Client) -> None:
    session, stranger = Session(http, PRIMED), Session(http, PRIMED)
    _, stream = call(session, server.port, "counts", to=2)
    stream.rest()
    assert stream.last_id is not None
    run, _, _ = stream.last_id.partition(":")
    stream.close()
    assert get(http, session, f"{run}:1").status_code == 200
    refused = get(http, stranger, f"{run}:1")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    assert get(http, session, f"{run}x:1").status_code == 400


def test_calls_are_cancelled_wherever_their_streams_are(server: Server, http: httpx.Client) -> None:
    session = Session(http, PRIMED)
    identifier, stream = call(session, server.port, "waits")
    stream.next()
    stream.close()
    again = Listening(session, server.port, stream.last_id)
    params = {"requestId": identifier}
    session.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert again.rest() == []
    again.close()
    server.wait_for_log("waits was cancelled")


def test_a_stream_that_its_call_closes(server: Server, http: httpx.Client) -> None:
    """No message is lost, at whichever instant the stream is closed."""
    session = Session(http, PRIMED)
    for times in (1, 2, 5):
        _, stream = call(session, server.port, "polled", times=times)
        seen = stream.rest()
        assert b"retry: 10\n" in stream.received or stream.last_id is not None
        for _ in range(20):
            if seen and "result" in seen[-1]:
                break
            stream.close()
            stream = Listening(session, server.port, stream.last_id)
            seen += stream.rest()
        stream.close()
        assert progress_of(seen) == list(range(1, times + 1))
        assert text_of(seen[-1]) == "polled"


def test_a_result_of_any_size(server: Server, http: httpx.Client) -> None:
    """The client that reads gets it; one that comes back is told that it was too large to be kept."""
    session = Session(http, PRIMED)
    for size, is_kept in ((100_000, True), (3_000_000, False)):
        _, stream = call(session, server.port, "large", size=size)
        stream.next()
        before = stream.last_id
        assert text_of(stream.rest()[-1]) == "x" * size
        stream.close()
        again = Listening(session, server.port, before)
        last = again.rest()[-1]
        again.close()
        assert ("result" in last) is is_kept
        assert is_kept or "too many to be kept" in last["error"]["message"]


def test_news_that_were_missed(server: Server, http: httpx.Client) -> None:
    session, other = Session(http, PRIMED), Session(http)
    session.result("resources/subscribe", {"uri": "notes://1"})
    session.result("resources/subscribe", {"uri": "notes://2"})
    stream = Listening(session, server.port)
    other.call("touch", uri="notes://1")
    assert stream.next()["params"]["uri"] == "notes://1"
    stream.close()
    for uri in ("notes://2", "notes://3", "notes://1"):
        other.call("touch", uri=uri)
    again = Listening(session, server.port, stream.last_id)
    # Of two workers, in any order.
    assert {again.next()["params"]["uri"] for _ in range(2)} == {"notes://2", "notes://1"}
    other.call("touch", uri="notes://2")
    assert again.next()["params"]["uri"] == "notes://2"
    again.close()


def test_streams_take_no_places_of_runs(serve: Serve) -> None:
    """``runs_max`` of a run of the application counts no streams of calls."""
    server = serve(APP).wait_ready()
    with http_of(server) as http:
        session = Session(http, PRIMED)
        streams = [call(session, server.port, "waits")[1] for _ in range(3)]
        for stream in streams:
            stream.next()
        assert http.post("/runs").status_code == 202
        assert http.post("/runs").status_code == 503
        more = call(session, server.port, "counts", to=1)[1]
        assert text_of(more.rest()[-1]) == "counted to 1"
        assert more.last_id is not None
        for stream in (*streams, more):
            stream.close()


# --- losses ------------------------------------------------------------------------------------------------


def test_a_worker_that_is_killed(serve: Serve) -> None:
    """The client reads of another worker what the call had sent, and an error in place of its response."""
    server = serve(APP, "--workers", "2").wait_ready()
    with http_of(server) as http:
        session = Session(http, PRIMED)
        identifier, stream = call(session, server.port, "counts", to=100_000)
        seen = [stream.next() for _ in range(3)]
        os.kill(int(seen[0]["params"]["message"]), signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            stream.rest()
        stream.close()
        again = Listening(session, server.port, stream.last_id)
        *more, last = again.rest()
        again.close()
        numbers = progress_of(more)
        assert numbers == list(range(4, 4 + len(numbers)))
        assert last["id"] == identifier
        assert "cut off" in last["error"]["message"]


def test_a_call_that_no_client_comes_back_to(serve: Serve) -> None:
    server = serve(APP, env={"RESUME_S": "0.5"}).wait_ready()
    with http_of(server) as http:
        session = Session(http, PRIMED)
        _, stream = call(session, server.port, "waits")
        stream.next()
        assert "waits was cancelled" not in server.err
        stream.close()
        server.wait_for_log("waits was cancelled")
        # Its history is kept for as long again.
        wait_for(
            lambda: get(http, session, str(stream.last_id)).status_code == 400, "its history to go"
        )


def test_a_reload(serve: Serve) -> None:
    """A call of an old worker goes on while that drains; the new workers have its stream."""
    server = serve(APP, "--workers", "2", "--drain-s", "30").wait_ready()
    with http_of(server) as http:
        session = Session(http, PRIMED)
        _, stream = call(session, server.port, "counts", to=40)
        seen = [stream.next() for _ in range(3)]
        stream.close()
        old = set(children(server))
        server.signal(signal.SIGHUP)
        wait_for(lambda: set(children(server)) - old, "new workers")
        last_id = stream.last_id
        while "result" not in seen[-1]:
            try:
                again = Listening(session, server.port, last_id)
                seen += again.rest()
                last_id = again.last_id
                again.close()
            except httpx.TransportError:
                continue
        assert progress_of(seen) == list(range(1, 41))
        assert text_of(seen[-1]) == "counted to 40"


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_streams_are_of_all_machines(serve: Serve, tmp_path: Path) -> None:
    redis = Redis(tmp_path / "redis")
    secret = "a secret of both machines, which is long"
    env = {"CLUSTER": redis.url, "MCP_SECRET": secret}
    try:
        one, two = (serve(APP, env=env).wait_ready() for _ in range(2))
        with http_of(one) as http:
            session = Session(http, PRIMED)
            session.result("resources/subscribe", {"uri": "notes://1"})
            identifier, stream = call(session, one.port, "counts", to=30)
            seen = [stream.next() for _ in range(3)]
            stream.close()
            again = Listening(session, two.port, stream.last_id)
            seen += again.rest()
            again.close()
            assert progress_of(seen) == list(range(1, 31))
            assert (seen[-1]["id"], text_of(seen[-1])) == (identifier, "counted to 30")
            news = Listening(session, one.port)
            session.call("touch", uri="notes://1")
            assert news.next()["params"]["uri"] == "notes://1"
            news.close()
            session.call("touch", uri="notes://1")
            missed = Listening(session, two.port, news.last_id)
            assert missed.next()["params"]["uri"] == "notes://1"
            missed.close()
            # A machine that is killed.
            identifier, stream = call(session, one.port, "counts", to=100_000)
            stream.next()
            one.process.kill()
            with pytest.raises(httpx.TransportError):
                stream.rest()
            stream.close()
            again = Listening(session, two.port, stream.last_id)
            last = again.rest()[-1]
            again.close()
            assert last["id"] == identifier
            assert "cut off" in last["error"]["message"]
    finally:
        redis.close()
