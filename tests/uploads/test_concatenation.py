"""Uploads that are put together from others: tus' extension concatenation."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Reply, Server, application

APP = application("resumable_app")
TUS = {"tus_resumable": "1.0.0"}
DATA = bytes(range(256)) * 9000
HALF = 1_000_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("parts")


@pytest.fixture(scope="module")
def server(serve_module: Callable[..., Server], directory: Path) -> Server:
    return serve_module(APP, "--workers", "2", env={"UPLOADS": str(directory)})


def ask(server: Server, method: str, path: str, body: bytes = b"", **fields: str) -> Reply:
    with server.connect() as peer:
        return peer.request(method, path, body, **TUS, **fields)


def part(
    server: Server, data: bytes, *, said: int | None = None, path: str = "/files", **fields: str
) -> str:
    """A partial upload that has got its bytes with its beginning."""
    reply = ask(
        server, "POST", path, data, upload_concat="partial", upload_length=str(said or len(data)),
        content_type="application/offset+octet-stream", **fields,
    )  # fmt: skip
    assert (reply.status, reply.headers["upload-offset"]) == (201, str(len(data))), reply
    return reply.headers["location"]


def join(server: Server, *urls: str, path: str = "/files", **fields: str) -> Reply:
    return ask(server, "POST", path, upload_concat=f"final;{' '.join(urls)}", **fields)


def left(directory: Path, url: str) -> bool:
    return any((directory / "files/all").glob(url.rpartition("/")[2] + "*"))


def test_parts_become_an_upload(server: Server, directory: Path) -> None:
    about = ask(server, "OPTIONS", "/files")
    assert "concatenation" in about.headers["tus-extension"].split(",")
    first = part(server, DATA[:HALF])
    second = part(server, DATA[HALF:-7], said=len(DATA) - HALF)
    assert ask(server, "HEAD", first).headers["upload-concat"] == "partial"
    early = join(server, first, second)
    assert (early.status, b"not complete" in early.body) == (400, True)
    reply = ask(
        server, "PATCH", second, DATA[-7:], upload_offset=str(len(DATA) - HALF - 7),
        content_type="application/offset+octet-stream",
    )  # fmt: skip
    assert reply.status == 204
    # The application has not been called with a part: HEAD would have it called again.
    assert ask(server, "HEAD", second).headers["upload-offset"] == str(len(DATA) - HALF)
    assert not list((directory / "done").iterdir())
    name = base64.b64encode(b"whole.bin").decode()
    # Absolute and relative URLs.
    made = join(
        server, f"http://127.0.0.1:{server.port}{first}", second, upload_metadata=f"filename {name}"
    )
    assert (made.status, made.headers["upload-offset"]) == (201, str(len(DATA))), made
    kept = directory / "done" / made.headers["location"].rpartition("/")[2]
    assert hashlib.sha256(kept.read_bytes()).digest() == hashlib.sha256(DATA).digest()
    head = ask(server, "HEAD", made.headers["location"])
    assert head.headers["upload-concat"].startswith("final;http")
    assert head.headers["upload-length"] == head.headers["upload-offset"] == str(len(DATA))
    assert not left(directory, first)
    assert join(server, first, second).status == 400
    patch = ask(
        server, "PATCH", made.headers["location"], b"more", upload_offset=str(len(DATA)),
        content_type="application/offset+octet-stream",
    )  # fmt: skip
    assert patch.status == 403


def test_a_part_may_come_twice(server: Server, directory: Path) -> None:
    url = part(server, b"again ")
    made = join(server, url, url)
    assert made.status == 201
    kept = directory / "done" / made.headers["location"].rpartition("/")[2]
    assert kept.read_bytes() == b"again again "


def test_what_is_no_part_is_refused(server: Server) -> None:
    whole = ask(
        server, "POST", "/files", b"whole", upload_length="5",
        content_type="application/offset+octet-stream",
    )  # fmt: skip
    assert join(server, whole.headers["location"]).status == 400
    assert join(server, "/files/nothing").status == 400
    assert join(server, "http://[bad").status == 400
    assert join(server).status == 400
    assert join(server, *["/files/x"] * 1001).status == 400
    url = part(server, b"x")
    assert join(server, url, upload_length="1").status == 400
    assert ask(server, "POST", "/files", upload_concat="halves", upload_length="1").status == 400
    # Of another path, and of another owner.
    assert join(server, url, path="/small").status == 400
    own = part(server, b"mine", path="/own/1", x_user="ann")
    assert join(server, own, path="/own/1", x_user="bob").status == 400
    assert join(server, own, path="/own/1", x_user="ann").status == 201


def test_limits_hold_for_all_parts(server: Server, directory: Path) -> None:
    urls = [part(server, b"x" * 600, path="/small") for _ in range(2)]
    assert join(server, *urls, path="/small").status == 413
    evil = part(server, b"evil", path="/small")
    refused = join(server, evil, path="/small")
    assert refused.status == 422
    assert [len(one.read_bytes()) for one in (directory / "small/all").glob("*.json")]
    assert ask(server, "DELETE", evil).status == 204
