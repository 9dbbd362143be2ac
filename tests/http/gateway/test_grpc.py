"""gRPC through a gateway: messages both ways, statuses in trailers, and every way in which a call can end."""

# pyright: basic

from __future__ import annotations

import queue
import struct
import threading

import h2.config
import h2.connection
import h2.events
import h2peer
import pytest
from http_peer import Talk
from rig import wait_for

MESSAGE = struct.pack(">BI", 0, 5) + b"hello"
CONTENT = (":status", "200"), ("content-type", "application/grpc")
TE = [("te", "trailers"), ("content-type", "application/grpc")]
ROUTES = pytest.mark.parametrize("route", ["v1", "hooked"])


class Behind:
    """A server of HTTP/2; what has come of its streams, and what it does next is told from outside."""

    def __init__(self) -> None:
        self.events: queue.Queue[h2.events.Event] = queue.Queue()
        self.lock = threading.Lock()
        self.talk: Talk | None = None
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.connection = h2.connection.H2Connection(config)

    def __call__(self, talk: Talk) -> None:
        self.talk = talk
        with self.lock:
            self.connection.initiate_connection()
            self.flush()
        while data := talk.read():
            with self.lock:
                for event in self.connection.receive_data(data):
                    if isinstance(event, h2.events.DataReceived):
                        self.connection.acknowledge_received_data(
                            event.flow_controlled_length, event.stream_id
                        )
                    self.events.put(event)
                self.flush()

    def flush(self) -> None:
        assert self.talk is not None
        if data := self.connection.data_to_send():
            self.talk.say(data)

    def next(self, kind: type) -> h2.events.Event:
        """The next event of a kind; others are dropped."""
        while True:
            event = self.events.get(timeout=20)
            if isinstance(event, kind):
                return event

    def do(self, act) -> None:
        with self.lock:
            act(self.connection)
            self.flush()


@pytest.fixture
def behind() -> Behind:
    return Behind()


def begin(peer, route: str, stream: int = 1, *, end: bool = False) -> None:
    peer.send(peer.head(stream, "POST", f"/{route}/svc/Call", TE, end=end))


def until(peer, condition) -> None:
    while not condition(peer.answers.get(1, h2peer.StreamResponse())):
        peer.step()


@ROUTES
def test_messages_go_both_ways_at_once(gateway, behind: Behind, route: str) -> None:
    """The head comes before the request has ended, and each message before the next one is made."""
    before = gateway(behind, H2="prior")
    with h2peer.connect(before.server) as peer:
        begin(peer, route)
        stream = behind.next(h2.events.RequestReceived).stream_id
        behind.do(lambda it: it.send_headers(stream, CONTENT))
        until(peer, lambda found: found.status == 200)
        for number in range(1, 20):
            peer.send(h2peer.frame(h2peer.DATA, 0, 1, MESSAGE))
            assert behind.next(h2.events.DataReceived).data == MESSAGE
            behind.do(lambda it: it.send_data(stream, MESSAGE))
            size = number * len(MESSAGE)
            until(peer, lambda found, size=size: len(found.body) == size)
        # The client's half is closed, the server's goes on.
        peer.send(h2peer.frame(h2peer.DATA, h2peer.END_STREAM, 1))
        behind.next(h2.events.StreamEnded)
        behind.do(lambda it: it.send_data(stream, MESSAGE))
        behind.do(lambda it: it.send_headers(stream, [("grpc-status", "0")], end_stream=True))
        found = peer.answer(1)
        assert bytes(found.body) == MESSAGE * 20
        assert found.trailers == {"grpc-status": "0"}
        assert found.reset is None


@ROUTES
def test_a_response_of_trailers_alone(gateway, behind: Behind, route: str) -> None:
    before = gateway(behind, H2="prior")
    fields = [*CONTENT, ("grpc-status", "12"), ("grpc-message", "no such method")]
    with h2peer.connect(before.server) as peer:
        begin(peer, route, end=True)
        stream = behind.next(h2.events.RequestReceived).stream_id
        behind.do(lambda it: it.send_headers(stream, fields, end_stream=True))
        found = peer.answer(1)
        assert found.headers["grpc-status"] == "12"
        assert found.headers["grpc-message"] == "no such method"
        assert (bytes(found.body), found.trailers) == (b"", None)


@ROUTES
def test_a_server_that_answers_before_the_client_has_ended(
    gateway, behind: Behind, route: str
) -> None:
    """As one does that refuses a stream of messages: the status arrives, and the call ends on both sides."""
    before = gateway(behind, H2="prior")
    with h2peer.connect(before.server) as peer:
        begin(peer, route)
        peer.send(h2peer.frame(h2peer.DATA, 0, 1, MESSAGE))
        stream = behind.next(h2.events.DataReceived).stream_id
        behind.do(lambda it: it.send_headers(stream, CONTENT))
        behind.do(lambda it: it.send_headers(stream, [("grpc-status", "8")], end_stream=True))
        found = peer.answer(1)
        assert found.trailers == {"grpc-status": "8"}
        behind.next(h2.events.StreamReset)
        peer.send(h2peer.frame(h2peer.DATA, h2peer.END_STREAM, 1, MESSAGE))
        assert peer.get(3, "/stats").status == 200


@ROUTES
@pytest.mark.parametrize("begun", [False, True])
def test_a_server_that_resets_the_call(gateway, behind: Behind, route: str, begun: bool) -> None:
    """Before its head it is a 502; behind it a reset, not an end, which would be one without a status."""
    before = gateway(behind, H2="prior")
    with h2peer.connect(before.server) as peer:
        begin(peer, route, end=True)
        stream = behind.next(h2.events.RequestReceived).stream_id
        if begun:
            behind.do(lambda it: it.send_headers(stream, CONTENT))
            behind.do(lambda it: it.send_data(stream, MESSAGE))
            until(peer, lambda found: len(found.body) == len(MESSAGE))
        behind.do(lambda it: it.reset_stream(stream, 8))
        found = peer.answer(1)
        if begun:
            assert found.reset is not None
            assert not found.ended
        else:
            assert found.status == 502
        assert peer.get(3, "/stats").status == 200


@ROUTES
def test_a_deadline_of_the_client_is_the_server_s(gateway, behind: Behind, route: str) -> None:
    """``grpc-timeout`` is passed on; so is the reset with which the client ends the call, in every state."""
    before = gateway(behind, H2="prior")
    with h2peer.connect(before.server) as peer:
        for number in range(4):
            stream = 2 * number + 1
            fields = [*TE, ("grpc-timeout", "100m")]
            peer.send(peer.head(stream, "POST", f"/{route}/x", fields, end=number == 0))
            event = behind.next(h2.events.RequestReceived)
            assert dict(event.headers)["grpc-timeout"] == "100m"
            own = event.stream_id
            if number > 1:
                behind.do(lambda it, own=own: it.send_headers(own, CONTENT))
            if number > 2:
                behind.do(lambda it, own=own: it.send_data(own, MESSAGE))
                while not peer.answers.get(stream, h2peer.StreamResponse()).body:
                    peer.step()
            peer.reset(stream)
            assert behind.next(h2.events.StreamReset).stream_id == own
        assert peer.get(99, "/stats").status == 200


@ROUTES
def test_a_server_that_leaves_lets_its_calls_end(gateway, behind: Behind, route: str) -> None:
    """GOAWAY behind the last stream: it is carried through; the connection dies within the next one."""
    before = gateway(behind, H2="prior")
    with h2peer.connect(before.server) as peer:
        begin(peer, route, end=True)
        stream = behind.next(h2.events.RequestReceived).stream_id
        behind.do(lambda it: it.send_headers(stream, CONTENT))
        until(peer, lambda found: found.status == 200)
        goaway = h2peer.frame(h2peer.GOAWAY, 0, 0, struct.pack(">II", stream, 0))
        assert behind.talk is not None
        with behind.lock:
            behind.talk.say(goaway)
        behind.do(lambda it: it.send_data(stream, MESSAGE))
        behind.do(lambda it: it.send_headers(stream, [("grpc-status", "0")], end_stream=True))
        found = peer.answer(1)
        assert bytes(found.body) == MESSAGE
        assert found.trailers == {"grpc-status": "0"}
        wait_for(lambda: before.peer.open == 0, "the end of a connection that takes no more")


def test_many_calls_that_are_reset_at_once_leave_nothing(gateway, behind: Behind) -> None:
    before = gateway(behind, H2="prior")
    with h2peer.connect(before.server) as peer:
        streams = range(1, 101, 2)
        for stream in streams:
            begin(peer, "v1", stream)
            peer.send(h2peer.frame(h2peer.DATA, 0, stream, MESSAGE))
        for _ in streams:
            behind.next(h2.events.RequestReceived)
        for stream in streams:
            peer.reset(stream)
        for _ in streams:
            behind.next(h2.events.StreamReset)
        begin(peer, "v1", 201, end=True)
        stream = behind.next(h2.events.RequestReceived).stream_id
        behind.do(lambda it: it.send_headers(stream, CONTENT))
        behind.do(lambda it: it.send_headers(stream, [("grpc-status", "0")], end_stream=True))
        assert peer.answer(201).trailers == {"grpc-status": "0"}
    assert before.peer.accepted == 1
