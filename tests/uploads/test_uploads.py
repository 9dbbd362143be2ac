"""Resumable uploads by both protocols: every step, every mistake, requests at once, workers, limits."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rig import Peer, Reply, Server, application, children, wait_for

APP = application("resumable_app")
Serve = Callable[..., Server]
TUS = {"tus_resumable": "1.0.0"}
DATA = bytes(range(256)) * 4000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def server(serve_module: Serve, directory: Path) -> Server:
    return serve_module(APP, env={"UPLOADS": str(directory)})


def ask(server: Server, method: str, path: str, body: bytes | None = None, **fields: str) -> Reply:
    with server.connect() as peer:
        return peer.request(method, path, body, **fields)


def begin(server: Server, path: str = "/files", body: bytes = b"", **fields: str) -> str:
    reply = ask(server, "POST", path, body, upload_complete="?0", **fields)
    assert reply.status == 201, reply
    assert reply.headers["upload-complete"] == "?0"
    return reply.headers["location"]


def append(
    server: Server, url: str, offset: int, body: bytes, *, complete: bool, **fields: str
) -> Reply:
    return ask(
        server, "PATCH", url, body, content_type="application/partial-upload",
        upload_offset=str(offset), upload_complete="?1" if complete else "?0", **fields,
    )  # fmt: skip


# --- the draft --------------------------------------------------------------------------------------------


def test_the_draft(server: Server) -> None:
    disposition = "inline; filename=\"x.bin\"; filename*=UTF-8''../%C3%A4.bin"
    url = begin(
        server, body=DATA[:1000], upload_length=str(len(DATA)), content_type="image/png",
        content_disposition=disposition,
    )  # fmt: skip
    head = ask(server, "HEAD", url)
    assert head.status == 204
    assert (head.headers["upload-offset"], head.headers["upload-complete"]) == ("1000", "?0")
    assert head.headers["upload-length"] == str(len(DATA))
    assert head.headers["cache-control"] == "no-store"
    assert head.headers["upload-limit"].startswith("max-size=1073741824, max-age=86")
    reply = append(server, url, 1000, DATA[1000:500_000], complete=False)
    assert (reply.status, reply.headers["upload-complete"]) == (204, "?0")
    assert reply.headers["upload-offset"] == "500000"
    reply = append(server, url, 500_000, DATA[500_000:], complete=True)
    assert (reply.status, reply.headers["upload-complete"]) == (200, "?1")
    said = json.loads(reply.body)
    assert said["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert (said["size"], said["filename"]) == (len(DATA), "ä.bin")
    assert said["content_type"] == "image/png"
    head = ask(server, "HEAD", url)
    assert (head.headers["upload-offset"], head.headers["upload-complete"]) == (
        str(len(DATA)),
        "?1",
    )
    assert append(server, url, len(DATA), b"", complete=True).status == 400


def test_one_request_is_enough(server: Server) -> None:
    for fields in ({"upload_complete": "?1"}, {}):
        reply = ask(server, "POST", "/files", DATA, **fields)
        assert (reply.status, reply.headers.get("upload-complete")) == (
            200,
            (fields and "?1") or None,
        )
        assert json.loads(reply.body)["size"] == len(DATA)
    assert json.loads(ask(server, "POST", "/files", b"", upload_complete="?1").body)["size"] == 0


@pytest.mark.parametrize("version", ["6", "8"])
def test_a_client_is_told_while_its_bytes_come(server: Server, version: str) -> None:
    """104 says where the upload is, so that one request that breaks off is resumed."""
    head = (
        "POST /files HTTP/1.1\r\nHost: a\r\nUpload-Complete: ?1\r\n"
        f"Upload-Draft-Interop-Version: {version}\r\nContent-Length: {len(DATA)}\r\n\r\n"
    )
    with server.connect() as peer:
        peer.send(head.encode() + DATA[:300_000])
        told = peer.read_until(b"\r\n\r\n").decode().lower()
        assert told.startswith("http/1.1 104 ")
        assert f"upload-draft-interop-version: {version}\r\n" in told
        assert "upload-limit: max-size=" in told
        url = told.partition("location: ")[2].partition("\r\n")[0]
        # As sent: the identifier has capitals.
        assert url.startswith("/files/")
    # Without the version nothing is told that a client may not understand.
    with server.connect() as peer:
        peer.send(head.replace(f"{version}\r\n", "3\r\n", 1).encode() + DATA)
        assert peer.reply().status == 200


def test_one_request_that_breaks_off_is_resumed(server: Server) -> None:
    with server.connect() as peer:
        peer.send(
            "POST /files HTTP/1.1\r\nHost: a\r\nUpload-Complete: ?1\r\n"
            f"Upload-Draft-Interop-Version: 8\r\nContent-Length: {len(DATA)}\r\n\r\n".encode()
            + DATA[:300_000]
        )
        told = peer.read_until(b"\r\n\r\n").decode()
        url = next(
            line.partition(": ")[2]
            for line in told.splitlines()
            if line.lower().startswith("location")
        )
    reply = ask(server, "HEAD", url)
    assert (reply.status, reply.headers["upload-complete"]) == (204, "?0")
    offset = int(reply.headers["upload-offset"])
    assert 0 <= offset <= 300_000
    reply = append(server, url, offset, DATA[offset:], complete=True)
    assert reply.status == 200, reply
    assert json.loads(reply.body)["sha256"] == hashlib.sha256(DATA).hexdigest()


def test_the_end_may_be_empty(server: Server) -> None:
    url = begin(server, body=b"abc")
    reply = append(server, url, 3, b"", complete=True)
    assert json.loads(reply.body)["size"] == 3


def test_another_offset_is_a_conflict(server: Server) -> None:
    url = begin(server, body=b"abc")
    for offset in (0, 2, 4):
        reply = append(server, url, offset, b"x", complete=False)
        assert (reply.status, reply.headers["upload-offset"]) == (409, "3")
        assert reply.headers["upload-complete"] == "?0"
        said = json.loads(reply.body)
        assert said["type"].endswith("#mismatching-upload-offset")
        assert (said["expected-offset"], said["provided-offset"]) == (3, offset)
    assert ask(server, "HEAD", url).headers["upload-offset"] == "3"


def test_lengths_have_to_agree(server: Server) -> None:
    reply = ask(server, "POST", "/files", b"abc", upload_complete="?1", upload_length="4")
    assert reply.status == 400
    assert json.loads(reply.body)["type"].endswith("#inconsistent-upload-length")
    url = begin(server, body=b"abc", upload_length="5")
    assert append(server, url, 3, b"xyz", complete=True).status == 400
    assert append(server, url, 3, b"x", complete=False, upload_length="6").status == 400
    # More than the length: it is no longer there.
    with server.connect() as peer:
        peer.send(
            f"PATCH {url} HTTP/1.1\r\nHost: a\r\nUpload-Offset: 3\r\nUpload-Complete: ?0\r\n"
            "Content-Type: application/partial-upload\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nxyz\r\n0\r\n\r\n".encode()
        )
        assert peer.reply().status == 413
    assert ask(server, "HEAD", url).status == 404


def test_mistakes_of_the_draft(server: Server) -> None:
    url = begin(server)
    assert ask(server, "PATCH", url, b"x", upload_offset="0", upload_complete="?0").status == 415
    partial = {"content_type": "application/partial-upload"}
    assert ask(server, "PATCH", url, b"x", upload_complete="?0", **partial).status == 400
    assert ask(server, "PATCH", url, b"x", upload_offset="0", **partial).status == 400
    assert (
        ask(server, "PATCH", url, b"x", upload_offset="-1", upload_complete="?0", **partial).status
        == 400
    )
    for other in ("x" * 24, "..%2f..%2fetc", "a"):
        assert ask(server, "HEAD", f"/files/{other}").status == 404


def test_delete(server: Server) -> None:
    url = begin(server, body=b"abc")
    assert ask(server, "DELETE", url).status == 204
    assert ask(server, "HEAD", url).status == 404
    assert append(server, url, 3, b"", complete=True).status == 404
    assert ask(server, "DELETE", url).status == 404


def begun(server: Server, directory: Path) -> tuple[str, Peer]:
    """An upload, and a request of it that has brought 300 000 of 400 000 bytes, some of which are written."""
    url = begin(server)
    peer = server.connect()
    peer.send(
        f"PATCH {url} HTTP/1.1\r\nHost: a\r\nUpload-Offset: 0\r\nUpload-Complete: ?1\r\n"
        "Content-Type: application/partial-upload\r\nContent-Length: 400000\r\n\r\n".encode()
        + DATA[:300_000]
    )
    file = directory / "files/all" / url.rpartition("/")[2]
    wait_for(lambda: file.stat().st_size > 0, "what is written")
    return url, peer


def test_what_a_broken_connection_has_brought_is_kept(server: Server, directory: Path) -> None:
    url, peer = begun(server, directory)
    peer.close()
    head = ask(server, "HEAD", url)
    offset = int(head.headers["upload-offset"])
    assert 0 < offset <= 300_000
    assert head.headers["upload-complete"] == "?0"
    reply = append(server, url, offset, DATA[offset:400_000], complete=True)
    assert json.loads(reply.body)["sha256"] == hashlib.sha256(DATA[:400_000]).hexdigest()


def test_a_new_request_ends_the_one_before(server: Server, directory: Path) -> None:
    """A client whose network has changed does not wait for the time of its old connection."""
    url, old = begun(server, directory)
    offset = int(ask(server, "HEAD", url).headers["upload-offset"])
    assert 0 < offset <= 300_000
    assert old.reply().status == 409
    reply = append(server, url, offset, DATA[offset:400_000], complete=True)
    assert json.loads(reply.body)["sha256"] == hashlib.sha256(DATA[:400_000]).hexdigest()


# --- tus --------------------------------------------------------------------------------------------------


def test_tus(server: Server) -> None:
    name = base64.b64encode("a/ä.txt".encode()).decode()
    metadata = f"filename {name},filetype {base64.b64encode(b'text/plain').decode()},empty"
    reply = ask(
        server, "POST", "/files", b"", upload_length=str(len(DATA)), upload_metadata=metadata, **TUS
    )
    assert (reply.status, reply.headers["tus-resumable"]) == (201, "1.0.0")
    assert "upload-expires" in reply.headers
    url = reply.headers["location"]
    octets = {"content_type": "application/offset+octet-stream", **TUS}
    reply = ask(server, "PATCH", url, DATA[:1000], upload_offset="0", **octets)
    assert (reply.status, reply.headers["upload-offset"]) == (204, "1000")
    head = ask(server, "HEAD", url, **TUS)
    assert (head.status, head.headers["upload-offset"]) == (200, "1000")
    assert head.headers["upload-length"] == str(len(DATA))
    assert head.headers["upload-metadata"] == metadata
    assert head.headers["cache-control"] == "no-store"
    assert ask(server, "PATCH", url, b"x", upload_offset="7", **octets).status == 409
    assert ask(server, "PATCH", url, b"x", upload_offset="1000", **TUS).status == 415
    reply = ask(server, "PATCH", url, DATA[1000:], upload_offset="1000", **octets)
    assert (reply.status, reply.headers["upload-offset"]) == (204, str(len(DATA)))
    done = ask(server, "HEAD", url, **TUS)
    assert done.headers["upload-offset"] == done.headers["upload-length"] == str(len(DATA))


def test_tus_checksums(server: Server) -> None:
    url = ask(server, "POST", "/files", b"", upload_length="6", **TUS).headers["location"]
    octets = {"content_type": "application/offset+octet-stream", **TUS}
    right = "sha1 " + base64.b64encode(hashlib.sha1(b"abc").digest()).decode()
    wrong = "sha1 " + base64.b64encode(hashlib.sha1(b"xyz").digest()).decode()
    assert (
        ask(server, "PATCH", url, b"abc", upload_offset="0", upload_checksum=wrong, **octets).status
        == 460
    )
    assert ask(server, "HEAD", url, **TUS).headers["upload-offset"] == "0"
    assert (
        ask(
            server, "PATCH", url, b"abc", upload_offset="0", upload_checksum="crc 1", **octets
        ).status
        == 400
    )
    for said in ("sha1 \xe9", "sha1 a", "sha1", "\xe9"):
        assert (
            ask(
                server, "PATCH", url, b"abc", upload_offset="0", upload_checksum=said, **octets
            ).status
            == 400
        ), said
    reply = ask(server, "PATCH", url, b"abc", upload_offset="0", upload_checksum=right, **octets)
    assert (reply.status, reply.headers["upload-offset"]) == (204, "3")


def test_tus_with_an_unknown_length(server: Server) -> None:
    octets = {"content_type": "application/offset+octet-stream", **TUS}
    reply = ask(server, "POST", "/files", b"abc", upload_defer_length="1", **octets)
    assert (reply.status, reply.headers["upload-offset"]) == (201, "3")
    url = reply.headers["location"]
    assert ask(server, "HEAD", url, **TUS).headers["upload-defer-length"] == "1"
    reply = ask(server, "PATCH", url, b"def", upload_offset="3", upload_length="6", **octets)
    assert (reply.status, reply.headers["upload-offset"]) == (204, "6")


def test_tus_says_what_it_can(server: Server) -> None:
    reply = ask(server, "OPTIONS", "/files")
    assert reply.status == 204
    assert reply.headers["tus-version"] == "1.0.0"
    assert "checksum" in reply.headers["tus-extension"]
    assert reply.headers["upload-limit"] == "max-size=1073741824, max-age=86400"
    refused = ask(server, "POST", "/files", b"", upload_length="1", tus_resumable="0.2.0")
    assert (refused.status, refused.headers["tus-version"]) == (412, "1.0.0")
    assert ask(server, "POST", "/files", b"", **TUS).status == 400
    assert (
        ask(server, "POST", "/files", b"", upload_length="1", upload_metadata="a !", **TUS).status
        == 400
    )


# --- limits -----------------------------------------------------------------------------------------------


def test_sizes_are_limited(server: Server) -> None:
    assert ask(server, "POST", "/small", b"", upload_length="1001", **TUS).status == 413
    reply = ask(server, "POST", "/small", b"x" * 1001, upload_complete="?1")
    assert reply.status == 413
    url = begin(server, "/small", b"x" * 900)
    assert append(server, url, 900, b"x" * 200, complete=False).status == 413


def test_an_upload_expires(server: Server) -> None:
    url = begin(server, "/small", b"abc")
    assert ask(server, "HEAD", url).status == 204
    wait_for(lambda: ask(server, "HEAD", url).status == 404, "its age")


def test_an_application_that_refuses(server: Server) -> None:
    reply = ask(server, "POST", "/small", b"evil", upload_complete="?1")
    assert (reply.status, reply.headers["upload-complete"]) == (422, "?1")
    # The application raises the same error elsewhere.
    assert "upload-complete" not in ask(server, "GET", "/evil").headers
    octets = {"content_type": "application/offset+octet-stream", **TUS}
    url = ask(server, "POST", "/small", b"", upload_length="4", **TUS).headers["location"]
    assert ask(server, "PATCH", url, b"evil", upload_offset="0", **octets).status == 422
    # What was refused is not taken for done.
    assert ask(server, "HEAD", url, **TUS).status == 404


def test_the_disk_is_not_filled(server: Server) -> None:
    assert ask(server, "POST", "/full", b"x", upload_complete="?0").status == 507


def test_an_upload_is_its_owners(server: Server) -> None:
    url = begin(server, "/own/1", b"abc", x_user="ann")
    assert ask(server, "HEAD", url).status == 401
    assert ask(server, "HEAD", url, x_user="eve").status == 404
    assert ask(server, "DELETE", url, x_user="eve").status == 404
    assert append(server, url, 3, b"", complete=True, x_user="eve").status == 404
    assert ask(server, "HEAD", url.replace("/own/1", "/own/2"), x_user="ann").status == 404
    begin(server, "/own/1", x_user="ann")
    with server.connect() as peer:
        assert peer.request("POST", "/own/1", b"", upload_complete="?0", x_user="ann").status == 429
        assert peer.request("POST", "/own/1", b"", upload_complete="?0", x_user="bob").status == 201
    reply = append(server, url, 3, b"d", complete=True, x_user="ann")
    assert reply.body == b"1 4"


# --- several workers, restarts --------------------------------------------------------------------------


def test_several_workers_and_a_restart(serve: Serve, tmp_path: Path) -> None:
    env = {"UPLOADS": str(tmp_path / "uploads")}
    server = serve(APP, "--workers", "2", env=env)
    url = begin(server, upload_length=str(len(DATA)))
    for offset in range(0, 500_000, 50_000):
        reply = append(server, url, offset, DATA[offset : offset + 50_000], complete=False)
        assert (reply.status, reply.headers["upload-offset"]) == (204, str(offset + 50_000))
    # In the middle of a request its worker is killed.
    peers = [server.connect() for _ in range(2)]
    peers[0].send(
        f"PATCH {url} HTTP/1.1\r\nHost: a\r\nUpload-Offset: 500000\r\nUpload-Complete: ?0\r\n"
        f"Content-Type: application/partial-upload\r\nContent-Length: 500000\r\n\r\n".encode()
        + DATA[500_000:600_000]
    )
    for worker in children(server):
        os.kill(worker, signal.SIGKILL)
    for peer in peers:
        peer.close()
    server.kill()
    again = serve(APP, "--workers", "2", env=env)
    offset = int(ask(again, "HEAD", url).headers["upload-offset"])
    assert 500_000 <= offset <= 600_000
    reply = append(again, url, offset, DATA[offset:], complete=True)
    assert json.loads(reply.body)["sha256"] == hashlib.sha256(DATA).hexdigest()


def test_a_request_of_another_worker_ends_the_one_before(serve: Serve, tmp_path: Path) -> None:
    server = serve(APP, "--workers", "2", env={"UPLOADS": str(tmp_path)})
    url, old = begun(server, tmp_path)
    first = ask(server, "HEAD", url).headers["upload-offset"]
    assert old.reply().status == 409
    assert int(first) > 0
    assert {ask(server, "HEAD", url).headers["upload-offset"] for _ in range(8)} == {first}


# --- clients of others ------------------------------------------------------------------------------------

NPM = shutil.which("npm")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(server: Server, tmp_path: Path) -> None:
    """curl goes on where the server is: the offset of the server, the rest by PATCH."""
    file = tmp_path / "data"
    file.write_bytes(DATA)
    at = f"http://127.0.0.1:{server.port}"

    def curl(*arguments: str) -> str:
        done = subprocess.run(
            ["curl", "-sS", "-i", *arguments], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = curl("-X", "POST", "-H", "Upload-Complete: ?0", "--data-binary", "", f"{at}/files")
    assert "201 Created" in said, said
    url = next(line for line in said.splitlines() if line.lower().startswith("location:"))
    url = url.partition(":")[2].strip()
    rest = tmp_path / "rest"
    rest.write_bytes(DATA[:400_000])
    partial = ["-X", "PATCH", "-H", "Content-Type: application/partial-upload"]
    said = curl(
        *partial,
        "-H",
        "Upload-Complete: ?0",
        "-H",
        "Upload-Offset: 0",
        "--data-binary",
        f"@{rest}",
        at + url,
    )
    assert "upload-offset: 400000" in said.lower()
    rest.write_bytes(DATA[400_000:])
    said = curl(
        *partial, "-H", "Upload-Complete: ?1", "-H", "Upload-Offset: 400000", "--data-binary", f"@{rest}",
        at + url,
    )  # fmt: skip
    assert hashlib.sha256(DATA).hexdigest() in said
