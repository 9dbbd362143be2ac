"""What an application does behind its answer: kept, waited for, and left behind in time."""

from __future__ import annotations

import re
import signal
import time

from rig import application

BACKGROUND = application("background_app")


def test_nobody_else_need_hold_its_task(serve_asgi) -> None:
    server = serve_asgi(BACKGROUND)
    assert server.get("/behind").body == b"begun"
    assert server.get("/collect").body == b"1"
    server.wait_for_log("through")


def test_it_is_waited_for(serve_asgi) -> None:
    server = serve_asgi(BACKGROUND)
    assert server.get("/0.5").body == b"begun"
    server.wait_for_log("at work")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "through" in server.err


def test_the_drain_time_is_for_all_of_it(serve_asgi) -> None:
    server = serve_asgi(BACKGROUND, "--workers", "2", "--drain-s", "2")
    assert server.get("/1000").body == b"begun"
    server.wait_for_log("at work")
    with server.connect() as peer:  # which the drain waits for; at another worker, or the same
        peer.send(b"GET /open HTTP/1.1\r\nhost: a\r\n\r\n")
        peer.read_until(b"begun")
        began_at = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
    assert time.monotonic() - began_at > 1.9
    # One request at each of the two workers, or both requests at one of them.
    assert re.search("[12] requests? did not end within the drain time", server.err)
    assert "killed" not in server.err


def test_now_is_heard_while_it_is_waited_for(serve_asgi) -> None:
    server = serve_asgi(BACKGROUND, "--drain-s", "50")
    assert server.get("/1000").body == b"begun"
    server.wait_for_log("at work")
    with server.connect() as idle:
        assert idle.request("GET", "/collect").status == 200
        began_at = time.monotonic()
        server.signal(signal.SIGTERM)
        assert idle.is_closed()
    time.sleep(0.3)  # from here on the work alone is waited for; nothing outside shows that it is
    server.signal(signal.SIGINT)
    assert server.wait() == 0
    assert time.monotonic() - began_at < 20
