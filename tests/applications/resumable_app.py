"""Resumable uploads: to a directory, checked, of owners, small ones."""

# pyright: basic

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Annotated

from citius import App, Depends, HTTPError, Request, Unauthorized, Upload

app = App()
PLACE = Path(os.environ["UPLOADS"])
(PLACE / "done").mkdir(parents=True, exist_ok=True)
calls = 0


def user(request: Request) -> str:
    found = request.header("x-user")
    if found is None:
        raise Unauthorized("who are you?")
    return found


@app.get("/pid")
async def pid():
    return os.getpid()


@app.uploads("/files", directory=PLACE / "files")
async def received(upload: Upload, request: Request):
    global calls
    calls += 1
    digest = hashlib.sha256(upload.path.read_bytes()).hexdigest()
    upload.move(PLACE / "done" / upload.id)
    return {
        "size": upload.size, "sha256": digest, "filename": upload.filename,
        "content_type": upload.content_type, "metadata": upload.metadata, "calls": calls,
    }  # fmt: skip


@app.uploads("/own/{album}", directory=PLACE / "own", owner=user, owner_uploads_max=2)
async def of_owner(album: int, upload: Upload):
    return f"{album} {upload.size}"


@app.uploads("/small", directory=PLACE / "small", size_max=1000, age_s=2)
async def small(upload: Upload):
    if upload.open().read(4) == b"evil":
        raise EVIL


EVIL = HTTPError(422, "evil")


@app.get("/evil")
def evil():
    raise EVIL


@app.uploads("/known", directory=PLACE / "known")
async def known(upload: Upload, name: Annotated[str, Depends(user)]):
    return name


@app.uploads("/held", directory=PLACE / "held")
async def held(upload: Upload):
    """Has the upload until the test says so."""
    with (PLACE / f"{upload.id}.begun").open("a") as calls:
        calls.write("x")
    if upload.filename == "moved":
        upload.move(PLACE / "done" / upload.id)
    while not (PLACE / f"{upload.id}.go").exists():
        await asyncio.sleep(0.01)
    if upload.filename != "moved":
        upload.move(PLACE / "done" / upload.id)
    return "taken"


@app.uploads("/full", directory=PLACE / "full", free_bytes_min=1 << 60)
async def full(upload: Upload): ...
