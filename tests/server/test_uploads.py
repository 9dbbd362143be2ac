"""Uploads: forms that are parsed while they come, files in memory and on disk, memory, hostile forms."""

from __future__ import annotations

import gc
import os
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from citius import App, ConfigError, File, Form, FormLimits, Request, UploadFile
from citius.testing import Client
from citius.web.middleware import CORS
from rig import PLAIN, Server, application, wait_for

MULTIPART = {"content-type": "multipart/form-data; boundary=XX"}
MIB = 1024 * 1024


def part(content: bytes, name: str = "file", filename: str | None = "f.bin") -> bytes:
    file = "" if filename is None else f'; filename="{filename}"'
    head = f'--XX\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
    return head.encode() + content + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + b"--XX--\r\n"


def pattern(size: int) -> bytes:
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def temporary_files() -> int:
    """How many unnamed files this process has open."""
    links: list[str] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue
    return sum(" (deleted)" in link and "memfd" not in link for link in links)


app = App()


@app.post("/def", body_bytes_max=64 * MIB)
def plain(file: Annotated[UploadFile, File()], title: Annotated[str, Form()] = "") -> Any:
    return told(file, title, file.file.read())


@app.post("/async", body_bytes_max=64 * MIB)
async def awaited(file: Annotated[UploadFile, File()], title: Annotated[str, Form()] = "") -> Any:
    first = await file.read(10)
    rest = await file.read()
    assert await file.read() == b""
    assert await file.seek(0) == 0
    assert await file.read() == first + rest
    return told(file, title, first + rest)


@app.post("/blocking", blocking=True, body_bytes_max=64 * MIB)
def blocking(file: Annotated[UploadFile, File()], title: Annotated[str, Form()] = "") -> Any:
    return told(file, title, b"".join(file.file))


@app.post("/called", form=FormLimits(), body_bytes_max=64 * MIB)
def called(request: Request) -> Any:
    form = request.form()
    assert request.form() is form
    return told(form.files["file"], form.get("title", ""), form.files["file"].data)


@app.post("/whole", body_bytes_max=64 * MIB)
def whole(request: Request) -> Any:
    form = request.form()
    return told(form.files["file"], form.get("title", ""), form.files["file"].data)


def told(file: UploadFile, title: str, content: bytes) -> Any:
    assert file.size == len(content)
    assert file.data == content
    is_expected = content == pattern(len(content))
    on_disk = hasattr(file.file, "raw")
    return [file.filename, file.content_type, title, file.size, is_expected, on_disk]


@app.post("/limited", form=FormLimits(
    fields_max=2, files_max=1, name_bytes_max=8, part_head_bytes_max=100,
    text_bytes_max=1000, file_bytes_max=3 * MIB, memory_bytes_max=100,
), body_bytes_max=4 * MIB)  # fmt: skip
def limited(request: Request) -> Any:
    form = request.form()
    return [len(form), len(form.files)]


@app.post("/optional")
def optional(file: Annotated[UploadFile | None, File()] = None) -> str:
    return "none" if file is None else file.filename


@app.post("/body")
def body(request: Request, title: Annotated[str, Form()]) -> Any:
    return len(request.body())


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(app) as client:
        yield client


def post(client: Client, path: str, *parts: bytes) -> Any:
    return client.post(path, content=form(*parts), headers=MULTIPART)


@pytest.mark.parametrize("path", ["/def", "/async", "/blocking", "/called"])
@pytest.mark.parametrize("size", [0, 1, 1000, MIB, MIB + 1, 5 * MIB])
def test_files_arrive_as_they_were_sent(client: Client, path: str, size: int) -> None:
    parts = (part("ä".encode(), "title", None), part(pattern(size)))
    expected = ["f.bin", "application/octet-stream", "ä", size, True, size > MIB]
    assert post(client, path, *parts).json() == expected


def test_a_whole_form_is_in_memory(client: Client) -> None:
    parts = (part(b"t", "title", None), part(pattern(2 * MIB)))
    assert post(client, "/whole", *parts).json()[2:] == ["t", 2 * MIB, True, False]


def test_pieces_of_any_size(client: Client) -> None:
    content = form(part(pattern(300)), part(b"t", "title", None))
    pieces = [content[at : at + 7] for at in range(0, len(content), 7)]
    for path in ("/def", "/whole"):
        assert client.post(path, content=pieces, headers=MULTIPART).json()[2:5] == ["t", 300, True]


def test_temporary_files_go_with_the_request(client: Client) -> None:
    gc.collect()
    before = temporary_files()
    for path in ("/def", "/async", "/blocking"):
        assert post(client, path, part(pattern(3 * MIB))).status_code == 200

    def are_closed() -> bool:
        # Without a GIL what a waiting thread has made and another lets go of is freed when it runs, or here.
        gc.collect()
        return temporary_files() == before

    wait_for(are_closed, "the temporary files are closed")


def test_a_file_that_is_kept_stays() -> None:
    app, kept = App(), []

    @app.post("/", body_bytes_max=8 * MIB)
    def keep(file: Annotated[UploadFile, File()]) -> str:
        kept.append(file)
        return "kept"

    with Client(app) as client:
        post(client, "/", part(pattern(2 * MIB)))
        assert kept[0].data == pattern(2 * MIB)


def test_a_file_input_without_a_file_is_no_file(client: Client) -> None:
    assert post(client, "/optional", part(b"", filename="")).text == "none"
    assert post(client, "/optional", part(b"", filename="x")).text == "x"
    missing = post(client, "/def", part(b"", filename=""))
    assert missing.status_code == 422
    assert missing.json()["errors"] == [{"in": "file", "pointer": "#/file", "detail": "missing"}]


TEXT = part(b"1", "a", None)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((TEXT, TEXT, part(pattern(3 * MIB))), [1, 1]),
        ((TEXT, TEXT, TEXT), 413),
        ((part(b""), part(b"")), 413),
        ((part(b"", "ninebytes"),), 400),
        ((part(b"", filename="ninebytes"),), 400),
        ((part(b"").replace(b"\r\n\r\n", b"\r\nX: " + b"x" * 100 + b"\r\n\r\n"),), 400),
        ((part(b"x" * 1001, "a", None),), 413),
        ((part(b"x" * (3 * MIB + 1)),), 413),
        ((b"nothing",), 400),
        ((TEXT[:-2],), 400),
        ((TEXT.replace(b"form-data", b"attachment"),), 400),
    ],
)  # fmt: skip
def test_limits_and_broken_forms(client: Client, parts: tuple[bytes, ...], expected: Any) -> None:
    response = post(client, "/limited", *parts)
    if isinstance(expected, list):
        assert response.json() == expected
    else:
        assert response.status_code == expected
        assert response.headers["content-type"] == "application/problem+json"
    assert post(client, "/limited", TEXT).json() == [1, 0]


def test_a_urlencoded_form_has_the_limits_of_texts(client: Client) -> None:
    assert client.post("/limited", form=[("a", "1"), ("b", "2")]).json() == [2, 0]
    assert client.post("/limited", form={"a": "x" * 1000}).status_code == 413
    assert client.post("/limited", form={"ninebytes": ""}).status_code == 400
    assert client.post("/limited", form=[("a", "")] * 3).status_code == 413


def test_the_body_of_a_multipart_form_is_not_kept(client: Client) -> None:
    assert client.post("/body", form={"title": "x"}).json() == 7
    with pytest.raises(RuntimeError, match="parsed as a form while it came"):
        post(client, "/body", part(b"x", "title", None))


def test_the_route_limits_the_whole_body(client: Client) -> None:
    assert post(client, "/limited", part(b"x" * 4 * MIB)).status_code == 413


def test_other_types_are_415(client: Client) -> None:
    response = client.post("/def", json={})
    assert response.status_code == 415
    assert "got application/json" in response.json()["detail"]
    no_boundary = {"content-type": "multipart/form-data"}
    assert client.post("/def", content=form(TEXT), headers=no_boundary).status_code == 400
    assert client.post("/def", content=b"", headers=MULTIPART).status_code == 400


def test_with_middleware() -> None:
    app = App()
    app.middleware(CORS("*"))

    @app.post("/", body_bytes_max=8 * MIB)
    def upload(file: Annotated[UploadFile, File()]) -> Any:
        return file.size

    with Client(app) as client:
        assert post(client, "/", part(pattern(2 * MIB))).json() == 2 * MIB
        assert post(client, "/", part(b"")[:-10]).status_code == 400


def test_form_and_stream_contradict_each_other() -> None:
    app = App()
    with pytest.raises(ConfigError, match="drop stream=True"):
        app.post("/", form=FormLimits(), stream=True)(lambda request: None)


def test_limits_are_numbers_from_0_on() -> None:
    with pytest.raises(ValueError, match="files_max"):
        FormLimits(files_max=-1)


def test_a_directory_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with Client(app, raise_errors=False) as client:
        assert post(client, "/def", part(pattern(3 * MIB))).status_code == 500
        assert post(client, "/def", part(pattern(3))).status_code == 200
    with Client(app) as client, pytest.raises(OSError, match="No such file or directory"):
        post(client, "/def", part(pattern(3 * MIB)))


# --- over sockets ---------------------------------------------------------------------------------


@pytest.fixture
def server(serve: Any) -> Server:
    return serve(application("uploads_app"), env=PLAIN)


def head(path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n"
        "Content-Type: multipart/form-data; boundary=XX\r\n\r\n"
    ).encode()


def resident_bytes(pid: int) -> int:
    """The most memory that a process has had so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.M)
    assert found
    return int(found[1]) * 1024


def test_200_mib_take_little_memory_and_keep_nobody_waiting(server: Server) -> None:
    """The bound of the memory is that of the issue; the time is measured in docs/guides/forms.md."""
    pid = int(server.get("/pid").body)
    small = form(part(pattern(1000)))
    with server.connect() as peer:  # what the first form needs
        peer.send(head("/upload", len(small)) + small)
        assert peer.reply().body == b"1000"
    before = resident_bytes(pid)
    size, piece = 200 * MIB, pattern(MIB)
    first, last = part(b"")[:-2], b"\r\n--XX--"
    with server.connect() as peer:

        def send() -> None:
            peer.send(head("/upload", len(first) + size + len(last)) + first)
            for _ in range(200):
                peer.send(piece)
            peer.send(last)

        sender = threading.Thread(target=send)
        sender.start()
        others = 0
        while sender.is_alive():
            assert server.get("/pid").body
            others += 1
        sender.join()
        assert peer.reply().body == str(size).encode()
    assert others > 0
    assert resident_bytes(pid) - before < 20 * MIB


def test_clients_that_leave_in_the_middle_leave_no_file(server: Server) -> None:
    for _ in range(20):
        with server.connect() as peer:
            peer.send(head("/upload", 100 * MIB) + part(pattern(2 * MIB))[:-2])
            peer.reset()
    wait_for(lambda: server.get("/files").body == b"0", "the temporary files are closed")


def test_a_form_takes_one_descriptor() -> None:
    """Hostile 12: 99 files of a byte behind one of a megabyte took 100; each file has its own content."""
    seen: list[tuple[int, list[bytes]]] = []
    app = App()

    @app.post("/many")
    async def many(f: Annotated[list[UploadFile], File()]) -> int:
        taken = unnamed_files() - before
        last = f[-1].file
        last.seek(-2, os.SEEK_END)
        seen.append((taken, [await one.read() for one in f]))
        return len(f)

    contents = [pattern(MIB + 1), *(str(number).encode() * number for number in range(1, 99))]
    body = b"".join(
        b'--XX\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n' + one + b"\r\n"
        for one in contents
    )
    before = unnamed_files()
    with Client(app) as own:
        fields = {"content-type": "multipart/form-data; boundary=XX"}
        assert own.post("/many", content=body + b"--XX--", headers=fields).text == "99"
    contents[-1] = contents[-1][-2:]
    assert seen == [(1, contents)]


def test_uploads_take_a_quarter_of_the_descriptors(serve: Any) -> None:
    """Hostile 12: ten uploads took all, and every other request was refused."""
    server = serve(application("uploads_app"), env={**PLAIN, "NOFILE": "160"})
    begun = head("/upload", 100 * MIB) + part(pattern(2 * MIB))[:-2]
    body = form(part(pattern(2 * MIB)))
    peers = []
    for _ in range(40):
        peer = server.connect()
        peer.send(begun)
        peers.append(peer)
    wait_for(lambda: server.get("/files").body == b"40", "the temporary files are open")
    with server.connect() as peer:
        assert peer.request("POST", "/upload", body, **MULTIPART).status == 503
    with server.connect() as peer:  # what stays in memory needs none
        assert peer.request("POST", "/upload", form(part(b"abc")), **MULTIPART).body == b"3"
    for peer in peers:
        peer.reset()
    wait_for(lambda: server.get("/files").body == b"0", "the temporary files are closed")
    with server.connect() as peer:
        assert peer.request("POST", "/upload", body, **MULTIPART).body == str(2 * MIB).encode()


def unnamed_files() -> int:
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum("(deleted)" in os.readlink(link) for link in links if os.path.islink(link))


def test_a_form_that_is_refused_early(server: Server) -> None:
    with server.connect() as peer:
        peer.send(head("/upload", 100 * MIB) + b"--XX\r\nno colon\r\n\r\n")
        assert peer.reply().status == 400


@pytest.mark.parametrize(
    "content",
    [
        part(b"", "a", None) * 100_000,
        b"--XX\r\n" + b"x" * MIB,
        b"--XX\r\n" + b"X: y\r\n" * 200_000,
        b"--XX" + b" " * MIB,
        b"x" * MIB,
        b"\r\n--X" * 200_000,
        part(b"\r\n--X" * 200_000)[:-2],
        part(b"--YY\r\nContent-Disposition: form-data; name=b\r\n\r\n" * 10_000)[:-2],
    ],
    ids=[
        "100 000 parts", "an endless line", "endless lines", "endless padding", "no boundary",
        "almost boundaries", "almost boundaries in a file", "nested forms",
    ],
)  # fmt: skip
def test_hostile_forms_are_refused(server: Server, content: bytes) -> None:
    with server.connect() as peer:
        try:
            peer.send(head("/upload", len(content)) + content)
            peer.socket.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it was refused before its end
        assert peer.reply().status in (400, 413)
    assert server.get("/pid").status == 200
