"""Whole files: fields, methods, directories, what goes on to the application, every interface."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urljoin

import pytest
from rig import Server
from static_site import LARGE

NOTHING = b"Not Found"


def test_a_file_and_what_is_said_of_it(files_module: Server) -> None:
    reply = files_module.get("/assets/style.css")
    assert (reply.status, reply.body) == (200, b"a { color: red }")
    assert reply.headers["content-type"] == "text/css; charset=utf-8"
    assert reply.headers["last-modified"] == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert reply.headers["accept-ranges"] == "bytes"
    assert reply.headers["etag"].startswith('"')
    assert not {"vary", "cache-control", "content-encoding"} & reply.headers.keys()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/assets/large.bin", LARGE),
        ("/assets/empty.txt", b""),
        ("/assets/with%20space.txt", b"space"),
        ("/%61ssets/style%2ecss", b"a { color: red }"),
        ("/assets/style.css?v=1", b"a { color: red }"),
        ("/assets/docs/", b"<h1>docs</h1>"),
        ("/assets/docs/index.html", b"<h1>docs</h1>"),
    ],
)
def test_paths(files_module: Server, path: str, body: bytes) -> None:
    reply = files_module.get(path)
    assert (reply.status, reply.body) == (200, body)


def test_directories(files_module: Server) -> None:
    for path, location in [
        ("/assets/docs", "/assets/docs/"),
        ("/assets/docs?a=b", "/assets/docs/?a=b"),
        ("/assets", "/assets/"),
    ]:
        reply = files_module.get(path)
        assert reply.status == 301
        # Servers D10: also for a client that sees a prefix which a proxy has removed.
        for prefix in ("", "/app"):
            base = f"https://a.example{prefix}"
            assert urljoin(base + path, reply.headers["location"]) == base + location
    assert files_module.get("/assets/").status == 404
    assert files_module.get("/assets/style.css/").status == 404


def test_methods(files_module: Server) -> None:
    with files_module.connect() as peer:
        whole = peer.request("GET", "/assets/large.bin")
        head = peer.request("HEAD", "/assets/large.bin")
        assert head.headers["content-length"] == str(len(LARGE))
        assert head.headers["etag"] == whole.headers["etag"]
        for method in ("POST", "PUT", "DELETE", "PATCH", "BREW"):
            reply = peer.request(method, "/assets/style.css", b"body")
            assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
        reply = peer.request("OPTIONS", "/assets/style.css")
        assert (reply.status, reply.headers["allow"]) == (204, "GET, HEAD, OPTIONS")


def test_pipelined_files_and_answers_keep_their_order(files_module: Server) -> None:
    paths = ["/app", "/assets/large.bin", "/assets/style.css", "/app", "/assets/large.bin", "/app"]
    with files_module.connect() as peer:
        peer.send(b"".join(f"GET {p} HTTP/1.1\r\nhost: a\r\n\r\n".encode() for p in paths))
        bodies = [peer.reply().body for _ in paths]
    text, css = b"from the application", b"a { color: red }"
    assert bodies == [text, LARGE, css, text, LARGE, text]


def test_the_application_has_the_rest(files_module: Server) -> None:
    assert files_module.get("/app").body == b"from the application"
    assert files_module.get("/assetsx").status == 404
    # Below the prefix it is not even asked.
    assert files_module.get("/assets/none").body == NOTHING


def test_the_root_falls_through(serve, site: Path) -> None:
    server = serve(
        """
        @app.post("/style.css")
        def write():
            return "written"

        @app.get("/app")
        def answer():
            return "from the application"
        """,
        "--static",
        f"/={site}",
    )
    assert server.get("/style.css").body == b"a { color: red }"
    assert server.get("/app").body == b"from the application"
    assert server.get("/none").status == 404
    with server.connect() as peer:
        assert peer.request("POST", "/style.css", b"x").body == b"written"


def test_longer_prefixes_come_first(serve, site: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "style.css").write_text("other")
    server = serve(
        "", "--static", f"/s={site}", "--static", f"/s/docs={tmp_path / 'other'}",
    )  # fmt: skip
    assert server.get("/s/style.css").body == b"a { color: red }"
    assert server.get("/s/docs/style.css").body == b"other"
    assert server.get("/s/docs/index.html").status == 404


def test_declared_by_the_application(serve, site: Path) -> None:
    server = serve(
        """
        inner = App()
        inner.static("/files", "public", index=None, cache_control="no-cache", dotfiles=True)
        app.mount("/inner", inner)
        app.static("/assets", "public", cache_control="public, max-age=60")
        """
    )
    reply = server.get("/assets/style.css")
    assert reply.headers["cache-control"] == "public, max-age=60"
    reply = server.get("/inner/files/.env")
    assert (reply.body, reply.headers["cache-control"]) == (b"secret", "no-cache")
    assert server.get("/inner/files/docs/").status == 404
    assert server.get("/inner/files/docs").status == 404


def test_options_of_the_command_line(serve, site: Path) -> None:
    server = serve(
        "", "--static", f"/assets={site}", "--static-index", "style.css", "--static-dotfiles",
        "--static-cache-control", "no-store",
    )  # fmt: skip
    reply = server.get("/assets/")
    assert (reply.body, reply.headers["cache-control"]) == (b"a { color: red }", "no-store")
    assert server.get("/assets/.env").body == b"secret"


def test_a_table_of_the_project_file(serve, site: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.citius]\nstatic = ["/assets=public"]\nstatic-cache-control = "no-store"\n'
    )
    reply = serve("").get("/assets/style.css")
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--static", "public"], "expected /prefix=directory"),
        (["--static", "/assets="], "expected /prefix=directory"),
        (["--static", "/assets=nowhere"], "there is no directory 'nowhere'"),
        (["--static", "/a=public", "--static", "/a=public/docs"], "mounted twice"),
        (["--static", "/a=public", "--static-index", "a/b"], "is not the name of a file"),
    ],
)
def test_mounts_that_cannot_be(serve, site: Path, arguments: list[str], message: str) -> None:
    server = serve("", *arguments, ready=False)
    assert server.wait() != 0
    assert message in server.err


def test_the_access_log_has_them(files: Server) -> None:
    with files.connect() as peer:
        peer.request("GET", "/assets/style.css")
        peer.request("HEAD", "/assets/large.bin")
        peer.request("GET", "/assets/none")
    files.signal(__import__("signal").SIGTERM)
    files.wait()
    lines = [line for line in files.out.splitlines() if "/assets/" in line]
    assert len(lines) == 3
    assert " 200 " in lines[0]
    assert "16" in lines[0]
    assert " 404 " in lines[2]


def test_unreadable_is_not_there(files: Server, site: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (site / "style.css").chmod(0)
    assert files.get("/assets/style.css").status == 404


def test_the_test_client_serves_them_too(site: Path) -> None:
    from citius import App
    from citius.testing import Client

    app = App()
    app.static("/assets", site)
    with Client(app) as client:
        assert client.get("/assets/large.bin").content == LARGE
        assert client.get("/assets/style.css").text == "a { color: red }"


def test_a_missing_directory_that_is_optional(serve, site: Path) -> None:
    app = """
app.static("/later", "nowhere", optional=True)

@app.get("/later/{_rest:path}")
def later():
    return "not yet"
"""
    declared: Server = serve(app, "--static", "/assets=public")
    assert declared.get("/later/style.css").body == b"not yet"
    assert declared.get("/assets/style.css").status == 200
    declared.wait_for_log(
        "static /later .*: there is no directory 'nowhere' .*it is optional and left out"
    )
    given: Server = serve(
        app, "--static-optional", "--static", "/assets=public", "--static", "/a=nowhere"
    )
    assert (given.get("/a/x").status, given.get("/assets/style.css").status) == (404, 200)
    given.wait_for_log("static /a .*: there is no directory 'nowhere'")
