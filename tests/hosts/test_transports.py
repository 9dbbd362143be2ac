"""A loop that owns the sockets of a reactor: what it has accepted when it is to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Any

import pytest
from citius.serving import transports


class Draining:
    """As much of a reactor as accepting asks for; it notes which listener a connection has come from."""

    def __init__(self) -> None:
        self.accepted: list[int] = []

    def listen_remote(self, **said: object) -> int:
        return 7

    def remote_accept(self, listener: int, peer: object, local: object) -> int | None:
        self.accepted.append(listener)
        return len(self.accepted)

    def remote_take(self, number: int) -> tuple[bytes, int, int]:
        return b"", 0, 0

    def remote_feed(self, number: int, data: bytes) -> int:
        return 0

    def remote_lose(self, number: int) -> None:
        pass

    def drain(self, on_drained: Any) -> None:
        on_drained()


@pytest.mark.parametrize("clients", [1, 20])
def test_a_connection_that_is_accepted_last_has_its_protocol(
    clients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accepted in the very step in which the loop stops accepting."""
    monkeypatch.setattr(transports, "_ACCEPT_S", 0)
    reactor: Any = Draining()
    failures: list[dict[str, Any]] = []

    async def main(listener: socket.socket, stack: contextlib.ExitStack) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(context))
        host = transports.SocketHost(loop, {})
        host.take(reactor, [listener], 100)
        await host.accept()
        for _ in range(clients):
            stack.enter_context(socket.create_connection(listener.getsockname()))
        host.drain(reactor, lambda: None)
        for _ in range(10):
            await asyncio.sleep(0)
        host.cut()

    with (
        contextlib.ExitStack() as stack,
        socket.create_server(("127.0.0.1", 0)) as listener,
        asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner,
    ):
        runner.run(main(listener, stack))
    assert failures == []
    assert reactor.accepted == [7] * clients
