"""Uploads over sockets."""

import os
import resource
from typing import Annotated

from citius import App, File, UploadFile

if "NOFILE" in os.environ:
    limit = int(os.environ["NOFILE"])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

app = App()


@app.get("/pid")
def pid() -> str:
    return str(os.getpid())


@app.get("/files")
def files() -> str:
    """How many files without names are open."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # that of the listing
            continue
        count += " (deleted)" in link and "memfd" not in link
    return str(count)


@app.post("/upload", body_bytes_max=1024**3)
async def upload(file: Annotated[UploadFile, File()]) -> str:
    count = 0
    while piece := await file.read(65536):
        count += len(piece)
    assert count == file.size
    return str(count)
