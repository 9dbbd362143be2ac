"""Sockets that a child or another server holds too cost no processor time, and are closed for clients."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess

import pytest
from rig import PLAIN, TIMEOUT_S, Server, application, processor_share, request, text, wait_for

LOOPS = ["asyncio", "uvloop"]
SPIN_SHARE_MAX = 0.2


FORKS = application("shared_sockets_app")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handler_that_forks_leaves_nothing_that_spins(serve, loop: str) -> None:
    server: Server = serve(FORKS, "--loop", loop, env=PLAIN)
    with server.connect() as other, server.connect() as asking:
        assert text(other, "/") == "Hello"
        asking.send(b"GET /fork HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        child = int(asking.reply().body)
        try:
            assert asking.is_closed()  # although the child has the socket too
            other.close()
            asking.close()
            assert server.get("/").status == 200
            assert processor_share(server) < SPIN_SHARE_MAX
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_shared_listener_does_not_spin_while_its_server_drains(serve, monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(TIMEOUT_S)
        descriptor = listener.fileno()
        with monkeypatch.context() as patch:
            inheriting = functools.partial(subprocess.Popen, pass_fds=[descriptor])
            patch.setattr(subprocess, "Popen", inheriting)
            server: Server = serve(FORKS, "--fd", str(descriptor), env=PLAIN)
        with server.connect() as busy:
            assert text(busy, "/") == "Hello"
            busy.send(request("/slow"))
            server.signal(signal.SIGTERM)
            server.wait_for_log("stopping waits for 1 open request")
            wait_for(lambda: not accepts(server), "the server to take no more connections")
            with server.connect() as waiting:
                waiting.send(request("/"))
                assert processor_share(server) < SPIN_SHARE_MAX
                # The other holders of the socket get what this one leaves.
                listener.accept()[0].close()
            server.signal(signal.SIGQUIT)
            server.wait()


def accepts(server: Server) -> bool:
    """Whether a new connection is answered."""
    with server.connect() as peer:
        peer.socket.settimeout(0.2)
        try:
            return peer.request("GET", "/").status == 200
        except (TimeoutError, EOFError, ConnectionError):
            return False
