"""What is lost is told to the clients it is lost for: a gap, with how many messages are missing."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable

import pytest
from citius import App, ConfigError
from citius.web.realtime.broadcast import Broadcast
from citius.web.realtime.history import LIVE, History, Kept, gap_event, unpacked
from citius.web.realtime.rooms import HistoryRoom
from rig import Peer, Server, application, wait_for
from wspeer import RawSocket

APP = application("gaps_app")
Serve = Callable[..., Server]


# --- histories ------------------------------------------------------------------------------------


def kept(sender: str, number: int) -> Kept:
    return Kept(sender * 8, number, None, b"data: %b%d\n\n" % (sender.encode(), number))


def texts(events: list[bytes]) -> list[str]:
    return re.findall(r"data: (.*)\n\n", b"".join(events).decode())


def history_of(messages_max: int, *messages: tuple[str, int], is_ordered: bool = False) -> History:
    history = History(messages_max)
    history.is_ordered = is_ordered
    for sender, number in messages:
        history.add(kept(sender, number))
    return history


UNKNOWN = '{"missed":null}'


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_client_whose_last_message_is_gone_is_told(is_ordered: bool) -> None:
    """Scale S6: and one whose last message is there, or is the one before the first, is not."""
    numbers = [("a", number) for number in range(1, 11)]
    history = history_of(3, *numbers, is_ordered=is_ordered)
    for number, expected in (
        (10, []),
        (9, ["a10"]),
        (8, ["a9", "a10"]),
        (7, ["a8", "a9", "a10"]),
        (6, [UNKNOWN if is_ordered else '{"missed":1}', "a8", "a9", "a10"]),
        (1, [UNKNOWN if is_ordered else '{"missed":6}', "a8", "a9", "a10"]),
    ):
        assert texts(history.missed_since(f"aaaaaaaa-{number:x}")) == expected, number
    for known in ("bbbbbbbb-7", "of another server", "aaaaaaaa-zz"):
        assert texts(history.missed_since(known)) == [UNKNOWN, "a8", "a9", "a10"]
    assert history.missed_since(None) == history.missed_since("") == []


def test_a_message_that_has_not_come_yet_is_no_gap() -> None:
    history = history_of(10, ("a", 1), ("a", 2), is_ordered=True)
    assert texts(history.missed_since("aaaaaaaa-3")) == ["a1", "a2"]
    history = history_of(10, ("a", 1), ("b", 4))
    assert texts(history.missed_since("aaaaaaaa-1.bbbbbbbb-5")) == []


def test_a_hole_of_one_sender_is_told_beside_others() -> None:
    """Orders differ between workers: one that has dropped a5 may still have b5, which the client has seen."""
    history = history_of(3, ("a", 5), ("b", 5), ("a", 6), ("b", 6))
    assert texts(history.missed_since("aaaaaaaa-4.bbbbbbbb-5")) == ['{"missed":1}', "a6", "b6"]
    assert texts(history.missed_since("aaaaaaaa-5.bbbbbbbb-5")) == ["a6", "b6"]


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_gap_stands_where_it_is(is_ordered: bool) -> None:
    """Clients that come back to before it are told, those behind it are not, and it is no message."""
    history = history_of(4, ("a", 1), ("a", 2), is_ordered=is_ordered)
    assert history.add_gap(3) == gap_event(3)
    history.add(kept("a", 6))
    assert texts(history.missed_since("aaaaaaaa-1")) == ["a2", '{"missed":3}', "a6"]
    assert texts(history.missed_since("aaaaaaaa-2")) == ['{"missed":3}', "a6"]
    assert texts(history.missed_since("aaaaaaaa-6")) == []
    assert [unpacked(one)[1].number for one in history.packed(10_000)] == [1, 2, 6]
    for number in (7, 8, 9):
        history.add(kept("a", number))
    assert texts(history.missed_since("aaaaaaaa-6")) == ["a7", "a8", "a9"]


def test_a_full_history_takes_what_another_worker_has_sent_since() -> None:
    """Scale S7: histories of two workers, taken one after the other, while both send."""
    history = History(6)
    for old in (kept("a", 1), kept("a", 2), kept("a", 3), kept("b", 1), kept("b", 2), kept("a", 4)):
        history.add_old(old)
    for old in (kept("a", 3), kept("b", 1), kept("b", 2), kept("a", 4), kept("b", 3)):
        history.add_old(old)
    history.add(kept("b", 4))
    assert texts(history.missed_since("aaaaaaaa-4.bbbbbbbb-2")) == ["b3", "b4"]
    # What was dropped is not taken for new.
    history.add_old(kept("d", 7))
    history.add_old(kept("a", 1))
    assert texts(history.missed_since("aaaaaaaa-4.bbbbbbbb-4")) == []


def test_a_room_with_a_history_takes_no_on_gap() -> None:
    with pytest.raises(ConfigError, match="says itself where messages are missing"):
        App().room("a", history=10, on_gap=lambda missed: None)  # type: ignore[call-overload]


def test_what_the_relay_tells_is_kept_for_those_that_come_back() -> None:
    for made in (HistoryRoom(10), Broadcast(history=10)):
        made._deliver(False, kept("a", 1).packed(LIVE))
        made._gap(0)
        made._deliver(False, kept("a", 9).packed(LIVE))
        assert made._history is not None
        said = b"".join(made._history.missed_since("aaaaaaaa-1")).decode()
        assert UNKNOWN in said
        assert said.index(UNKNOWN) < said.index("a9")


# --- workers of one server ------------------------------------------------------------------------


class Counted:
    """A client of one worker: numbers that it got, messages that it was told are missing."""

    def __init__(self, server: Server, kind: str, known: str = "") -> None:
        self.kind = kind
        self.got: list[int] = []
        self.missing = 0
        self.last_id = known
        if kind in ("news", "short"):
            self.peer = server.connect()
            said = f"Last-Event-ID: {known}\r\n" if known else ""
            self.peer.send(f"GET /events/{kind} HTTP/1.1\r\nHost: a\r\n{said}\r\n".encode())
            head = self.peer.read_until(b"\r\n\r\n").decode()
            self.worker = int(head.partition("x-worker: ")[2].split()[0])
            return
        path = f"/{kind}?after={known}" if known else f"/{kind}"
        self.socket = RawSocket(server, path).accepted()
        self.peer = self.socket.peer
        self.worker = int(str(self.socket.message()).split()[1])

    def until(self, number: int) -> None:
        """Take what comes up to that number."""
        while not self.got or self.got[-1] < number:
            self.take()

    def until_all(self, count: int) -> None:
        """Take what comes until so many have come or are known to be lost."""
        while len(self.got) + self.missing < count:
            self.take()

    def take(self) -> None:
        if self.kind in ("plain", "log"):
            return self._take(str(self.socket.message()))
        event = self.peer.read_until(b"\n\n").decode()
        if (found := re.search(r"^id: (.*)$", event, re.MULTILINE)) is not None:
            self.last_id = found[1]
        if (found := re.search(r"^data: (.*)$", event, re.MULTILINE)) is None:
            return None
        if "event: gap" in event:
            return self._missing(json.loads(found[1])["missed"])
        self.got.append(int(found[1].split()[0]))
        return None

    def _take(self, said: str) -> None:
        if self.kind == "plain":
            if said.startswith("gap "):
                self._missing(int(said.split()[1]))
            else:
                self.got.append(int(said.split()[0]))
            return
        identifier, _, body = said.partition("\n")
        if identifier == "gap":
            self._missing(json.loads(body)["missed"])
        else:
            self.last_id = identifier
            self.got.append(int(body.split()[0]))

    def _missing(self, count: int | None) -> None:
        assert count, "it is known how many"
        self.missing += count


class Sender:
    """Has one worker send, over a connection to it."""

    def __init__(self, server: Server, worker: int) -> None:
        found: list[Peer] = []

        def is_there() -> bool:
            peer = server.connect()
            if int(peer.request("POST", "/flood/1/0/1").body) == worker:
                found.append(peer)
            else:
                peer.close()
            return bool(found)

        wait_for(is_there, "a connection to the worker")
        self.peer = found[0]

    def flood(self, first: int, count: int, size: int) -> None:
        assert self.peer.request("POST", f"/flood/{first}/{count}/{size}").status == 200


KINDS = ["plain", "log", "news", "short"]


def in_worker(server: Server, kind: str, *, other_than: int = 0) -> Counted:
    found: list[Counted] = []

    def is_there() -> bool:
        client = Counted(server, kind)
        if client.worker == other_than or (found and not other_than):
            client.peer.close()
            return False
        found.append(client)
        return True

    wait_for(is_there, f"a client of {kind} in another worker than {other_than}")
    return found[0]


def test_a_worker_that_stood_still_tells_its_clients(serve: Serve) -> None:
    """Scale S6: of all messages that were sent, each has come, or its client has been told of it."""
    server = serve(APP, "--workers", "2", "--room-queue-bytes-max", "60000")
    for kind in KINDS:
        stopped = in_worker(server, kind)
        other = in_worker(server, kind, other_than=stopped.worker)
        sender = Sender(server, other.worker)
        os.kill(stopped.worker, signal.SIGSTOP)
        try:
            sent = 600
            sender.flood(1, sent, 1000)
            other.until(sent)
            assert other.got == list(range(1, sent + 1))
            assert other.missing == 0
        finally:
            os.kill(stopped.worker, signal.SIGCONT)

        sender.flood(sent + 1, 1, 10)
        stopped.until_all(sent + 1)
        assert len(stopped.got) + stopped.missing == sent + 1, kind
        assert stopped.missing > 0, kind
        assert stopped.got == sorted(set(stopped.got))
        for client in (stopped, other, sender):
            client.peer.close()


def test_what_is_lost_last_is_told_without_a_message_behind_it(serve: Serve) -> None:
    server = serve(APP, "--workers", "2", "--room-queue-bytes-max", "60000")
    stopped = in_worker(server, "short")
    other = in_worker(server, "short", other_than=stopped.worker)
    sender = Sender(server, other.worker)
    os.kill(stopped.worker, signal.SIGSTOP)
    try:
        sender.flood(1, 600, 1000)
    finally:
        os.kill(stopped.worker, signal.SIGCONT)
    stopped.until_all(600)  # nothing else is sent
    assert stopped.missing > 0
    assert len(stopped.got) + stopped.missing == 600
    for client in (stopped, other, sender):
        client.peer.close()


@pytest.mark.parametrize("how", ["HUP", "killed"])
def test_successors_have_the_histories_before_they_accept(serve: Serve, how: str) -> None:
    """Scale S7: clients that come back to a new worker at once miss nothing, and are told of no gap."""
    server = serve(APP, "--workers", "2")
    sent = 2000
    first = Counted(server, "news")
    flood_by = Counted(server, "log")
    with server.connect() as peer:
        assert peer.request("POST", f"/flood/1/{sent}/300").status == 200
    first.until(5)
    flood_by.until(5)
    known = {"news": first.last_id, "log": flood_by.last_id}
    old = {in_worker(server, "short").worker}
    old.add(in_worker(server, "short", other_than=next(iter(old))).worker)
    if how == "HUP":
        server.signal(signal.SIGHUP)
    else:
        os.kill(next(iter(old)), signal.SIGKILL)
    seen: set[int] = set()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (len(seen) >= 2 and seen - old):
        for kind, last in known.items():
            try:
                client = Counted(server, kind, last)
            except (OSError, AssertionError):
                continue  # its worker has just ended
            if client.worker not in old:
                client.until(sent)
                assert client.got == list(range(6, sent + 1)), kind
                assert client.missing == 0
                seen.add(client.worker)
            else:
                seen.add(client.worker)
            client.peer.close()
    assert seen - old, "a new worker was reached"
