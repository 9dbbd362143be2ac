"""head_bytes_max: 431 and close."""

import pytest


@pytest.mark.parametrize("ending", [b"", b"\r\n\r\n"])
def test_a_head_too_long(limited, ending: bytes) -> None:
    server = limited(head_bytes_max=1000, target_bytes_max=500)
    with server.connect() as peer:
        assert peer.request("GET", "/", x="y" * 800).status == 200
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1000 + ending)
        assert peer.reply().status == 431
        assert peer.is_closed()
