"""python-socketio with its own client: by polling, by WebSocket, and from the one to the other."""

from __future__ import annotations

import queue

import pytest
import socketio
from asking import ask
from rig import wait_for
from servers import Pair, Running

pytestmark = pytest.mark.parametrize(
    "pair", [pytest.param(("asgi", "chat_app:app", (), {}), id="socketio")], indirect=True
)


class Person:
    """A client, and what it hears."""

    def __init__(self, server: Running, transports: list[str], name: str) -> None:
        self.heard: queue.Queue[tuple[str, object]] = queue.Queue()
        self.client = socketio.Client(reconnection=False)
        for event in ("said", "told", "gone"):
            self.client.on(event, lambda data, event=event: self.heard.put((event, data)))
        auth = {"name": name}
        self.client.connect(server.url, auth=auth, transports=transports, wait_timeout=10)

    def hear(self) -> tuple[str, object]:
        return self.heard.get(timeout=10)


@pytest.mark.parametrize(
    "transports", [["polling"], ["websocket"], ["polling", "websocket"]], ids="-".join
)
def test_a_chat(pair: Pair, transports: list[str]) -> None:
    def chat(server: Running) -> list[object]:
        ada = Person(server, transports, "Ada")
        bob = Person(server, transports, "Bob")
        # With both, a session begins by polling and is taken over.
        wait_for(lambda: ada.client.transport() == transports[-1], "the transport")
        seen: list[object] = [ada.client.call("say", "hello " * 20_000, timeout=10)]
        seen += [ada.hear(), bob.hear()]
        bob.client.call("enter", "kitchen", timeout=10)
        ada.client.emit("tell", ("kitchen", b"\0bytes\xff"))
        seen.append(bob.hear())
        bob.client.disconnect()
        seen.append(ada.hear()[0])
        ada.client.disconnect()
        wait_for(lambda: not ada.client.connected, "the end")
        return seen

    seen = pair.same(chat)
    assert seen[0] == {"heard": 120_000}
    assert seen[-2] == ("told", b"\0bytes\xff")


@pytest.mark.parametrize("transport", ["polling", "websocket"])
def test_who_is_refused(pair: Pair, transport: str) -> None:
    def refused(server: Running) -> str:
        client = socketio.Client(reconnection=False)
        told: queue.Queue[object] = queue.Queue()
        client.on("connect_error", told.put)
        with pytest.raises(socketio.exceptions.ConnectionError):
            client.connect(server.url, auth={"token": "wrong"}, transports=[transport])
        return str(told.get(timeout=5))

    assert "who are you?" in pair.same(refused)


def test_other_requests_go_on_to_the_application(pair: Pair) -> None:
    assert pair.same(lambda server: ask(server, "GET", "/hello")).body == b"Hello, world"
    params = {"EIO": "4", "transport": "nonsense"}
    answer = pair.same(lambda server: ask(server, "GET", "/socket.io/", params=params))
    assert answer.status == 400
