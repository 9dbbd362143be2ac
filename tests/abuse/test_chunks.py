"""chunk_size_digits_max, chunk_extension_bytes_max, trailer_bytes_max: 400, 400, 431, and close."""

import pytest


@pytest.mark.parametrize(
    ("limit", "value", "good", "bad", "status"),
    [
        ("chunk_size_digits_max", 4, b"0001\r\nx\r\n", b"00001\r\nx\r\n", 400),
        (
            "chunk_extension_bytes_max",
            10,
            b"1;a=b\r\nx\r\n",
            b"1;a=" + b"b" * 20 + b"\r\nx\r\n",
            400,
        ),
        ("chunk_extension_bytes_max", 10, b"1;a=b\r\nx\r\n", b"1;a=b\r\nx\r\n" * 5, 400),
        ("trailer_bytes_max", 50, b"", b"0\r\nX: " + b"y" * 60 + b"\r\n\r\n", 431),
    ],
)
def test_chunked(limited, limit: str, value: int, good: bytes, bad: bytes, status: int) -> None:
    server = limited(**{limit: value})
    head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server.connect() as peer:
        peer.send(head + good + b"0\r\nX: y\r\n\r\n")
        assert peer.reply().status == 200
        peer.send(head + bad)
        assert peer.reply().status == status
        assert peer.is_closed()
