"""Runs of one worker: begun, read, resumed, cancelled, limited; what generators do."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from rig import Server, application, wait_for
from runs_rig import Reader, begin, cancel, state
from wspeer import RawSocket

APP = application("runs_app")


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., Server]) -> Server:
    return serve_module(APP)


def ask(count: int = 3) -> str:
    return json.dumps({"text": "why", "count": count})


def test_a_run_is_begun_with_its_events(server: Server) -> None:
    reader = Reader(server, "/chats/7/answers", method="POST", body=ask(), x_user="ann")
    assert reader.status == 200
    events = list(reader)
    assert [one.id for one in events] == ["1", "2", "3", "4"]
    assert [json.loads(one.data) for one in events[:3]] == [
        {"text": "session 7 why", "number": number} for number in range(3)
    ]
    assert (events[3].event, json.loads(events[3].data)) == ("end", {"state": "done"})
    # The dependency's rest is done when the run is over.
    ended = json.loads(server.get("/ended").body)
    assert ended[-2:] == ["answer", "session"]
    # A client that has all is told not to come back.
    again = Reader(server, reader.location, after="4", x_user="ann")
    assert again.status == 204


def test_a_reader_goes_on_where_it_was(server: Server) -> None:
    url = begin(server, "/counts?n=60")
    first = Reader(server, url)
    seen = [first.next() for _ in range(5)]
    first.close()
    rest = list(Reader(server, url, after=seen[-1].id))
    assert [one.data for one in [*seen, *rest]][:-1] == [str(n) for n in range(60)]
    assert rest[-1].event == "end"
    # The whole again, and the state.
    assert [one.data for one in Reader(server, url)][:-1] == [str(n) for n in range(60)]
    assert state(server, url) == {
        "id": url.rpartition("/")[2], "url": url, "state": "done", "events": 61,
    }  # fmt: skip


def test_a_run_goes_on_without_a_reader(server: Server) -> None:
    url = begin(server, "/counts?n=3")
    wait_for(lambda: state(server, url)["state"] == "done", "the end of the run")


def test_delete_cancels(server: Server) -> None:
    url = begin(server, "/chats/1/answers", ask(10_000), x_user="bob")
    reader = Reader(server, url, x_user="bob")
    reader.next()
    assert cancel(server, url, x_user="bob") == 204
    *_, last = list(reader)
    assert (last.event, json.loads(last.data)) == (
        "end",
        {"state": "cancelled", "reason": "client"},
    )
    assert state(server, url, x_user="bob")["state"] == "cancelled"
    assert cancel(server, url, x_user="bob") == 204
    wait_for(lambda: json.loads(server.get("/ended").body)[-1] == "session", "its dependency's end")


def test_a_run_is_its_owners(server: Server) -> None:
    url = begin(server, "/chats/1/answers", ask(10_000), x_user="eve")
    assert server.get(url).status == 401
    assert server.get(url, x_user="mallory").status == 404
    assert cancel(server, url, x_user="mallory") == 404
    assert server.get(url.replace("/chats/1/", "/chats/2/"), x_user="eve").status == 404
    assert server.get(url[:-1] + ("a" if url[-1] != "a" else "b"), x_user="eve").status == 404
    socket = RawSocket(server, url)
    assert socket.reply.status == 401
    assert state(server, url, x_user="eve")["state"] == "running"
    assert cancel(server, url, x_user="eve") == 204


def test_runs_of_an_owner_are_limited(server: Server) -> None:
    urls = [begin(server, "/chats/1/answers", ask(10_000), x_user="max") for _ in range(3)]
    with server.connect() as peer:
        reply = peer.request(
            "POST",
            "/chats/1/answers",
            ask().encode(),
            content_type="application/json",
            x_user="max",
        )
        assert (reply.status, reply.headers["retry-after"]) == (429, "1")
    other = begin(server, "/chats/1/answers", ask(10_000), x_user="other")
    assert cancel(server, urls[0], x_user="max") == 204
    urls[0] = begin(server, "/chats/1/answers", ask(10_000), x_user="max")
    for url in urls:
        assert cancel(server, url, x_user="max") == 204
    assert cancel(server, other, x_user="other") == 204


def test_a_key_begins_one_run(server: Server) -> None:
    fields = {"x_user": "kim", "idempotency_key": "k1"}
    url = begin(server, "/chats/1/answers", ask(2), **fields)
    assert begin(server, "/chats/1/answers", ask(2), **fields) == url
    assert begin(server, "/chats/1/answers", ask(2), x_user="kam", idempotency_key="k1") != url
    with server.connect() as peer:
        reply = peer.request(
            "POST", "/chats/1/answers", ask(3).encode(), content_type="application/json",
            x_user="kim", idempotency_key="k1",
        )  # fmt: skip
        assert reply.status == 422
        # Whoever has no right to begin a run learns nothing of one.
        refused = peer.request(
            "POST",
            "/chats/1/answers",
            ask(2).encode(),
            content_type="application/json",
            idempotency_key="k1",
        )
        assert refused.status == 401


def test_a_run_that_nothing_reads_is_cancelled(server: Server) -> None:
    url = begin(server, "/hasty")
    reader = Reader(server, url)
    reader.next()
    for _ in range(30):  # longer than its grace
        reader.next()
    reader.close()
    wait_for(lambda: state(server, url)["state"] == "cancelled", "the end of its grace")
    *_, last = list(Reader(server, url))
    assert json.loads(last.data) == {"state": "cancelled", "reason": "no_reader"}


def test_a_run_has_an_end_in_time_and_is_forgotten(server: Server) -> None:
    url = begin(server, "/short")
    *_, last = list(Reader(server, url))
    assert json.loads(last.data) == {"state": "cancelled", "reason": "deadline"}
    wait_for(lambda: server.get(url).status == 404, "the run to be forgotten")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("http", {"state": "failed", "status": 402, "detail": "no money"}),
        ("value", {"state": "failed", "detail": "the run failed"}),
        ("id", {"state": "failed", "detail": "the run failed"}),
        ("end", {"state": "failed", "detail": "the run failed"}),
        ("cancelled", {"state": "failed", "detail": "the run failed"}),
    ],
)
def test_generators_that_fail(server: Server, what: str, said: dict[str, object]) -> None:
    first, last = list(Reader(server, f"/raises/{what}", method="POST"))
    assert (first.data, last.event, json.loads(last.data)) == ("first", "end", said)


def test_a_generator_that_yields_nothing(server: Server) -> None:
    url = begin(server, "/silent")
    reader = Reader(server, url)
    assert state(server, url)["events"] == 0
    assert cancel(server, url) == 204
    assert json.loads(reader.next().data) == {"state": "cancelled", "reason": "client"}


def test_a_generator_that_catches_its_cancellation(server: Server) -> None:
    url = begin(server, "/stubborn")
    reader = Reader(server, url)
    # One that is cancelled before it has begun is closed, and sees no cancellation.
    assert reader.next().data == "tick"
    assert cancel(server, url) == 204
    *_, last = list(reader)
    assert last.event == "end"
    wait_for(lambda: "stubborn" in json.loads(server.get("/ended").body), "the cancellation")


def test_a_generator_of_a_thread(server: Server) -> None:
    *events, last = list(Reader(server, "/threads", method="POST"))
    assert [one.data.rpartition("_")[0] for one in events] == ["citius-run"] * 3
    assert last.event == "end"


def test_what_is_no_longer_kept_is_a_gap(server: Server) -> None:
    url = begin(server, "/fast")
    wait_for(lambda: state(server, url)["state"] == "done", "the end of the run")
    gap, *rest = list(Reader(server, url))
    assert (gap.event, json.loads(gap.data)) == ("gap", {"missed": 90})
    assert [one.data for one in rest[:-1]] == [f"event {n}\nsecond line" for n in range(90, 100)]
    assert [one.id for one in rest] == [str(n) for n in range(91, 102)]


def test_a_slow_reader_is_told_what_it_has_missed(server: Server) -> None:
    """It costs no memory: what it has not taken in time is a gap, and nothing is left out in silence."""
    url = begin(server, "/fast?n=10000")
    reader = Reader(server, url)
    wait_for(lambda: state(server, url)["state"] == "done", "the end of the run")
    seen, missed = 0, 0
    for one in reader:
        if one.event == "gap":
            missed += json.loads(one.data)["missed"]
            continue
        seen += 1
        assert int(one.id) == seen + missed
    assert one.event == "end"
    assert seen + missed == 10_001
    assert missed > 0


def test_a_websocket_gets_the_same(server: Server) -> None:
    url = begin(server, "/counts?n=20")
    socket = RawSocket(server, url + "?after=2").accepted()
    messages = [json.loads(socket.message()) for _ in range(19)]
    assert messages[0] == {"id": 3, "event": "message", "data": "2"}
    assert messages[-1]["event"] == "end"
    assert json.loads(messages[-1]["data"]) == {"state": "done"}
