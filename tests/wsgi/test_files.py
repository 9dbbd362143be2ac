"""``wsgi.file_wrapper``: PEP 3333, "Optional Platform-Specific File Handling"."""

from __future__ import annotations

FILES = """
import os
BYTES = bytes(range(256)) * 2000
with open("data", "wb") as file:
    file.write(BYTES)

class Closing(io.BytesIO):
    def close(self):
        print("closed", file=sys.stderr, flush=True)
        super().close()

class Minimal:
    def __init__(self): self.left = 3
    def read(self, size):
        assert size == 7
        self.left -= 1
        return b"piece" if self.left else b""

def application(environ, start_response):
    kind, wrapper = environ["PATH_INFO"][1:], environ["wsgi.file_wrapper"]
    headers = [("Content-Type", "application/octet-stream")]
    if environ["QUERY_STRING"]:
        headers.append(("Content-Length", environ["QUERY_STRING"]))
    start_response("200 OK", headers)
    if kind == "memory": return wrapper(Closing(BYTES), 4096)
    if kind == "minimal": return wrapper(Minimal(), 7)
    if kind == "text": return wrapper(open("data", encoding="latin-1"))
    file = open("data", "rb", buffering=0 if kind == "raw" else -1)
    if kind == "offset":
        assert file.read(100) == BYTES[:100]
    if kind == "seek": file.seek(500_000)
    if kind == "end": file.seek(0, 2)
    application.file = file
    return wrapper(file)
"""
BYTES = bytes(range(256)) * 2000


def test_real_files_leave_from_where_they_stand(serve_way) -> None:
    server = serve_way(FILES)
    with server.connect() as peer:
        for kind, body in {
            "whole": BYTES, "raw": BYTES, "offset": BYTES[100:], "seek": BYTES[500_000:], "end": b"",
        }.items():  # fmt: skip
            reply = peer.request("GET", f"/{kind}")
            assert reply.body == body, kind
            assert reply.headers["content-length"] == str(len(body)), kind
        assert peer.request("GET", "/offset?1000").body == BYTES[100:1100]
        assert peer.request("HEAD", "/whole").headers["content-length"] == str(len(BYTES))
        assert peer.request("GET", "/seek?20000").status == 500  # there are not so many
        assert peer.request("GET", "/memory").body == BYTES  # in step


def test_other_files_are_read(serve_way) -> None:
    server = serve_way(FILES)
    with server.connect() as peer:
        assert peer.request("GET", "/memory").body == BYTES
        server.wait_for_log("closed")
        assert peer.request("GET", "/memory?300").body == BYTES[:300]
        assert peer.request("GET", "/minimal").body == b"piecepiece"
        assert peer.request("GET", "/text").status == 500
    server.wait_for_log("not str")
