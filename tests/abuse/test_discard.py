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
