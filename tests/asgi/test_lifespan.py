"""The lifespan: asked, answered, refused, failed."""

from __future__ import annotations

import signal

import pytest

LIFESPAN = """
    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            assert (await receive())["type"] == "lifespan.startup"
            scope["state"]["shared"] = []
            {startup}
            assert (await receive())["type"] == "lifespan.shutdown"
            {shutdown}
        else:
            scope["state"]["shared"].append(1)
            scope["state"]["own"] = scope["state"].get("own", 0) + 1
            await answer(send, repr(scope["state"]).encode())
"""
COMPLETE = 'await send({"type": "lifespan.%s.complete"})'
FAILED = 'await send({"type": "lifespan.%s.failed", "message": "no database"})'


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_start_state_and_stop(serve_asgi, mode: str) -> None:
    source = LIFESPAN.format(
        startup=COMPLETE % "startup",
        shutdown=f"{COMPLETE % 'shutdown'}; print('stopped', file=sys.stderr, flush=True)",
    )
    server = serve_asgi(source, lifespan=mode)
    assert server.get("/").body == b"{'shared': [1], 'own': 1}"
    assert server.get("/").body == b"{'shared': [1, 1], 'own': 1}"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "stopped" in server.err


def test_a_start_that_failed_ends_the_server(serve_asgi) -> None:
    source = LIFESPAN.format(startup=FAILED % "startup", shutdown="pass")
    server = serve_asgi(source, lifespan="auto", ready=False)
    assert server.wait() == 3
    assert "start-up failed: no database" in server.err


def test_a_stop_that_failed_is_logged(serve_asgi) -> None:
    source = LIFESPAN.format(startup=COMPLETE % "startup", shutdown=FAILED % "shutdown")
    server = serve_asgi(source, lifespan="on")
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
    server.wait_for_log("knows no lifespan: it raised AssertionError")


def test_on_insists_on_it(serve_asgi) -> None:
    server = serve_asgi(NO_LIFESPAN, lifespan="on", ready=False)
    assert server.wait() == 3
    assert "use --lifespan off" in server.err
