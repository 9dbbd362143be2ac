"""body_read_ms and body_rate_min_bytes_per_s: 408 and close."""

import time


def test_a_body_that_stops(limited) -> None:
    server = limited(body_read_ms=200)
    with server.connect() as peer:
        begun = time.monotonic()
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nsome")
        assert peer.reply().status == 408
        assert 0.15 < time.monotonic() - begun < 5
        assert peer.is_closed()


def test_a_body_that_drips(limited) -> None:
    server = limited(body_read_ms=200, body_rate_min_bytes_per_s=1000)
    with server.connect() as peer:
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
        peer.socket.settimeout(0.03)
        for _ in range(100):
            try:
                peer.send(b"x")
                assert peer.reply().status == 408
                return
            except TimeoutError:
                continue
        raise AssertionError("30 bytes a second passed for 1000")


def test_a_slow_body_that_is_fast_enough(limited) -> None:
    server = limited(body_read_ms=1000, body_rate_min_bytes_per_s=10)
    with server.connect() as peer:
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n")
        for _ in range(30):
            peer.send(b"x" * 20)
            time.sleep(0.04)  # 500 bytes a second; fewer on a busy machine
        assert peer.reply().body == b"x" * 600
