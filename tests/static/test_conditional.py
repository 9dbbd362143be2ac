"""Validators and preconditions over the wire; their grammar is tested in crates/citius-static."""

from __future__ import annotations

from pathlib import Path

from rig import Server

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"
BEFORE = "Sun, 06 Nov 1994 08:49:36 GMT"


def test_what_the_client_has_is_not_sent_again(files_module: Server) -> None:
    with files_module.connect() as peer:
        first = peer.request("GET", "/assets/style.css")
        etag = first.headers["etag"]
        for fields in (
            {"if-none-match": etag},
            {"if-none-match": "*"},
            {"if-modified-since": DATE},
        ):
            for method in ("GET", "HEAD"):
                again = peer.request(method, "/assets/style.css", **fields)
                assert (again.status, again.body) == (304, b"")
                assert again.headers["etag"] == etag
                assert "content-type" not in again.headers
        for fields in ({"if-none-match": '"other"'}, {"if-modified-since": BEFORE}):
            assert peer.request("GET", "/assets/style.css", **fields).body == first.body
        # The connection has kept its framing all the while.
        assert peer.request("GET", "/app").body == b"from the application"


def test_what_is_not_what_the_client_thinks_is_refused(files_module: Server) -> None:
    etag = files_module.get("/assets/style.css").headers["etag"]
    assert files_module.get("/assets/style.css", **{"if-match": '"other"'}).status == 412
    assert files_module.get("/assets/style.css", **{"if-unmodified-since": BEFORE}).status == 412
    assert files_module.get("/assets/style.css", **{"if-match": etag}).status == 200
    both = {"if-match": etag, "if-none-match": etag}
    assert files_module.get("/assets/style.css", **both).status == 304


def test_a_new_version_has_a_new_tag(serve, site: Path) -> None:
    server = serve("", "--static", f"/assets={site}", "--files-cached-ms", "0")
    before = server.get("/assets/style.css").headers["etag"]
    (site / "style.css").write_text("b { color: red }")  # as long as before
    reply = server.get("/assets/style.css", **{"if-none-match": before})
    assert (reply.status, reply.body) == (200, b"b { color: red }")
    assert reply.headers["etag"] != before
