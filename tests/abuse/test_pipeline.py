"""pipeline_max: reading stops until a request is answered."""


def test_no_more_than_so_many_run_at_once(limited) -> None:
    server = limited(pipeline_max=4)
    with server.connect() as peer:
        peer.send(b"GET /slow/300 HTTP/1.1\r\nHost: a\r\n\r\n" * 12)
        assert [peer.reply().status for _ in range(12)] == [200] * 12
        assert int(server.get("/at-once").body) == 4
