"""head_read_ms: 408 when a head has begun, a silent close when none has."""

import time


def test_a_head_too_slow(limited) -> None:
    server = limited(head_read_ms=1000)
    begun = time.monotonic()
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost:")
        assert peer.reply().status == 408
        assert 0.95 < time.monotonic() - begun < 5
        assert peer.is_closed()


def test_dripping_does_not_help(limited) -> None:
    server = limited(head_read_ms=1000)
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        peer.socket.settimeout(0.05)
        for _ in range(100):
            try:
                peer.send(b"y")
                assert peer.reply().status == 408
                return
            except TimeoutError:
                continue
        raise AssertionError("a byte now and then kept the connection for five seconds")


def test_no_head_at_all(limited) -> None:
    server = limited(head_read_ms=100)
    with server.connect() as peer:
        assert peer.is_closed()


def test_a_head_in_time_on_a_connection_that_is_older(limited) -> None:
    server = limited(head_read_ms=1000)
    with server.connect() as peer:
        for _ in range(4):
            assert peer.request("GET", "/slow/350").status == 200
