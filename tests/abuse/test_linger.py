"""linger_ms: a refused peer may finish talking and read its answer; then the connection ends."""

import time

import pytest


def test_the_answer_survives_what_was_still_being_sent(limited) -> None:
    server = limited(body_bytes_max=1000)
    with server.connect() as peer:
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n")
        # Bytes that arrive at a closed socket would reset the answer away.
        peer.send(b"x" * 300_000)
        assert peer.reply().status == 413


def test_a_peer_that_keeps_talking_is_cut(limited) -> None:
    server = limited(body_bytes_max=1000, linger_ms=300)
    with server.connect() as peer:
        begun = time.monotonic()
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n")
        with pytest.raises((ConnectionError, BrokenPipeError)):
            while time.monotonic() - begun < 5:
                peer.send(b"x" * 100)
                time.sleep(0.02)  # a peer that keeps talking
        assert time.monotonic() - begun > 0.15
