"""write_stall_ms: a peer that takes nothing is reset."""

import pytest
from rig import wait_for


def test_a_peer_that_does_not_read(limited) -> None:
    server = limited(write_stall_ms=300)
    with server.connect(receive_buffer_bytes=4096) as peer:
        peer.send(b"GET /endless HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: server.get("/closed").body == b"true", "the answer to be given up")
        with pytest.raises((ConnectionError, EOFError)):
            while True:
                peer.read(65536)
