"""body_bytes_max: 413 and close, before the body is taken."""


def test_a_length_too_large(limited) -> None:
    server = limited(body_bytes_max=1000, discard_bytes_max=100)
    with server.connect() as peer:
        assert peer.request("POST", "/echo", b"x" * 1000).body == b"x" * 1000
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n")
        assert peer.reply().status == 413
        assert peer.is_closed()


def test_chunks_that_add_up_to_too_much(limited) -> None:
    server = limited(body_bytes_max=1000, discard_bytes_max=100)
    with server.connect() as peer:
        peer.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(3):
            peer.send(b"190\r\n" + b"x" * 400 + b"\r\n")
        assert peer.reply().status == 413
        assert peer.is_closed()


def test_no_continue_for_what_is_refused(limited) -> None:
    server = limited(body_bytes_max=1000)
    with server.connect() as peer:
        peer.send(
            b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9999\r\n"
            b"Expect: 100-continue\r\n\r\n"
        )
        assert peer.reply().status == 413
