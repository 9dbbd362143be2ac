"""Nothing outside the directory of a mount is served, and nothing that is not a file."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from rig import Server

OUTSIDE = [
    "/assets/../secret",
    "/assets/..",
    "/assets/docs/../../secret",
    "/assets/docs/../style.css",
    "/assets/%2e%2e/secret",
    "/assets/%2E%2E/%2E%2E/etc/passwd",
    "/assets/.%2e/secret",
    "/assets/..%2fsecret",
    "/assets/..%2Fsecret",
    "/assets/docs%2findex.html",
    "/assets/%252e%252e/secret",
    "/assets/%252e%252e%252fsecret",
    "/assets/..%255csecret",
    "/assets/..%5csecret",
    "/assets/..\\secret",
    "/assets/%c0%ae%c0%ae/secret",
    "/assets/%uff0e%uff0e/secret",
    "/assets//etc/passwd",
    "/assets///etc/passwd",
    "/assets/%2fetc/passwd",
    "/assets/./style.css",
    "/assets//style.css",
    "/assets/style.css%00",
    "/assets/style.css%00.html",
    "/assets/%00",
    "/assets/style.css/",
    "/assets/style.css/x",
    "/assets/.env",
    "/assets/%2eenv",
    "/assets/.git/config",
    "/assets/..;/secret",
    "/assets/~/secret",
    "/assets/" + "a" * 4000,
    "/assets/" + "a/" * 3000,
    "/assets/proc/self/environ",
]


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: path[:40])
def test_no_way_out(files_module: Server, path: str) -> None:
    with files_module.connect() as peer:
        reply = peer.request("GET", path)
        assert reply.status in (400, 404), reply
        assert b"secret" not in reply.body
        assert b"root:" not in reply.body


def test_absolute_form(files_module: Server) -> None:
    assert files_module.get("http://test/assets/style.css").status == 200
    assert files_module.get("http://test/assets/../secret").status == 404


@pytest.mark.parametrize("follow", [False, True])
def test_symbolic_links(serve, site: Path, tmp_path: Path, follow: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("secret")
    for link, target in [
        ("inside.css", "style.css"),
        ("docs/up.css", "../style.css"),
        ("folder", "docs"),
        ("outside", "../secret"),
        ("absolute", str(tmp_path / "secret")),
        ("absolute-inside", str(site / "style.css")),
        ("parent", ".."),
        ("elsewhere", "../elsewhere"),
        ("loop", "loop"),
        ("proc", "/proc/self"),
        ("dangling", "nowhere"),
    ]:
        (site / link).symlink_to(target)
    options = ["--static-symlinks"] if follow else []
    server = serve("", "--static", f"/assets={site}", *options)
    inside = 200 if follow else 404
    for path, status in [
        ("inside.css", inside),
        ("docs/up.css", inside),
        ("folder/index.html", inside),
        ("outside", 404),
        ("absolute", 404),
        ("absolute-inside", 404),
        ("parent/secret", 404),
        ("parent/public/style.css", 404),
        ("elsewhere/file", 404),
        ("loop", 404),
        ("proc/environ", 404),
        ("dangling", 404),
    ]:
        assert server.get(f"/assets/{path}").status == status, path


def test_what_is_no_file(files: Server, site: Path) -> None:
    os.mkfifo(site / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(site / "socket"))
    names = ["fifo", "socket"]
    if os.geteuid() == 0:
        try:
            os.mknod(site / "zero", 0o600 | 0o020000, os.makedev(1, 5))
            names.append("zero")
        except PermissionError:
            pass  # a container without that capability
    for name in names:
        assert files.get(f"/assets/{name}").status == 404, name
    listener.close()
    assert files.get("/assets/style.css").status == 200, "the FIFO must not block"
