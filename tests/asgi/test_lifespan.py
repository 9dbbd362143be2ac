"""The lifespan: asked, answered, refused, failed."""

from __future__ import annotations

import signal
import time

import pytest
from rig import application, wait_for

LIFESPAN = application("lifespan_app")
COMPLETE = {"STARTUP": "complete", "SHUTDOWN": "complete"}


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_start_state_and_stop(serve_asgi, mode: str) -> None:
    server = serve_asgi(LIFESPAN, lifespan=mode, env=COMPLETE)
    assert server.get("/").body == b"{'shared': [1], 'own': 1}"
    assert server.get("/").body == b"{'shared': [1, 1], 'own': 1}"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "stopped" in server.err


def test_a_start_that_failed_ends_the_server(serve_asgi) -> None:
    env = COMPLETE | {"STARTUP": "failed"}
    server = serve_asgi(LIFESPAN, lifespan="auto", ready=False, env=env)
    assert server.wait() == 4
    assert "start-up failed: no database" in server.err


def test_a_stop_that_failed_is_logged(serve_asgi) -> None:
    server = serve_asgi(LIFESPAN, lifespan="on", env=COMPLETE | {"SHUTDOWN": "failed"})
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "shutdown failed: no database" in server.err


NO_LIFESPAN = """
    async def app(scope, receive, send):
        assert scope["type"] == "http"
        await answer(send, b"x")
"""


def test_auto_goes_on_without_it(serve_asgi) -> None:
    server = serve_asgi(NO_LIFESPAN, "--log-level", "debug", lifespan="auto")
    assert server.get("/").body == b"x"
    server.wait_for_log("does not support lifespan events: it raised AssertionError")


def test_on_insists_on_it(serve_asgi) -> None:
    server = serve_asgi(NO_LIFESPAN, lifespan="on", ready=False)
    assert server.wait() == 4
    assert "use --lifespan off" in server.err


HANGS = application("hanging_lifespan_app")


@pytest.mark.parametrize(("loop", "reactors"), [("asyncio", "1"), ("uvloop", "1"), ("auto", "3")])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_a_shutdown_that_hangs_can_be_broken_off(
    serve_asgi, loop: str, reactors: str, number
) -> None:
    server = serve_asgi(HANGS, "--loop", loop, "--reactor-threads", reactors, lifespan="on")
    server.signal(signal.SIGINT)
    server.wait_for_log("asked to stop")
    server.signal(number)
    assert server.wait() == 0
    assert "was broken off" in server.err


def test_a_shutdown_that_does_not_heed_its_cancellation_is_left_behind(serve_asgi) -> None:
    server = serve_asgi(HANGS, lifespan="on", env={"IGNORES": "1"})
    server.signal(signal.SIGTERM)
    server.wait_for_log("asked to stop")
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert "1 tasks did not end when they were cancelled" in server.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_a_start_that_hangs_can_be_broken_off(serve_asgi, number) -> None:
    server = serve_asgi(HANGS, lifespan="on", ready=False, env={"START": "1"})
    server.wait_for_log("asked to start")
    server.signal(number)
    assert server.wait() == 0
    assert "stopped while starting" in server.err


def test_under_a_supervisor_it_can_be_broken_off_as_well(serve_asgi) -> None:
    server = serve_asgi(HANGS, "--workers", "2", "--drain-s", "30", lifespan="on")
    server.signal(signal.SIGINT)
    wait_for(lambda: server.err.count("asked to stop") == 2, "both workers to be asked")
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert server.err.count("was broken off") == 2
    assert "killed" not in server.err


def test_whoever_asks_a_supervisor_again_does_not_wait_longer(serve_asgi) -> None:
    source = """
        async def app(scope, receive, send):
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            print("asked to stop", file=sys.stderr, flush=True)
            time.sleep(1000)
    """
    server = serve_asgi(source, "--workers", "2", "--drain-s", "30", lifespan="on")
    server.signal(signal.SIGINT)
    wait_for(lambda: server.err.count("asked to stop") == 2, "both workers to be asked")
    began_at = time.monotonic()
    stuck = "Timeout (0:00:0"  # they end by themselves, with their stacks
    while server.err.count(stuck) < 2 and time.monotonic() < began_at + 8:
        server.signal(signal.SIGINT)
        time.sleep(0.5)  # the pause between two presses of CTRL+C
    assert server.wait() == 0
    assert time.monotonic() - began_at < 8
    assert server.err.count(stuck) == 2
