"""While the application has an upload, no other request takes it away, and it is handed over once."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from citius.errors import HTTPError
from citius.web.uploads.fields import filename_of
from citius.web.uploads.store import Appender, Complete, UploadDirectory, UploadRecord
from rig import Reply, Server, application, wait_for

APP = application("resumable_app")
Serve = Callable[..., Server]
TUS = {"tus_resumable": "1.0.0"}
OCTETS = {"content_type": "application/offset+octet-stream", **TUS}
PARTIAL = {"content_type": "application/partial-upload"}
OWNER = ""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module", params=["1", "2"], ids=["one worker", "two workers"])
def server(serve_module: Serve, directory: Path, request: pytest.FixtureRequest) -> Server:
    return serve_module(APP, "--workers", request.param, env={"UPLOADS": str(directory)})


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as found:
        yield found


def ask(server: Server, method: str, path: str, body: bytes | None = None, **fields: str) -> Reply:
    with server.connect() as peer:
        return peer.request(method, path, body, **fields)


def handed(
    server: Server, directory: Path, threads: ThreadPoolExecutor, name: str
) -> tuple[str, Future[Reply]]:
    """An upload that the application has got, and the response to the request that has brought it."""
    disposition = f'attachment; filename="{name}"'
    reply = ask(
        server, "POST", "/held", b"good", upload_complete="?0", content_disposition=disposition
    )
    url = reply.headers["location"]
    last = threads.submit(
        ask, server, "PATCH", url, b"", upload_offset="4", upload_complete="?1", **PARTIAL
    )
    begun = directory / f"{url.rpartition('/')[2]}.begun"
    wait_for(begun.exists, "the application's function")
    return url, last


@pytest.mark.parametrize("name", ["moved", "there"])
def test_others_wait(
    server: Server, directory: Path, threads: ThreadPoolExecutor, name: str
) -> None:
    """A client whose request took long looks how the upload stands; another one appends to it."""
    url, last = handed(server, directory, threads, name)
    identifier = url.rpartition("/")[2]
    looks = [threads.submit(ask, server, "HEAD", url, None, **TUS) for _ in range(3)]
    looks.append(threads.submit(ask, server, "HEAD", url))
    more = threads.submit(
        ask, server, "PATCH", url, b"EVIL", upload_offset="4", upload_complete="?0", **PARTIAL
    )
    asked = directory / "held/all" / f"{identifier}.stop"
    wait_for(asked.exists, "a request that waits")
    assert not last.done()
    (directory / f"{identifier}.go").touch()
    assert (last.result().status, last.result().body) == (200, b"taken")
    for look in looks:
        assert look.result().headers["upload-offset"] == "4", look.result()
    assert looks[-1].result().headers["upload-complete"] == "?1"
    assert more.result().status == 400
    assert (directory / "done" / identifier).read_bytes() == b"good"
    assert (directory / f"{identifier}.begun").read_text() == "x", "called once"


def test_a_client_that_leaves_finds_it_done(server: Server, directory: Path) -> None:
    url = ask(server, "POST", "/held", b"", upload_length="4", **TUS).headers["location"]
    identifier = url.rpartition("/")[2]
    peer = server.connect()
    peer.send(
        f"PATCH {url} HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
        "Content-Type: application/offset+octet-stream\r\nContent-Length: 4\r\n\r\ngood".encode()
    )
    wait_for((directory / f"{identifier}.begun").exists, "the application's function")
    peer.close()
    (directory / f"{identifier}.go").touch()
    wait_for((directory / "done" / identifier).exists, "what the application does")
    assert ask(server, "HEAD", url, **TUS).headers["upload-offset"] == "4"
    assert (directory / f"{identifier}.begun").read_text() == "x", "called once"


def test_a_length_that_has_come_already_is_refused(server: Server) -> None:
    url = ask(server, "POST", "/files", b"abcd", upload_defer_length="1", **OCTETS).headers[
        "location"
    ]
    reply = ask(server, "PATCH", url, b"", upload_offset="4", upload_length="3", **OCTETS)
    assert reply.status == 400
    reply = ask(server, "PATCH", url, b"e", upload_offset="4", upload_length="5", **OCTETS)
    assert reply.status == 204


def test_what_the_function_takes_holds_for_all_requests(server: Server) -> None:
    """Among it who calls, where no ``owner`` is declared."""
    url = ask(server, "POST", "/known", b"a", upload_complete="?0", x_user="ann").headers[
        "location"
    ]
    offset = {"upload_offset": "1", "upload_complete": "?1", **PARTIAL}
    for method, fields in [("HEAD", {}), ("GET", {}), ("DELETE", {}), ("PATCH", offset)]:
        assert ask(server, method, url, b"b" if fields else None, **fields).status == 401, method
    assert ask(server, "HEAD", url, x_user="ann").headers["upload-offset"] == "1"
    assert ask(server, "DELETE", url, x_user="ann").status == 204
    assert ask(server, "HEAD", url, x_user="ann").status == 404


# --- the directory ----------------------------------------------------------------------------------------


def store_in(place: Path, age_s: float = 3600) -> UploadDirectory:
    store = UploadDirectory(place, age_s, 10, 0)
    store.open()
    return store


def test_who_waits_learns_that_it_is_complete(tmp_path: Path) -> None:
    """What it has read of the upload before is not what holds then."""
    store = store_in(tmp_path)
    first = UploadRecord("", "/files")
    store.create(OWNER, first)
    second = store.find(OWNER, first.id, "/files")
    assert second is not None

    async def main() -> None:
        async def append() -> None:
            async with store.taken(OWNER, second):
                raise AssertionError("the application has the file")

        async with store.taken(OWNER, first), store.handed(first):
            waiting = asyncio.ensure_future(append())
            while not store.file(OWNER, first).with_suffix(".stop").exists():
                await asyncio.sleep(0)
            store.file(OWNER, first).rename(tmp_path / "taken")
            store.finish(OWNER, first, 0)
        with pytest.raises(Complete):
            await waiting

    asyncio.run(main())
    assert second.is_complete
    names = {one.name for one in (tmp_path / "all").iterdir()}
    assert names == {".lock", f"{first.id}.done"}


def test_complete_uploads_are_not_read_when_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = store_in(tmp_path), list[Path]()
    for _ in range(20):
        record = UploadRecord("", "/files")
        store.create(OWNER, record)
        store.finish(OWNER, record, 0)
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: (read.append(self), original(self))[1])
    store.create(OWNER, UploadRecord("", "/files"))
    assert read == []


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path) -> None:
    store = store_in(tmp_path, age_s=100)
    kept, expired = UploadRecord("", "/files"), UploadRecord("", "/files")
    for record in (kept, expired):
        store.create(OWNER, record)
    store.finish(OWNER, expired, 3)
    expired.begun_at = time.time() - 101
    store.save(OWNER, expired)
    home = tmp_path / "all"
    for name in ("a" * 24, "a" * 24 + ".stop", "b" * 24 + ".lock", "c" * 24 + ".new"):
        (home / name).touch()
        os.utime(home / name, (1, 1))
    (home / "young.lock").touch()
    store.sweep()
    names = {one.name for one in home.iterdir()}
    assert names == {".lock", "young.lock", kept.id, f"{kept.id}.json"}


def test_the_disk_is_not_filled_by_uploads_that_do_not_say_how_long_they_are(
    tmp_path: Path,
) -> None:
    def refuse(needed: int) -> None:
        raise HTTPError(507, f"{needed} bytes are too many")

    with (tmp_path / "file").open("w+b") as file:
        appender = Appender(file.fileno(), None, refuse)
        asyncio.run(appender.add(b"abc"))
        with pytest.raises(HTTPError, match="3 bytes"):
            appender.flush()
        assert os.fstat(file.fileno()).st_size == 0


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        ('inline; filename="a;b.png"', "a;b.png"),
        ('inline; filename="a\\"b;c.png"; x=1', 'a"b;c.png'),
        ("attachment; filename=x.png ", "x.png"),
        ("attachment; x=\";filename=y\"; filename*=UTF-8''%C3%A4.bin; filename=q", "ä.bin"),
        ('a; filename="x\\', "x"),
        (";=;=", ""),
    ],
)
def test_names_of_files(disposition: str, name: str) -> None:
    assert filename_of(disposition) == name
