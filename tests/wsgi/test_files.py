"""``wsgi.file_wrapper``: PEP 3333, "Optional Platform-Specific File Handling"."""

from __future__ import annotations

from rig import application

FILES = application("wsgi_files_app")
BYTES = bytes(range(256)) * 2000


def test_real_files_leave_from_where_they_stand(serve_way) -> None:
    server = serve_way(FILES)
    with server.connect() as peer:
        for kind, body in {
            "whole": BYTES, "raw": BYTES, "offset": BYTES[100:], "seek": BYTES[500_000:], "end": b"",
        }.items():  # fmt: skip
            reply = peer.request("GET", f"/{kind}")
            assert reply.body == body, kind
            assert reply.headers["content-length"] == str(len(body)), kind
        assert peer.request("GET", "/offset?1000").body == BYTES[100:1100]
        assert peer.request("HEAD", "/whole").headers["content-length"] == str(len(BYTES))
        assert peer.request("GET", "/seek?20000").status == 500  # there are not so many
        assert peer.request("GET", "/memory").body == BYTES  # in step


def test_other_files_are_read(serve_way) -> None:
    server = serve_way(FILES)
    with server.connect() as peer:
        assert peer.request("GET", "/memory").body == BYTES
        server.wait_for_log("closed")
        assert peer.request("GET", "/memory?300").body == BYTES[:300]
        assert peer.request("GET", "/minimal").body == b"piecepiece"
        assert peer.request("GET", "/text").status == 500
    server.wait_for_log("not str")
