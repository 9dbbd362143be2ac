"""Files as responses of handlers: validators, ranges, names of downloads, and paths that lead elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from citius import App, Request, Response, content_disposition, file_response
from citius.testing import Client
from citius.web.middleware import CORS, ETags

LARGE = bytes(range(256)) * 1000
"""Longer than what is kept in memory: the kernel sends it."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "below").mkdir(parents=True)
    (root / "small.txt").write_bytes(b"0123456789")
    (root / "large.bin").write_bytes(LARGE)
    (root / "below/page.html").write_text("page")
    (root / ".hidden").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")
    os.mkfifo(root / "fifo")
    return root


@pytest.fixture(params=["plain", "middleware", "async middleware"])
def client(request: pytest.FixtureRequest, directory: Path) -> Iterator[Client]:
    app = App()
    if request.param != "plain":
        app.middleware(CORS("*"))
        app.middleware(ETags())
    if request.param == "async middleware":

        @app.middleware
        async def pass_on(request: Request, next: Any) -> Any:
            return await next(request)

    @app.get("/files/{path:path}")
    def file(path: str) -> Response:
        return file_response(path, root=directory)

    @app.get("/later/{path:path}", blocking=True)
    def later(path: str) -> Response:
        return file_response(path, root=directory)

    @app.get("/download")
    async def download() -> Response:
        return file_response(
            directory / "small.txt",
            filename="Größe 1/2.txt",
            content_type="text/x",
            headers={"cache-control": "private"},
        )

    @app.get("/error")
    def error() -> Response:
        return file_response(directory / "small.txt", status_code=404)

    kept = Response(b"")

    @app.get("/again")
    def again() -> Response:
        if kept.body == b"":
            kept.body = file_response(directory / "small.txt").body
        return kept

    with Client(app) as client:
        yield client


@pytest.mark.parametrize("place", ["files", "later"])
def test_whole_and_conditional(client: Client, place: str) -> None:
    for name, content in (("small.txt", b"0123456789"), ("large.bin", LARGE)):
        answer = client.get(f"/{place}/{name}")
        assert (answer.status_code, answer.content) == (200, content)
        assert answer.headers["accept-ranges"] == "bytes"
        assert answer.headers["content-length"] == str(len(content))
        head = client.head(f"/{place}/{name}")
        assert (head.content, head.headers["content-length"]) == (b"", str(len(content)))
        for field, value in (
            ("if-none-match", answer.headers["etag"]),
            ("if-modified-since", answer.headers["last-modified"]),
        ):
            again = client.get(f"/{place}/{name}", headers={field: value})
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["etag"] == answer.headers["etag"]
        assert client.get(f"/{place}/{name}", headers={"if-match": '"x"'}).status_code == 412
    assert client.get(f"/{place}/below/page.html").headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("place", ["files", "later"])
def test_ranges(client: Client, place: str) -> None:
    def ask(value: str, **fields: str) -> Any:
        sent = {"range": value, **{k.replace("_", "-"): v for k, v in fields.items()}}
        return client.get(f"/{place}/large.bin", headers=sent)

    one = ask("bytes=1000-1999")
    assert (one.status_code, one.content) == (206, LARGE[1000:2000])
    assert one.headers["content-range"] == f"bytes 1000-1999/{len(LARGE)}"
    assert ask("bytes=-5").content == LARGE[-5:]
    two = ask("bytes=0-1, 5-6")
    assert two.status_code == 206
    assert two.headers["content-type"].startswith("multipart/byteranges; boundary=")
    assert LARGE[5:7] in two.content
    beyond = ask(f"bytes={len(LARGE)}-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(LARGE)}")
    for whole in ("bytes=5-1", "lines=1-2", "bytes=" + ",".join(["0-"] * 1000)):
        assert ask(whole).content == LARGE, whole
    assert ask("bytes=0-1", if_range='"other"').status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "../outside.txt", "below/../../outside.txt", "%2e%2e/outside.txt", "..%2foutside.txt",
        "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", "link.txt", ".hidden", "below", "below/",
        "", ".", "small.txt/", "small.txt%00", "small.txt%00.html", "missing", "a" * 5000,
        "..\\outside.txt", "~/x", "fifo", "small.txt/../small.txt",
    ],
)  # fmt: skip
def test_paths_that_lead_elsewhere(client: Client, path: str) -> None:
    for place in ("files", "later"):
        answer = client.get(f"/{place}/{path}")
        assert answer.status_code == 404, path
        assert b"secret" not in answer.content


def test_what_the_handler_says(client: Client) -> None:
    answer = client.get("/download")
    assert answer.headers["content-type"] == "text/x"
    assert answer.headers["cache-control"] == "private"
    expected = "attachment; filename=\"Gr__e 1_2.txt\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%201_2.txt"
    assert answer.headers["content-disposition"] == expected
    part = client.get("/download", headers={"range": "bytes=2-3"})
    assert (part.content, part.headers["content-type"]) == (b"23", "text/x")
    error = client.get("/error", headers={"range": "bytes=2-3"})
    assert (error.status_code, error.content) == (404, b"0123456789")
    assert [client.get("/again").content for _ in range(3)] == [b"0123456789"] * 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a b.txt", 'attachment; filename="a b.txt"'),
        ('a"; x="b', 'attachment; filename="a_; x=_b"'),
        ("a\r\nset-cookie: x", 'attachment; filename="a__set-cookie: x"'),
        ("../../etc/passwd", 'attachment; filename=".._.._etc_passwd"'),
        ("..\\x", 'attachment; filename=".._x"'),
        ("", 'attachment; filename="_"'),
        ("€", "attachment; filename=\"_\"; filename*=UTF-8''%E2%82%AC"),
        ("\ud800\0", 'attachment; filename="__"'),
    ],
)
def test_names_of_downloads(name: str, expected: str) -> None:
    assert content_disposition(name) == expected
    assert content_disposition("x", inline=True) == 'inline; filename="x"'


def test_a_path_of_the_applications_own_that_is_not_there(directory: Path) -> None:
    for name in ("missing", "../root/missing", "below", "fifo"):
        with pytest.raises(OSError, match=name.rpartition("/")[2]):
            file_response(directory / name)
