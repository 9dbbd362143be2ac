"""Streams of large pieces, from memory and from files."""

# pyright: basic

import os
from pathlib import Path


async def app(scope, receive, send):
    if scope["path"] == "/rss":
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        body = str(pages * os.sysconf("SC_PAGE_SIZE")).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": body})
    headers = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if scope["path"] == "/bytes":
        body = Path("large").read_bytes()
        await send({"type": "http.response.body", "body": body, "more_body": True})
    else:
        file = open("large", "rb")  # noqa: SIM115 (the server sends it later)
        await send({"type": "http.response.zerocopysend", "file": file.fileno(), "more_body": True})
    await send({"type": "http.response.body", "body": b"end"})
