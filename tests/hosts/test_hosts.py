"""The same behaviour on every host."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from rig import Server, application, wait_for

APP = application("hosts_app")

ASYNC = """
@app.get("/loop")
async def loop():
    await asyncio.sleep(0.001)
    return type(asyncio.get_running_loop()).__module__

@app.on_startup
async def async_up():
    await asyncio.sleep(0)
    app.state.task = asyncio.create_task(asyncio.sleep(3600))
"""

HOSTS = ["asyncio", "uvloop", "none"]


@pytest.mark.parametrize("loop", HOSTS)
class TestEveryHost:
    def test_requests(self, serve, loop: str) -> None:
        server: Server = serve(APP, "--loop", loop)
        with server.connect() as peer:
            assert peer.request("GET", "/").body == b"Hello"
            assert peer.request("GET", "/stream").body == b"012"
            assert peer.request("POST", "/echo", b"x" * 100_000).body == b"x" * 100_000
            assert peer.request("GET", "/blocking/1").body.startswith(b"citius-blocking-")
            assert len(peer.request("GET", "/blocking-stream").body) == 300_000
            assert peer.request("GET", "/error").status == 404

    @pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
    def test_drain(self, serve, tmp_path: Path, loop: str, sig: signal.Signals) -> None:
        server: Server = serve(APP, "--loop", loop, "--no-access-log")
        with server.connect() as busy, server.connect() as idle:
            assert idle.request("GET", "/").status == 200
            busy.send(b"GET /until-open HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_for((tmp_path / "begun").exists, "the handler to begin")
            server.signal(sig)
            assert idle.is_closed()
            (tmp_path / "open").touch()
            assert busy.reply().status in (200, 204)
        assert server.wait() == 0
        assert server.out == "up\ndown\n"

    def test_threads_end_before_the_hooks(self, serve, loop: str) -> None:
        server: Server = serve(APP, "--loop", loop, "--no-access-log")
        with server.connect() as peer:
            peer.send(b"GET /blocking-note HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_for(lambda: "begun" in server.out, "the handler")
        server.get("/")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert server.out == "up\nbegun\nfinished\ndown\n"

    def test_drain_deadline(self, serve, loop: str) -> None:
        server: Server = serve(APP, "--loop", loop, "--drain-s", "0.2")
        with server.connect() as peer:
            peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
            server.get("/")
            server.signal(signal.SIGTERM)
            assert peer.is_closed()
        assert server.wait() == 0

    def test_the_port_is_free_while_it_drains(self, serve, tmp_path: Path, loop: str) -> None:
        first: Server = serve(APP, "--loop", loop)
        peer = first.connect()
        peer.send(b"GET /until-open HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for((tmp_path / "begun").exists, "the handler to begin")
        first.signal(signal.SIGTERM)

        def refused() -> bool:
            try:
                first.connect().close()
            except ConnectionRefusedError:
                return True
            return False

        wait_for(refused, "the listener to close")
        assert first.process.poll() is None, "it is no longer draining"
        second: Server = serve(APP, "--loop", loop, "--port", str(first.port))
        assert second.get("/").status == 200
        (tmp_path / "open").touch()
        assert peer.reply().status in (200, 204)


@pytest.mark.parametrize(("loop", "module"), [("asyncio", "asyncio"), ("uvloop", "uvloop")])
def test_async_handlers_and_what_they_leave_behind(serve, loop: str, module: str) -> None:
    server: Server = serve(APP.read_text() + ASYNC, "--loop", loop)
    assert server.get("/loop").body.decode().partition(".")[0] == module
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "was destroyed" not in server.err


@pytest.mark.epoll("the tests choose the loop")
def test_auto_is_uvloop(serve) -> None:
    server: Server = serve(APP.read_text() + ASYNC)
    assert server.get("/loop").body.startswith(b"uvloop")


def test_stopped_while_it_starts(serve) -> None:
    server: Server = serve(
        """
        @app.on_startup
        async def slow():
            print("starting", flush=True)
            await asyncio.sleep(3600)
        """,
        ready=False,
    )
    wait_for(lambda: "starting" in server.out, "the hook")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "stopped while starting" in server.err


def test_uvloop_that_is_not_installed(serve) -> None:
    server: Server = serve("sys.modules['uvloop'] = None", "--loop", "uvloop", ready=False)
    assert server.wait() == 3
    assert "--loop uvloop: import of uvloop halted" in server.err
    assert "Traceback" not in server.err


def test_auto_without_uvloop_is_asyncio(serve) -> None:
    server: Server = serve(APP.read_text() + ASYNC + "\nsys.modules['uvloop'] = None\n")
    assert server.get("/loop").body.startswith(b"asyncio")
