"""Files, ranges and compressed responses over HTTP/3."""

# pyright: basic

from __future__ import annotations

import asyncio
import gzip
import random
from pathlib import Path

import pytest
from h3peer import Broken, h3_client

APP = """
@app.get("/text")
def text():
    return "hello " * 20_000
"""


def test_files_ranges_and_codings(serve_h3, tmp_path: Path) -> None:
    directory = tmp_path / "files"
    directory.mkdir()
    content = random.Random(3).randbytes(3_000_000)
    (directory / "large.bin").write_bytes(content)
    (directory / "small.txt").write_text("small")
    server = serve_h3("--static", f"/f={directory}", "--compress", "gzip", app=APP)

    async def main() -> None:
        async with h3_client(server) as client:
            streams = [client.begin("/f/large.bin") for _ in range(3)]
            for stream in streams:
                assert (await client.response(stream)).body == content
            response = await client.get("/f/large.bin", range="bytes=1000-1999")
            assert (response.status, response.body) == (206, content[1000:2000])
            small = await client.get("/f/small.txt")
            assert small.body == b"small"
            again = await client.get("/f/small.txt", if_none_match=small.headers["etag"])
            assert (again.status, again.body) == (304, b"")
            coded = await client.get("/text", accept_encoding="gzip")
            assert coded.headers["content-encoding"] == "gzip"
            assert gzip.decompress(coded.body) == b"hello " * 20_000

    asyncio.run(main())


def test_a_file_that_becomes_shorter_resets_its_stream_alone(serve_h3, tmp_path: Path) -> None:
    directory = tmp_path / "files"
    directory.mkdir()
    file = directory / "shrinks.bin"
    file.write_bytes(bytes(20_000_000))
    server = serve_h3("--static", f"/f={directory}", app=APP)

    async def main() -> None:
        async with h3_client(server) as client:
            stream = client.begin("/f/shrinks.bin")
            while not client.responses.get(stream) or not client.responses[stream].body:
                client.has_come.clear()
                await client.has_come.wait()
            with open(file, "r+b") as opened:
                opened.truncate(1000)
            with pytest.raises(Broken, match="0x102"):
                await client.response(stream)
            assert (await client.get("/text")).status == 200

    asyncio.run(main())
