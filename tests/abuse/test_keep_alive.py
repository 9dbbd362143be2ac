"""keep_alive_ms: a silent close."""

import time


def test_an_idle_connection(limited) -> None:
    server = limited(keep_alive_ms=300)
    with server.connect() as peer:
        begun = time.monotonic()
        assert peer.request("GET", "/").status == 200
        assert peer.is_closed()
        assert 0.25 < time.monotonic() - begun < 5


def test_a_slow_handler_is_not_idle(limited) -> None:
    server = limited(keep_alive_ms=100)
    with server.connect() as peer:
        assert peer.request("GET", "/slow/400").status == 200
