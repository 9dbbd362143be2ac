"""fields_max: 431 and close."""


def test_too_many_fields(limited) -> None:
    server = limited(fields_max=5)
    with server.connect() as peer:
        assert peer.request("GET", "/", a="1", b="2", c="3", d="4").status == 200
        assert peer.request("GET", "/", a="1", b="2", c="3", d="4", e="5").status == 431
        assert peer.is_closed()
