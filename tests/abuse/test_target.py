"""target_bytes_max: 414 and close."""


def test_a_target_too_long(limited) -> None:
    server = limited(target_bytes_max=100)
    with server.connect() as peer:
        assert peer.request("GET", "/?" + "x" * 98).status == 200
        assert peer.request("GET", "/?" + "x" * 99).status == 414
        assert peer.is_closed()
