"""Parts of files; the grammar is tested in crates/citius-static."""

from __future__ import annotations

import email
import re
from pathlib import Path

import pytest
from rig import Reply, Server
from static_site import LARGE

SIZE = len(LARGE)
PATH = "/assets/large.bin"


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("0-0", 0, 0),
        ("0-99", 0, 99),
        ("100000-", 100000, SIZE - 1),
        ("-5", SIZE - 5, SIZE - 1),
        (f"10-{SIZE + 99}", 10, SIZE - 1),
    ],
)
def test_one(files_module: Server, asked: str, first: int, last: int) -> None:
    reply = files_module.get(PATH, range=f"bytes={asked}")
    assert (reply.status, reply.body) == (206, LARGE[first : last + 1])
    assert reply.headers["content-range"] == f"bytes {first}-{last}/{SIZE}"
    assert reply.headers["content-type"] == "application/octet-stream"


def parts_of(reply: Reply) -> list[tuple[str, bytes]]:
    """Content-Range and bytes of each part, as another program reads them."""
    message = email.message_from_bytes(
        f"content-type: {reply.headers['content-type']}\r\n\r\n".encode() + reply.body
    )
    payloads = message.get_payload()
    assert isinstance(payloads, list)
    boundary = re.search(r"boundary=(\S+)", reply.headers["content-type"])
    assert boundary
    bodies = reply.body.split(f"\r\n--{boundary[1]}".encode())[1:-1]
    return [
        (part["content-range"], body.partition(b"\r\n\r\n")[2])
        for part, body in zip(payloads, bodies, strict=True)
    ]


def test_several(files_module: Server) -> None:
    with files_module.connect() as peer:
        reply = peer.request("GET", PATH, range="bytes=0-1, 100000-199999 ,-3")
        assert reply.status == 206
        assert parts_of(reply) == [
            (f"bytes 0-1/{SIZE}", LARGE[:2]),
            (f"bytes 100000-199999/{SIZE}", LARGE[100000:200000]),
            (f"bytes {SIZE - 3}-{SIZE - 1}/{SIZE}", LARGE[-3:]),
        ]
        assert peer.request("GET", "/app").body == b"from the application"


def test_no_file_can_hold_the_boundary(files: Server, site: Path) -> None:
    seen = files.get(PATH, range="bytes=0-1,5-6").headers["content-type"].partition("boundary=")[2]
    forged = f"x\r\n--{seen}\r\ncontent-range: bytes 0-1/9\r\n\r\nforged".encode()
    (site / "forged.txt").write_bytes(forged)
    size = len(forged)
    reply = files.get("/assets/forged.txt", range=f"bytes=0-{size - 3},-2")
    assert parts_of(reply) == [
        (f"bytes 0-{size - 3}/{size}", forged[:-2]),
        (f"bytes {size - 2}-{size - 1}/{size}", forged[-2:]),
    ]


def test_nothing_of_it_is_there(files_module: Server) -> None:
    reply = files_module.get(PATH, range=f"bytes={SIZE}-")
    assert (reply.status, reply.headers["content-range"]) == (416, f"bytes */{SIZE}")


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=5-1",
        "lines=1-2",
        "bytes=x",
        "bytes=" + ",".join(f"{n}-{n}" for n in range(17)),
        "bytes=" + ",".join(["0-"] * 2),
        "bytes=" + ",".join(["0-0"] * 1000),
        "bytes=0-9,5-" + str(SIZE - 1),
    ],
)
def test_the_whole_instead(files_module: Server, asked: str) -> None:
    reply = files_module.get(PATH, range=asked)
    assert (reply.status, reply.body) == (200, LARGE)


def test_the_limit_is_an_option(serve, site) -> None:
    server = serve("", "--static", f"/assets={site}", "--ranges-max", "1")
    assert server.get(PATH, range="bytes=0-0").status == 206
    assert server.get(PATH, range="bytes=0-0,2-2").status == 200


def test_only_of_the_version_the_client_has(files_module: Server) -> None:
    whole = files_module.get(PATH)
    for condition, status in [
        (whole.headers["etag"], 206),
        (whole.headers["last-modified"], 206),
        ("W/" + whole.headers["etag"], 200),
        ('"other"', 200),
        ("Sun, 06 Nov 1994 08:49:36 GMT", 200),
    ]:
        assert (
            files_module.get(PATH, **{"range": "bytes=0-0", "if-range": condition}).status == status
        )


def test_head_has_no_ranges(files_module: Server) -> None:
    with files_module.connect() as peer:
        reply = peer.request("HEAD", PATH, range="bytes=0-0")
        assert (reply.status, reply.headers["content-length"]) == (200, str(SIZE))
