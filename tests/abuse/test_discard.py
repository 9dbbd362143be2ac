"""discard_bytes_max: a short unread body is dropped to keep the connection, a long one ends it."""


def test_a_short_rest_is_dropped(limited) -> None:
    server = limited(discard_bytes_max=1000)
    with server.connect() as peer:
        assert peer.request("POST", "/ignore", b"x" * 900).body == b"ignored"
        assert peer.request("GET", "/").body == b"Hello"


def test_a_long_rest_closes(limited) -> None:
    server = limited(discard_bytes_max=1000)
    with server.connect() as peer:
        peer.send(b"POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 9999999\r\n\r\n")
        reply = peer.reply()
        assert reply.body == b"ignored"
        assert peer.is_closed()


def test_a_connection_that_will_be_closed_says_so(limited) -> None:
    """scale, Connect conformance: the next request of a client that is not told is lost."""
    server = limited(discard_bytes_max=1000)
    with server.connect() as peer:
        peer.send(
            b"POST /ignore HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
        )
        reply = peer.reply()
        assert reply.body == b"ignored"
        assert reply.headers["connection"] == "close"
        assert peer.is_closed()
