"""connections_max: 503 with Retry-After, and close; room again when one leaves."""

from rig import wait_for


def test_one_connection_too_many(limited) -> None:
    server = limited(connections_max=3)
    peers = [server.connect() for _ in range(3)]
    assert [peer.request("GET", "/").status for peer in peers] == [200, 200, 200]
    with server.connect() as refused:
        refused.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        reply = refused.reply()
        assert reply.status == 503
        assert "retry-after" in reply.headers
        assert refused.is_closed()
    peers.pop().close()

    def room_again() -> bool:
        try:
            return server.get("/").status == 200
        except OSError:
            return False

    wait_for(room_again, "a place")
    assert [peer.request("GET", "/").status for peer in peers] == [200, 200]
